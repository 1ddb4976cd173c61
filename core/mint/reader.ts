import { type ErrorCode, MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Limits, Mode, Principal, Uuid } from "../model.ts";
import { MAX_AMOUNT, MAX_REFERENCE, MODES } from "../model.ts";
import { MAX_UINT256 } from "../protocol/bounds.ts";
import { hexValue } from "../protocol/hex.ts";
import { readMetadata } from "../protocol/metadata.ts";
import { MAX_MINTING_BLOB_BYTES, mintingBlobTextOf } from "../protocol/minting-blob.ts";
import { quantizedAmount } from "../protocol/quantized.ts";
import {
  BY_DECIMAL,
  BY_DEFAULT,
  BY_TOKEN_ID,
  FAULTY,
  MintColumns,
  NO_ASSET,
  youngList,
} from "../store/mint-columns.ts";
import type { AssetRecord } from "../store/records.ts";
import { mintedTokenId } from "../store/token-id.ts";
import { highWord, lowWord } from "../store/vault-columns.ts";
import { isVisible } from "../tenants/asset-view.ts";
import { isText, readSpelling, readUuid, requireAddress } from "../validate.ts";
import { fits, hasOtherFields, Issues, MINT_FORM, USER_FORM } from "./form.ts";

/**
 * A request that was read, with the faults of its form. An entry with such a fault is excluded from
 * its columns.
 */
export interface ReadMint {
  readonly columns: MintColumns;
  readonly issues: Issues;
  /** The assets that its entries were read by. */
  readonly assets: readonly AssetRecord[];
}

/** The state that the reading of a request needs. */
interface ReadingRules {
  readonly limits: RequestLimits;
  /** Applies to entries without a mode, of assets without a default. */
  readonly defaultMode: Mode | null;
  /** Has the assets that the application sees; null: no asset is known, so none is missing. */
  readonly ledger: Ledger | null;
  readonly applicationIndex: number;
}

/** How much one request may hold. */
export type RequestLimits = Pick<Limits, "usersPerRequest" | "mintsPerRequest">;

/**
 * Reads an untrusted, parsed mint request by {@link MINT_FORM} and by the form of its assets, which
 * never changes. It checks nothing else of the state, and goes on after a fault.
 *
 * @throws MintmarkError only when the whole request is unusable: no list of users, or above the
 *   limits
 */
export function readMint(ledger: Ledger, { applicationId }: Principal, request: unknown): ReadMint {
  const { applicationIndex, dataAvailabilityMode: defaultMode } = ledger.tenants.application(
    applicationId,
    null,
  );
  return read({ limits: ledger.services.limits, defaultMode, ledger, applicationIndex }, request);
}

/** Throws the faults of a request's form, as far as they do not depend on its assets. */
export function requireForm(limits: RequestLimits, request: unknown): void {
  read(
    { limits, defaultMode: null, ledger: null, applicationIndex: -1 },
    request,
  ).issues.throwIfAny();
}

function read(known: ReadingRules, request: unknown): ReadMint {
  const { usersPerRequest, mintsPerRequest } = known.limits;
  const issues = new Issues();
  const report: Report = (path, code, detail) => issues.ofRequest(path, code, detail);
  const fields = isObject(request) ? request : null;
  const users =
    fields !== null && Array.isArray(fields.users) ? (fields.users as readonly unknown[]) : [];
  let count = 0;
  for (const user of users)
    if (isObject(user) && Array.isArray(user.mints)) count += user.mints.length;
  if (fields === null) report("", "validation_failed", "must be an object with a list of users");
  else if (users.length === 0)
    report("/users", "validation_failed", "must be a list of at least one user");
  if (users.length > usersPerRequest)
    report("/users", "batch_too_large", `at most ${usersPerRequest} users`);
  if (count > mintsPerRequest)
    report("/users", "batch_too_large", `at most ${mintsPerRequest} mints`);
  issues.throwIfAny();
  const reader = new MintReader(known, new MintColumns(count), issues);
  reader.unknownFields(fields ?? {}, REQUEST_FIELDS, report);
  for (let i = 0; i < users.length; i++) reader.readUser(users[i], i);
  if (reader.columns.minted > mintsPerRequest) {
    // Other faults are not told, as for a request with too many entries.
    const alone = new Issues();
    alone.ofRequest("/users", "batch_too_large", `at most ${mintsPerRequest} mints`);
    alone.throwIfAny();
  }
  return reader;
}

