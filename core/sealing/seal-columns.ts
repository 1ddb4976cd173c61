import type { Address, Mode } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { ascendAssets, type BatchColumns, indexIn, NOT_PACKABLE } from "../protocol/batch-columns.ts";
import { MAX_PACKED_DIGITS, VOID_RUN } from "../protocol/batch-data.ts";
import type { BatchOutput, BatchRecords } from "../protocol/batch-encoder.ts";
import { hashMessages } from "../protocol/hash.ts";
import { HASH_BYTES } from "../protocol/hex.ts";
import { MAX_BATCH_ASSETS } from "../protocol/manifest.ts";
import { LEAF_HEADER_BYTES, MAX_LEAF_BYTES, writeLeafPreimage } from "../protocol/vault.ts";
import { hexOf, type VaultColumns, widthOfWords } from "../store/vault-columns.ts";

const LEAVES_PER_CHUNK = 1024; // Leaves packed and hashed at a time: few enough for the cache
// Offsets of the parts of a leaf's preimage that differ between vaults (docs/protocol.md 2).
const SLOT_AT = 6; // The three bytes with the slot and four bits of the batch number
const OWNER_AT = 17;
const AMOUNT_AT = 69;
const ZERO = 0x30;
const NINE = 0x39;
const NO_OWNER = `0x${"00".repeat(20)}` as const;

export type AssetIdAt = (assetIndex: number) => AssetId;

/** Same result as `vaultLeaves`, straight from columns: 32 bytes a slot, from `firstSlot` on. */
export function columnLeaves(mode: Mode, batchNumber: number, vaults: VaultColumns, assetAt: AssetIdAt, firstSlot = 0) {
  const leaves = new Uint8Array(vaults.count * HASH_BYTES);
  const first = BigInt(batchNumber) << 20n;
  const vaultId = mode === "validium" ? first : (1n << 63n) | first;
  const headers = new Map<number, Uint8Array>();
  for (let start = 0; start < vaults.count; start += LEAVES_PER_CHUNK) {
    const count = Math.min(LEAVES_PER_CHUNK, vaults.count - start);
    const blobBytes = vaults.blobStart(start + count) - vaults.blobStart(start);
    // No larger than needed: a proof hashes one page, and clearing room for the longest blobs would take longer than
    // that.
    const preimages = new Uint8Array(count * LEAF_HEADER_BYTES + blobBytes);
    const ends = new Uint32Array(count);
    let end = 0;
    for (let i = 0; i < count; i++) {
      const assetIndex = vaults.assetIndex[start + i] as number;
      let header = headers.get(assetIndex);
      if (header === undefined) {
        header = headerOf(vaultId, assetAt(assetIndex));
        headers.set(assetIndex, header);
      }
      end = writeLeaf(vaults, start + i, firstSlot, header, preimages, end);
      ends[i] = end;
    }
    const digests = leaves.subarray(start * HASH_BYTES, (start + count) * HASH_BYTES);
    hashMessages(preimages, ends, digests);
  }
  return leaves;
}

/** A leaf's preimage for slot 0 and an asset, without owner, amount and blob. */
function headerOf(vaultId: bigint, { chainId, assetType }: AssetId): Uint8Array {
  const header = new Uint8Array(MAX_LEAF_BYTES);
  writeLeafPreimage({ vaultId, chainId, owner: NO_OWNER, assetType, amount: 1n, blob: "0x" }, header, 0);
  return header.subarray(0, LEAF_HEADER_BYTES);
}

function writeLeaf(
  vaults: VaultColumns,
  slot: number,
  firstSlot: number,
  header: Uint8Array,
  into: Uint8Array,
  offset: number,
): number {
  for (let i = 0; i < OWNER_AT; i++) into[offset + i] = header[i] as number;
  // The slot is the last 20 bits of the vault id, zero in this template.
  const slotInBatch = firstSlot + slot;
  into[offset + SLOT_AT] = (header[SLOT_AT] as number) | (slotInBatch >>> 16);
  into[offset + SLOT_AT + 1] = slotInBatch >>> 8;
  into[offset + SLOT_AT + 2] = slotInBatch;
  const { owner } = vaults.holderOf(slot);
  for (let i = 0; i < owner.length; i++) into[offset + OWNER_AT + i] = owner[i] as number;
  for (let i = OWNER_AT + 20; i < AMOUNT_AT; i++) into[offset + i] = header[i] as number;
  writeWord(vaults.amountHigh[slot] as number, into, offset + AMOUNT_AT);
  writeWord(vaults.amountLow[slot] as number, into, offset + AMOUNT_AT + 4);
  let end = offset + LEAF_HEADER_BYTES;
  const { blobs } = vaults;
  for (let i = vaults.blobStart(slot), behind = vaults.blobEnd[slot] as number; i < behind; i++)
    into[end++] = blobs[i] as number;
  return end;
}

function writeWord(word: number, into: Uint8Array, at: number): void {
  into[at] = word >>> 24;
  into[at + 1] = word >>> 16;
  into[at + 2] = word >>> 8;
  into[at + 3] = word;
}

