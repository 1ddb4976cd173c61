import type { Address, Mode } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { type BatchColumns, batchColumns, indexIn } from "../protocol/batch-columns.ts";
import { VOID_RUN } from "../protocol/batch-data.ts";
import { HASH_BYTES, hashMessages } from "../protocol/hex.ts";
import { MAX_BATCH_ASSETS } from "../protocol/manifest.ts";
import { LEAF_HEADER_BYTES, MAX_LEAF_BYTES, writeLeafPreimage } from "../protocol/vault.ts";
import { hexOf, type VaultColumns } from "../store/vault-columns.ts";

const LEAVES_PER_CHUNK = 1024; // Leaves packed and hashed at a time: few enough for the cache
// Offsets of the parts of a leaf's preimage that differ between vaults (docs/protocol.md 2).
const SLOT_AT = 6; // The three bytes with the slot and four bits of the batch number
const OWNER_AT = 17;
const AMOUNT_AT = 69;
const NO_OWNER = `0x${"00".repeat(20)}` as const;

export type AssetIdAt = (assetIndex: number) => AssetId;

/** Same result as `vaultLeaves`, straight from columns: 32 bytes a slot, from `firstSlot` on. */
export function columnLeaves(
  mode: Mode,
  batchNumber: number,
  vaults: VaultColumns,
  assetAt: AssetIdAt,
  firstSlot = 0,
) {
  const leaves = new Uint8Array(vaults.count * HASH_BYTES);
  const first = BigInt(batchNumber) << 20n;
  const vaultId = mode === "validium" ? first : (1n << 63n) | first;
  const headers = new Map<number, Uint8Array>();
  for (let start = 0; start < vaults.count; start += LEAVES_PER_CHUNK) {
    const count = Math.min(LEAVES_PER_CHUNK, vaults.count - start);
    const blobBytes = vaults.blobStart(start + count) - vaults.blobStart(start);
    // No larger than needed: a proof hashes one page, and clearing room for the longest blobs would
    // take longer than that.
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
  writeLeafPreimage(
    { vaultId, chainId, owner: NO_OWNER, assetType, amount: 1n, blob: "0x" },
    header,
    0,
  );
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
  const asset = new Uint16Array(count).fill(VOID_RUN);
  const owner = new Uint32Array(count);
  const owners = new OwnerDictionary(vaults);
  const assets = new Map<number, number>();
  for (let slot = 0; slot < count; slot++) {
    if (voids?.[slot] === 1) continue;
    asset[slot] = indexIn(assets, vaults.assetIndex[slot] as number);
    owner[slot] = owners.indexOf(vaults.userIndex[slot] as number);
  }
  if (assets.size > MAX_BATCH_ASSETS)
    throw new Error("a batch of more assets than its manifest can name");
  const named = [...assets.keys()]
    .map(assetAt)
    .map(({ chainId, assetType }) => ({ chainId, assetType }));
  return batchColumns(vaults, { assets: named, asset }, { owners: owners.owners, owner });
}

/** Owners in order of first appearance. Users can share an owner. */
class OwnerDictionary {
  readonly owners: Uint8Array[] = [];
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
      index = indexIn(this.#byAddress, hexOf(owner, 0, owner.length));
      this.#byUser.set(userIndex, index);
      this.owners[index] = owner;
    }
    this.#lastUser = userIndex;
    this.#last = index;
    return index;
  }
}