type Fields = Readonly<Record<string, unknown>>;

const REQUEST_FIELDS = { users: true };
const USER_FIELDS = { ...USER_FORM, mints: true };

class MintReader {
  readonly columns: MintColumns;
  readonly assets = youngList<AssetRecord>();
  readonly issues: Issues;
  readonly #context: ReadingRules;
  /** The recipients; null up to the second one. */
  #seen: Set<Uuid | Address | null> | null = null;
  #next = 0;
  /** Position of the user, and of its entry. */
  #user = 0;
  #at = 0;
  /** The last asset, and how it was named. */
  #assetId: unknown;
  #asset: AssetRecord | null = null;
  /** Whether an id names the missing asset, which may need no amount and no mode. */
  #isNamed = false;
  /** The assets by name, from the second one on. */
  #known: Map<unknown, AssetRecord> | null = null;

  constructor(context: ReadingRules, columns: MintColumns, issues: Issues) {
    this.columns = columns;
    this.#context = context;
    this.issues = issues;
  }

  readUser(user: unknown, position: number): void {
    const { recipients, userCounts } = this.columns;
    this.#user = position;
    const report: Report = (field, code, detail) =>
      this.issues.ofUser(position, field, code, detail);
    if (!isObject(user)) {
      recipients.push(null);
      userCounts.push(0);
      report("", "validation_failed", "must be an object");
      return;
    }
    this.unknownFields(user, USER_FIELDS, report);
    const recipient = readRecipient(user, report);
    if (position > 0) this.#seen ??= new Set(recipients);
    if (recipient !== null && this.#seen?.has(recipient)) {
      const field = user.ownerAddress === undefined ? "/userId" : "/ownerAddress";
      report(field, "duplicate_user", "occurs more than once in this request");
      recipients.push(null);
    } else {
      this.#seen?.add(recipient);
      recipients.push(recipient);
    }
    const mints = Array.isArray(user.mints) ? (user.mints as readonly unknown[]) : [];
    if (mints.length === 0)
      report("/mints", "validation_failed", "must be a list of at least one mint");
    userCounts.push(mints.length);
    for (this.#at = 0; this.#at < mints.length; this.#at++)
      this.#readEntry(mints[this.#at], this.#next++);
  }

  #readEntry(mint: unknown, entry: number): void {
    if (this.issues.more || !isObject(mint)) {
      this.columns.takeMintingBlob(entry, 0);
      this.columns.assetIndex[entry] = NO_ASSET;
      this.#refuse(entry, "", "validation_failed", "must be an object");
      return;
    }
    if (hasOtherFields(mint)) this.unknownFields(mint, MINT_FORM, this.#report);
    const asset = this.#readAsset(mint.assetId, entry);
    this.#readAmount(mint, asset, entry);
    this.#readToken(mint, asset, entry);
    this.#readMode(mint.dataAvailabilityMode, asset, entry);
    const { reference, metadata } = mint;
    if (reference !== undefined) {
      if (isText(reference, MAX_REFERENCE)) this.columns.setText("references", entry, reference);
      else this.#report("/reference", "validation_failed", MINT_FORM.reference.fault);
    }
    if (metadata !== undefined) {
      const read = readMetadata(metadata);
      if (typeof read === "string") this.columns.setText("metadata", entry, read);
      else this.#report(`/metadata${read.pointer}`, "validation_failed", read.detail);
    }
  }

  /** null for one that does not exist, or that the application cannot see. */
  #readAsset(assetId: unknown, entry: number): AssetRecord | null {
    if (this.#asset === null || assetId !== this.#assetId) {
      const known = this.#known?.get(assetId);
      this.#asset = known ?? this.#findAsset(assetId, entry);
      this.#assetId = assetId;
      if (this.#asset !== null && known === undefined) {
        if (this.assets.push(this.#asset) > 1) this.#known ??= new Map();
        this.#known?.set(assetId, this.#asset);
      }
    }
    this.columns.assetIndex[entry] = this.#asset?.assetIndex ?? NO_ASSET;
    return this.#asset;
  }

  #findAsset(assetId: unknown, entry: number): AssetRecord | null {
    const { ledger, applicationIndex } = this.#context;
    if (typeof assetId === "string" && ledger !== null) {
      const asset = ledger.tenants.assets.named(assetId, null);
      if (asset !== undefined && isVisible(asset, applicationIndex)) return asset;
    }
    this.#isNamed = readUuid(assetId) !== null;
    if (!this.#isNamed)
      this.#refuse(entry, "/assetId", "validation_failed", MINT_FORM.assetId.fault);
    else if (ledger !== null) this.#refuse(entry, "/assetId", "asset_not_found", "no such asset");
    return null;
  }

  #readAmount({ amount, amountDecimal }: Fields, asset: AssetRecord | null, entry: number): void {
    const { columns } = this;
    if (amountDecimal === undefined && Number.isSafeInteger(amount) && (amount as number) > 0) {
      const small = amount as number;
      columns.setAmount(entry, small < 2 ** 32 ? 0 : Math.floor(small / 2 ** 32), small);
    } else {
      const units =
        amountDecimal === undefined
          ? this.#unitsOf(amount, asset, entry)
          : this.#decimalUnits(amountDecimal, amount, asset, entry);
      columns.setAmount(entry, highWord(units), lowWord(units));
    }
    // The entry stays in the other checks: a token that is named twice gets that error, whatever
    // its amount.
    const { amountHigh, amountLow } = columns;
    if (asset?.standard === "erc721" && (amountHigh[entry] !== 0 || amountLow[entry]! > 1))
      this.#report(
        amountDecimal === undefined ? "/amount" : "/amountDecimal",
        "erc721_amount_not_one",
        "must be 1 for an ERC-721 token",
      );
  }