/** Same result as `readColumns`. `voids` is 1 for each void slot; null when there is none. */
export function encoderColumns(
  vaults: VaultColumns,
  assetAt: AssetIdAt,
  voids: Uint8Array | null = null,
): BatchColumns {
  const { count } = vaults;
  const columns = {
    asset: new Uint16Array(count),
    owner: new Uint32Array(count),
    amountWidth: new Uint8Array(count),
    blobBytes: new Uint8Array(count),
    digits: new Uint8Array(count),
    isDecimal: new Uint8Array(count),
    follows: new Uint8Array(count),
  };
  const owners = new OwnerDictionary(vaults);
  const assets = new Map<number, number>();
  let start = 0;
  for (let slot = 0; slot < count; slot++) {
    const end = vaults.blobEnd[slot] as number;
    if (voids?.[slot] === 1) {
      columns.asset[slot] = VOID_RUN;
      start = end;
      continue;
    }
    const digits = packableIn(vaults.blobs, start, end);
    columns.asset[slot] = indexIn(assets, vaults.assetIndex[slot] as number);
    columns.owner[slot] = owners.indexOf(vaults.userIndex[slot] as number);
    columns.amountWidth[slot] = widthOfWords(vaults.amountHigh[slot] as number, vaults.amountLow[slot] as number);
    columns.blobBytes[slot] = end - start;
    columns.digits[slot] = digits;
    if (isDecimalIn(vaults.blobs, start, digits)) {
      columns.isDecimal[slot] = 1;
      const isAlike = slot > 0 && columns.isDecimal[slot - 1] === 1 && columns.digits[slot - 1] === digits;
      if (isAlike && followsIn(vaults.blobs, start, digits)) columns.follows[slot] = 1;
    }
    start = end;
  }
  if (assets.size > MAX_BATCH_ASSETS) throw new Error("a batch of more assets than its manifest can name");
  const named = [...assets.keys()].map(assetAt).map(({ chainId, assetType }) => ({ chainId, assetType }));
  return { count, assets: ascendAssets(named, columns.asset), owners: owners.addresses, ...columns };
}

/** Owners in order of first appearance. Users can share an owner. */
class OwnerDictionary {
  readonly addresses: Address[] = [];
  readonly #vaults: VaultColumns;
  readonly #byUser = new Map<number, number>();
  readonly #byAddress = new Map<Address, number>();
  #lastUser = -1;
  #last = 0;

  constructor(vaults: VaultColumns) {
    this.#vaults = vaults;
  }

  indexOf(userIndex: number): number {
    if (userIndex === this.#lastUser) return this.#last;
    let index = this.#byUser.get(userIndex);
    if (index === undefined) {
      const owner = this.#vaults.holders.get(userIndex)?.owner;
      if (owner === undefined) throw new Error(`the holder ${userIndex} is not known`);
      const address = hexOf(owner, 0, owner.length);
      index = indexIn(this.#byAddress, address);
      this.#byUser.set(userIndex, index);
      this.addresses[index] = address;
    }
    this.#lastUser = userIndex;
    this.#last = index;
    return index;
  }
}

function packableIn(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > MAX_PACKED_DIGITS) return NOT_PACKABLE;
  for (let i = start; i < end; i++) if ((bytes[i] as number) >> 4 !== 3) return NOT_PACKABLE;
  return end - start;
}

function isDecimalIn(bytes: Uint8Array, start: number, digits: number): boolean {
  if (digits === 0 || digits === NOT_PACKABLE || (digits > 1 && bytes[start] === ZERO)) return false;
  for (let i = start; i < start + digits; i++) if ((bytes[i] as number) > NINE) return false;
  return true;
}

/** Whether a decimal follows the one before it with as many digits. Compares from the last digit, with carry. */
function followsIn(bytes: Uint8Array, start: number, digits: number): boolean {
  let carry = 1;
  for (let i = start + digits - 1; i >= start; i--) {
    const sum = (bytes[i - digits] as number) + carry;
    carry = sum > NINE ? 1 : 0;
    if ((carry === 1 ? ZERO : sum) !== bytes[i]) return false;
  }
  return carry === 0;
}

/** The records of a batch's data, from columns. */
export class ColumnRecords implements BatchRecords {
  readonly #vaults: VaultColumns;

  constructor(vaults: VaultColumns) {
    this.#vaults = vaults;
  }

  writeOwner(slot: number, to: BatchOutput): void {
    const { owner } = this.#vaults.holderOf(slot);
    to.slice(owner, 0, owner.length);
  }

  writeAmount(slot: number, size: number, to: BatchOutput): void {
    to.words(this.#vaults.amountHigh[slot] as number, this.#vaults.amountLow[slot] as number, size);
  }

  writePacked(slot: number, to: BatchOutput): void {
    to.packedSlice(this.#vaults.blobs, this.#vaults.blobStart(slot), this.#vaults.blobEnd[slot] as number);
  }

  writeRaw(slot: number, to: BatchOutput): void {
    to.slice(this.#vaults.blobs, this.#vaults.blobStart(slot), this.#vaults.blobEnd[slot] as number);
  }
}
