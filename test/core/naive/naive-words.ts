import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { Hex } from "viem";
import type { VaultEntry } from "../../../core/protocol/batch-data.ts";
import { naiveRoot } from "./naive-tree.ts";

/**
 * A vault's words and batch data as docs/protocol.md 2 and 4 write them, on hex text; shares
 * nothing with the core. It checks no bounds, so that it can also make what a hostile operator
 * commits.
 */

/** Hex without `0x`: a head of 32 bytes, and continuations of 31 bytes each. */
export interface NaiveWords {
  readonly head: string;
  readonly rest: readonly string[];
}

type Content = Pick<VaultEntry, "owner" | "amount" | "mintingBlob">;

const DECIMAL = /^(?:0|[1-9][0-9]{0,77})$/;
/** The words of a void slot. */
export const NAIVE_VOID: NaiveWords = { head: "00".repeat(32), rest: [] };

export function naiveWords(
  { owner, amount, mintingBlob }: Content,
  assetIndex: number,
): NaiveWords {
  const place = uint(assetIndex, 1) + owner.slice(2).toLowerCase();
  const bytes = mintingBlob.slice(2);
  if (bytes === "") return { head: `10${place}${uint(amount, 10)}`, rest: [] };
  const spelt = spelling(bytes);
  if (spelt !== null && amount === 1n) {
    const [kind, id] = spelt;
    if (id < 2n ** 80n) return { head: `${2 + kind}0${place}${uint(id, 10)}`, rest: [] };
    return {
      head: `${2 + kind}1${place}${uint(id / 2n ** 248n, 10)}`,
      rest: [uint(id % 2n ** 248n, 31)],
    };
  }
  if (spelt?.[0] === 0 && spelt[1] < 2n ** 40n && amount < 2n ** 40n)
    return { head: `50${place}${uint(amount, 5)}${uint(spelt[1], 5)}`, rest: [] };
  const content = uint((bytes.length / 2) % 256, 1) + bytes;
  const rest = content.match(/.{1,62}/g)?.map((part) => part.padEnd(62, "0")) ?? [];
  return { head: `6${rest.length.toString(16)}${place}${uint(amount, 10)}`, rest };
}

/** The vault of these words; null unless they are exactly what {@link naiveWords} makes of it. */
export function naiveVault({ head, rest }: NaiveWords): (Content & { assetIndex: number }) | null {
  const [form, payload] = [Number.parseInt(head[0] as string, 16), head.slice(44)];
  const id = () => BigInt(`0x${rest.length === 0 ? payload : payload.slice(4) + rest[0]}`);
  const content = rest.join("");
  const length = Number.parseInt(content.slice(0, 2), 16);
  const [amount, mintingBlob] = [
    () => [BigInt(`0x${payload}`), ""],
    () => [1n, ascii(String(id()))],
    () => [1n, ascii(`{${id()}}:{}`)],
    () => [1n, uint(id(), 32)],
    () => [BigInt(`0x${payload.slice(0, 10)}`), ascii(String(BigInt(`0x${payload.slice(10)}`)))],
    () => [BigInt(`0x${payload.slice(4)}`), content.slice(2, 2 + 2 * length)],
  ][form - 1]?.() ?? [0n, ""];
  if (typeof amount !== "bigint" || amount < 1n || amount >= 2n ** 63n) return null;
  const vault = {
    owner: `0x${head.slice(4, 44)}`,
    amount,
    mintingBlob: `0x${mintingBlob}`,
  } as Content;
  const assetIndex = Number.parseInt(head.slice(2, 4), 16);
  const again = naiveWords(vault, assetIndex);
  return again.head === head && again.rest.join("") === content ? { ...vault, assetIndex } : null;
}

/** The slots that words hold; null for one that is void, or no vault of the assets. */
export function naiveSlots(
  assets: readonly string[],
  words: readonly NaiveWords[],
): (VaultEntry | null)[] {
  return words.map((each) => {
    const { assetIndex, ...content } = naiveVault(each) ?? { assetIndex: assets.length };
    const asset = assets[assetIndex];
    if (asset === undefined) return null;
    const [chainId, assetType] = [BigInt(`0x${asset.slice(0, 16)}`), `0x${asset.slice(16)}`];
    return { chainId, assetType, ...content } as VaultEntry;
  });
}

/** The elements of words in a blob, the continuations from this place on. */
export function naiveElements({ head, rest }: NaiveWords, place: number): Hex[] {
  const first = rest.length === 0 ? head : head.slice(0, 44) + uint(place, 2) + head.slice(48);
  return [`0x${first}`, ...rest.map((part): Hex => `0x0a${part}`)];
}

/** keccak256(0x00 ‖ vaultId(8) ‖ head(32) ‖ continuations(31 each)). */
export function naiveLeaf(vaultId: bigint, { head, rest }: NaiveWords): Hex {
  return `0x${bytesToHex(keccak_256(bytesOf(`00${uint(vaultId, 8)}${head}${rest.join("")}`)))}`;
}