  /** 0 after a fault. */
  #unitsOf(amount: unknown, asset: AssetRecord | null, entry: number): bigint {
    if (amount === undefined) {
      if (asset === null ? !this.#isNamed : asset.standard !== "erc721")
        this.#refuse(
          entry,
          "/amount",
          "validation_failed",
          "give the amount; only an ERC-721 token needs none",
        );
      return 1n;
    }
    const units = fits(MINT_FORM.amount, amount) ? BigInt(amount) : 0n;
    if (units >= 1n && units <= MAX_AMOUNT) return units;
    // A whole number outside the range. A number above 2^53 may have been rounded before, so it is
    // not one.
    const isWhole = typeof amount === "string" ? WHOLE.test(amount) : Number.isSafeInteger(amount);
    const code = isWhole ? "amount_out_of_range" : "validation_failed";
    this.#refuse(entry, "/amount", code, boundOf(String(amount)) ?? MINT_FORM.amount.fault);
    return 0n;
  }

  /** 0 after a fault. */
  #decimalUnits(text: unknown, amount: unknown, asset: AssetRecord | null, entry: number): bigint {
    const refuse = (code: ErrorCode, detail: string): bigint => {
      this.#refuse(entry, "/amountDecimal", code, detail);
      return 0n;
    };
    if (amount !== undefined)
      return refuse("validation_failed", "give amount or amountDecimal, not both");
    if (!fits(MINT_FORM.amountDecimal, text))
      return refuse("validation_failed", MINT_FORM.amountDecimal.fault);
    if (asset === null) return 0n;
    this.columns.mark(entry, BY_DECIMAL);
    try {
      return quantizedAmount(String(text), asset);
    } catch (error) {
      if (!(error instanceof MintmarkError)) throw error;
      return refuse(error.code, error.message);
    }
  }

  #readMode(value: unknown, asset: AssetRecord | null, entry: number): void {
    let mode = MODES.indexOf(value as Mode);
    if (value === undefined) {
      this.columns.mark(entry, BY_DEFAULT);
      mode = MODES.indexOf((asset?.dataAvailabilityMode ?? this.#context.defaultMode) as Mode);
    } else if (mode < 0) mode = MODES.indexOf(readSpelling(MODES, value) as Mode);
    if (mode >= 0) this.columns.setMode(entry, mode);
    else if (value !== undefined || asset !== null || !this.#isNamed) {
      const { fault } = MINT_FORM.dataAvailabilityMode;
      const detail =
        value === undefined ? `${fault}: neither asset nor application has a default` : fault;
      this.#refuse(entry, "/dataAvailabilityMode", "validation_failed", detail);
    }
  }

  #readToken(mint: Fields, asset: AssetRecord | null, entry: number): void {
    const { mintingBlob, tokenId, quantity } = mint;
    const isNamed =
      (mintingBlob === undefined) !== (tokenId === undefined) && quantity === undefined;
    if (isNamed && (asset === null || asset.nextTokenId === null)) {
      if (tokenId === undefined) this.#readMintingBlob(mintingBlob, asset, entry);
      else this.#readTokenId(tokenId, asset, entry);
      return;
    }
    this.columns.shortId[entry] = -1;
    this.columns.takeMintingBlob(entry, 0);
    if (quantity !== undefined) this.#readQuantity(mint, asset, entry);
    else if (isNamed) {
      const detail = "the engine numbers this asset's tokens; give their quantity instead";
      this.#refuse(
        entry,
        tokenId === undefined ? "/mintingBlob" : "/tokenId",
        "validation_failed",
        detail,
      );
    } else if (tokenId !== undefined)
      this.#refuse(entry, "/tokenId", "validation_failed", "give tokenId or mintingBlob, not both");
    else if (asset !== null && asset.standard !== "erc20" && asset.nextTokenId === null)
      this.#refuse(
        entry,
        "/tokenId",
        "validation_failed",
        "name the token by tokenId, or by mintingBlob",
      );
  }

  #readQuantity(
    { mintingBlob, tokenId, quantity }: Fields,
    asset: AssetRecord | null,
    entry: number,
  ): void {
    const isNamed = tokenId !== undefined || mintingBlob !== undefined;
    if (isNamed || !fits(MINT_FORM.quantity, quantity)) {
      const detail = isNamed ? "give a token or a quantity, not both" : MINT_FORM.quantity.fault;
      this.#refuse(entry, "/quantity", "validation_failed", detail);
    } else if (asset !== null && asset.nextTokenId === null) {
      const detail =
        "is for ERC-721 assets whose tokens the engine numbers; name this token by tokenId";
      this.#refuse(entry, "/quantity", "validation_failed", detail);
    } else this.columns.setQuantity(entry, Number(quantity));
  }

  #readTokenId(tokenId: unknown, asset: AssetRecord | null, entry: number): void {
    const { columns } = this;
    columns.shortId[entry] = -1;
    columns.takeMintingBlob(entry, 0);
    if (
      !fits(MINT_FORM.tokenId, tokenId) ||
      (typeof tokenId === "string" && BigInt(tokenId) > MAX_UINT256)
    ) {
      const fault = /^0\d+$/.test(String(tokenId)) ? LEADING_ZEROS : MINT_FORM.tokenId.fault;
      this.#refuse(entry, "/tokenId", "validation_failed", fault);
    } else if (asset?.standard === "erc20") {
      this.#refuse(
        entry,
        "/tokenId",
        "validation_failed",
        "an ERC-20 token has no ids; leave this out",
      );
    } else {
      const text = mintingBlobTextOf(asset?.mintingBlobScheme ?? "mintmark", String(tokenId));
      const start = columns.takeMintingBlob(entry, text.length);
      for (let i = 0; i < text.length; i++) columns.mintingBlobs[start + i] = text.charCodeAt(i);
      columns.mark(entry, BY_TOKEN_ID);
      columns.noteShortId(entry, asset);
    }
  }

  #readMintingBlob(value: unknown, asset: AssetRecord | null, entry: number): void {
    if (typeof value !== "string" || !this.#takeHex(value, entry)) {
      this.columns.shortId[entry] = -1;
      this.columns.takeMintingBlob(entry, 0);
      const code = typeof value === "string" ? "minting_blob_invalid" : "validation_failed";
      this.#refuse(entry, "/mintingBlob", code, MINT_FORM.mintingBlob.fault);
    } else if (!this.columns.noteShortId(entry, asset) && asset !== null) {
      try {
        mintedTokenId(asset, this.columns.mintingBlobBytes(entry));
      } catch (error) {
        if (!(error instanceof MintmarkError) || error.code !== "minting_blob_invalid") throw error;
        this.#refuse(entry, "/mintingBlob", error.code, error.message);
      }
    }
  }

  /** Puts hex into the columns, as {@link MINT_FORM} has it. A pattern would read it twice. */
  #takeHex(hex: string, entry: number): boolean {
    const prefix = hex.charCodeAt(0) === 0x30 && (hex.charCodeAt(1) | 0x20) === 0x78 ? 2 : 0;
    const bytes = (hex.length - prefix) / 2;
    if (!Number.isInteger(bytes) || bytes > MAX_MINTING_BLOB_BYTES) return false;
    const start = this.columns.takeMintingBlob(entry, bytes);
    const { mintingBlobs } = this.columns;
    for (let at = start, i = prefix; at < start + bytes; at++, i += 2) {
      const byte = (hexValue(hex.charCodeAt(i)) << 4) | hexValue(hex.charCodeAt(i + 1));
      if (byte < 0) return false;
      mintingBlobs[at] = byte;
    }
    return true;
  }

  /** Reports a fault of the entry after which no other check can look at it. */
  #refuse(entry: number, field: string, code: ErrorCode, detail: string): void {
    this.columns.mark(entry, FAULTY);
    this.#report(field, code, detail);
  }

  readonly #report: Report = (field, code, detail) =>
    this.issues.ofMint(this.#user, this.#at, field, code, detail);

  /** Stops when the list of issues is full, because an object can have any number of fields. */
  unknownFields(value: Fields, known: object, report: Report): void {
    for (const field in value) {
      if (Object.hasOwn(known, field)) continue;
      const { full } = this.issues;
      report(pointer(field), "validation_failed", UNKNOWN);
      if (full) return;
    }
  }
}

type Report = (field: string, code: ErrorCode, detail: string) => void;

function readRecipient({ userId, ownerAddress }: Fields, report: Report): Uuid | Address | null {
  if (ownerAddress === undefined) {
    const recipient = readUuid(userId);
    if (recipient === null) report("/userId", "validation_failed", USER_FORM.userId.fault);
    return recipient;
  }
  if (userId !== undefined) {
    report("/ownerAddress", "validation_failed", "give userId or ownerAddress, not both");
    return null;
  }
  try {
    return requireAddress("ownerAddress", ownerAddress);
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    report("/ownerAddress", error.code, error.message);
    return null;
  }
}

const UNKNOWN = "is not a field of this request";
const WHOLE = /^(?:0|[1-9]\d{0,77})$/;

/** RFC 6901. */
function pointer(field: string): string {
  return `/${field.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const LEADING_ZEROS = "must have no leading zeros";

/** Why a whole number is no amount; null for other text. */
function boundOf(text: string): string | null {
  if (!/^-?\d+$/.test(text)) return null;
  if (/^(?:-.*|0+)$/.test(text)) return "must be at least 1 unit";
  return text.startsWith("0") ? LEADING_ZEROS : "must be at most 2^63 - 1 units";
}
