import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { isVisible } from "../../../core/protocol/text.ts";

/** The reader must be told this of an asset, by its id in lower case. */
export interface NaiveAssets {
  readonly [assetId: string]: {
    readonly standard: "erc20" | "erc721" | "erc1155";
    readonly isNumbered?: true;
  };
}

/**
 * The rules of a mint request over plain JSON values, one by one. It remembers the tokens of
 * accepted requests.
 */
export class NaiveMintReader {
  readonly #assets: NaiveAssets;
  readonly #users: readonly string[];
  /** The minting blob of each asset and token id. */
  #tokens = new Map<string, string>();

  /**
   * Assets have 0 decimals, a quantum of 1, no default mode and this project's own scheme of text
   * minting blobs.
   */
  constructor(assets: NaiveAssets, users: readonly string[]) {
    this.#assets = assets;
    this.#users = users;
  }

  /** Whether a request is accepted. */
  accepts(body: unknown): boolean {
    const tokens = new Map(this.#tokens);
    const { users, ...others } = objectOf(body) ?? {};
    const named = (Array.isArray(users) ? users : []).map((user) => this.#readUser(user, tokens));
    const isFine =
      objectOf(body) !== null &&
      Object.keys(others).length === 0 &&
      named.length > 0 &&
      named.every((user) => user !== null) &&
      new Set(named).size === named.length;
    if (isFine) this.#tokens = tokens;
    return isFine;
  }

  #readUser(value: unknown, tokens: Map<string, string>): string | null {
    const { userId, mints, ...others } = objectOf(value) ?? {};
    const id = typeof userId === "string" ? userId.toLowerCase() : "";
    const isFine = this.#users.includes(id) && Array.isArray(mints) && mints.length > 0;
    if (!isFine || Object.keys(others).length > 0) return null;
    // Each entry is read, since a later one can have a token of its own.
    return mints.map((mint: unknown) => this.#readEntry(mint, tokens)).every(Boolean) ? id : null;
  }

  #readEntry(value: unknown, tokens: Map<string, string>): boolean {
    const mint = objectOf(value);
    if (mint === null) return false;
    const { assetId, tokenId, mintingBlob, quantity, amount, amountDecimal, reference, ...rest } =
      mint;
    const { dataAvailabilityMode: mode, ...others } = rest;
    const asset = typeof assetId === "string" ? this.#assets[assetId.toLowerCase()] : undefined;
    if (asset === undefined || Object.keys(others).length > 0) return false;
    if (
      typeof mode !== "string" ||
      !["validium", "zkrollup"].includes(mode.replaceAll(/[-_]/g, "").toLowerCase())
    )
      return false;
    if (
      reference !== undefined &&
      (typeof reference !== "string" || !/^.{1,100}$/s.test(reference) || !isVisible(reference))
    )
      return false;
    if (!isAmount(asset.standard, amount, amountDecimal)) return false;
    if (asset.isNumbered) {
      const isCount =
        quantity === undefined || (Number.isInteger(quantity) && Number(quantity) >= 1);
      return (
        tokenId === undefined &&
        mintingBlob === undefined &&
        isCount &&
        Number(quantity ?? 1) <= 100
      );
    }
    if (quantity !== undefined) return false;
    if (asset.standard === "erc20")
      return tokenId === undefined && (mintingBlob === undefined || isEmpty(mintingBlob));
    const text =
      tokenId === undefined
        ? mintingBlobOf(mintingBlob)
        : mintingBlob === undefined
          ? mintingBlobOfId(tokenId)
          : null;
    if (text === null) return false;
    const name = `${String(assetId).toLowerCase()} ${idOf(text)}`;
    const known = tokens.get(name);
    tokens.set(name, known ?? text);
    return known === undefined || (asset.standard === "erc1155" && known === text);
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : null;
}

/**
 * A whole number from a JSON number that cannot have been rounded, or from canonical digits; null
 * for anything else.
 */
function wholeOf(value: unknown): bigint | null {
  if (typeof value === "number")
    return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : null;
  return typeof value === "string" && /^(?:0|[1-9][0-9]*)$/.test(value) ? BigInt(value) : null;
}

function isAmount(standard: string, amount: unknown, decimal: unknown): boolean {
  if (decimal !== undefined) {
    const whole =
      typeof decimal === "string"
        ? /^(0|[1-9][0-9]{0,77})(?:\.0{1,255})?$/.exec(decimal)?.[1]
        : undefined;
    const units = wholeOf(whole);
    return amount === undefined && isUnits(units) && (standard !== "erc721" || units === 1n);
  }
  if (amount === undefined) return standard === "erc721";
  const units = wholeOf(amount);
  return isUnits(units) && (standard !== "erc721" || units === 1n);
}

const isUnits = (units: bigint | null): boolean =>
  units !== null && units >= 1n && units < 2n ** 63n;

const bareHex = (value: unknown): string | null => {
  const digits = typeof value === "string" ? value.toLowerCase().replace(/^0x/, "") : "?";
  return /^(?:[0-9a-f]{2}){0,255}$/.test(digits) ? digits : null;
};

const isEmpty = (mintingBlob: unknown): boolean => bareHex(mintingBlob) === "";

/** The text of a minting blob, if it is text and not empty. */
function mintingBlobOf(value: unknown): string | null {
  const digits = bareHex(value);
  if (digits === null || digits === "") return null;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      Buffer.from(digits, "hex"),
    );
    return isVisible(text) ? digits : null;
  } catch {
    return null;
  }
}

function mintingBlobOfId(value: unknown): string | null {
  const id = wholeOf(value);
  return id === null || id >= 2n ** 256n ? null : Buffer.from(String(id)).toString("hex");
}

/** A canonical decimal names its number, any other text its hash. */
function idOf(mintingBlob: string): bigint {
  const bytes = Buffer.from(mintingBlob, "hex");
  const digits = bytes.toString("latin1");
  const isNumber = /^(?:0|[1-9][0-9]{0,77})$/.test(digits) && BigInt(digits) < 2n ** 256n;
  return isNumber ? BigInt(digits) : BigInt(`0x${bytesToHex(keccak_256(bytes))}`);
}