/** The root of the tree over a batch's words. */
export function naiveContent(words: readonly NaiveWords[], firstVaultId: bigint): Hex {
  const leaves = words.map((each, slot) =>
    bytesOf(naiveLeaf(firstVaultId + BigInt(slot), each).slice(2)),
  );
  return `0x${bytesToHex(naiveRoot(leaves))}`;
}

/** The assets of slots as a manifest has them: 40 bytes each, ascending. */
export function naiveAssets(slots: readonly (VaultEntry | null)[]): string[] {
  return [...new Set(slots.flatMap((slot) => (slot === null ? [] : [assetOf(slot)])))].sort();
}

export function naiveWordsOf(slots: readonly (VaultEntry | null)[]): NaiveWords[] {
  const assets = naiveAssets(slots);
  return slots.map((slot) =>
    slot === null ? NAIVE_VOID : naiveWords(slot, assets.indexOf(assetOf(slot))),
  );
}

/**
 * The batch data of words.
 *
 * @param assets - 40 bytes each
 * @param listed - whether owners stand in front of the records
 * @param payloadBytes - default as few as the words take
 */
export function naiveData(
  assets: readonly string[],
  words: readonly NaiveWords[],
  listed: boolean,
  payloadBytes = Math.max(...words.map(({ head }) => widthOf(head.slice(44)))),
): Hex {
  const owners = listed ? [...new Set(words.map(({ head }) => head.slice(4, 44)))] : [];
  const records = words.map(({ head }) => {
    const owner = head.slice(4, 44);
    const payload = head.slice(64 - 2 * payloadBytes);
    return head.slice(0, 4) + (listed ? uint(owners.indexOf(owner), 2) : owner) + payload;
  });
  const rest = words.flatMap((each) => each.rest);
  return `0x01${uint(assets.length, 2)}${assets.join("")}${uint(owners.length, 2)}${owners.join("")}${uint(payloadBytes, 1)}${uint(words.length, 4)}${records.join("")}${rest.join("")}`;
}

/** The assets and words that L1 reads in data that it takes. Data that it refuses throws. */
export function naiveRead(data: Hex): {
  readonly assets: readonly string[];
  readonly words: readonly NaiveWords[];
} {
  let left = data.slice(2);
  const take = (bytes: number) => {
    if (left.length < 2 * bytes) throw new Error("the data ends too early");
    const field = left.slice(0, 2 * bytes);
    left = left.slice(2 * bytes);
    return field;
  };
  const number = (bytes: number) => Number.parseInt(take(bytes), 16);
  const times = <T>(count: number, each: () => T) => Array.from({ length: count }, each);
  if (number(1) !== 1) throw new Error("another version");
  const assets = times(number(2), () => take(40));
  const owners = times(number(2), () => take(20));
  const payloadBytes = number(1);
  if (payloadBytes > 10) throw new Error("too wide a payload");
  const count = number(4);
  if (count === 0 || left.length < 2 * count) throw new Error("no slot, or too many");
  const heads = times(count, () => {
    const kept = take(2);
    const owner = owners.length === 0 ? take(20) : owners[number(2)];
    if (owner === undefined) throw new Error("an owner that is not listed");
    return kept + owner + (payloadBytes === 0 ? "" : take(payloadBytes)).padStart(20, "0");
  });
  const words = heads.map((head) => ({
    head,
    rest: times(Number.parseInt(head[1] as string, 16), () => take(31)),
  }));
  if (left !== "") throw new Error("the data goes on");
  return { assets, words };
}

function assetOf({ chainId, assetType }: VaultEntry): string {
  return uint(chainId, 8) + assetType.slice(2).toLowerCase();
}

/** How a minting blob spells a token id, and the id; null when it is no number. */
function spelling(bytes: string): readonly [kind: number, id: bigint] | null {
  const text = Buffer.from(bytes, "hex").toString("latin1");
  const decimal = decimalOf(text);
  if (decimal !== null) return [0, decimal];
  const braced = decimalOf(/^\{([^}]*)\}:\{\}$/.exec(text)?.[1] ?? "");
  if (braced !== null) return [1, braced];
  return bytes.length === 64 ? [2, BigInt(`0x${bytes}`)] : null;
}

function decimalOf(text: string): bigint | null {
  return DECIMAL.test(text) && BigInt(text) < 2n ** 256n ? BigInt(text) : null;
}

function widthOf(payload: string): number {
  return payload.replace(/^(?:00)*/, "").length / 2;
}

function ascii(text: string): string {
  return Buffer.from(text, "latin1").toString("hex");
}

function uint(value: number | bigint, bytes: number): string {
  return value.toString(16).padStart(2 * bytes, "0");
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, "hex"));
}
