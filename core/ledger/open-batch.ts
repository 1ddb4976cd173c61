import { addsUp, widthOfWords } from "../columns/amount-words.ts";
import { type Holder, type NewVault, VaultColumns } from "../columns/vault-columns.ts";
import type { Limits } from "../engine-types.ts";
import type { Mode, Standard } from "../model.ts";
import { ASSET_ENTRY_BYTES, BATCH_DATA_BASE_BYTES, vaultBytesBound } from "../protocol/batch-data.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { chunkKey } from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeIntoColumns, encodeColumns, type TokenHashOf } from "../store/vault-chunk.ts";
import { shortDecimalIn } from "../tokens/short-decimal.ts";

/**
 * Worst-case gas of a rollup commit, kept on the safe side of what `npm run gas` measures: the transaction and its storage, hashing
 * and folding one vault, its blob's bytes, and calldata by EIP-7623's floor of 40 a byte or 16 a byte beside the execution.
 */
const GAS = { base: 200_000, vault: 1_100, blobByte: 12, floorByte: 40, byte: 16 } as const;
/** Of an amount in batch data. */
const MOST_AMOUNT_BYTES = 8;
/** Assets of which a user's vaults are found by one number; the indices of all others lie behind. */
const ASSETS = 2 ** 21;

/** What the vaults of a user and an asset are told apart by: the number that a short decimal blob spells, or the blob's bytes as text. */
type BlobKey = number | string;

/** The batch of a mode that takes mints: its vaults in memory, as the writer has them. */
export class OpenBatch {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly openedAt: number;
  /** Vaults of all earlier batches of the mode. */
  readonly firstOrdinal: number;
  readonly vaults = new VaultColumns();
  mintCount = 0;
  readonly #limits: Limits;
  /** By user and asset, then by blob: the newest slot of each holding that can grow. */
  readonly #growing = new Map<number, Map<BlobKey, number>>();
  readonly #assets = new Set<number>();
  #lastAsset = -1;
  readonly #dirtyChunks = new Set<number>();
  #lastDirty = -1;
  /** Upper bound of the encoded data. */
  #bytes = BATCH_DATA_BASE_BYTES;
  #blobBytes = 0;

  constructor(mode: Mode, batchNumber: number, openedAt: number, firstOrdinal: number, limits: Limits) {
    this.mode = mode;
    this.batchNumber = batchNumber;
    this.openedAt = openedAt;
    this.firstOrdinal = firstOrdinal;
    this.#limits = limits;
  }

  get vaultCount(): number {
    return this.vaults.count;
  }

  /** When its first vault was made, or when it was opened while it has none. */
  get since(): number {
    return this.vaults.count === 0 ? this.openedAt : (this.vaults.createdAt[0] as number);
  }

  /** The slot that this mint adds to, or -1 when it needs a new one, or another batch. ERC-721 never adds up, so it is not asked for. */
  growing(holder: Holder, vault: NewVault): number {
    const ofHolder = this.#growing.get(holdingOf(holder.userIndex, vault.assetIndex));
    const slot = ofHolder?.get(blobKeyOf(vault));
    if (slot === undefined) return -1;
    const { amountHigh, amountLow } = this.vaults;
    const fits = addsUp(amountHigh[slot] as number, amountLow[slot] as number, vault.amountHigh, vault.amountLow);
    // A larger amount can take more bytes; a new vault takes more still, so where this has no room the batch is sealed.
    return fits && this.#carries(this.vaults.count, this.#bytes + MOST_AMOUNT_BYTES, this.#blobBytes) ? slot : -1;
  }

  /** Whether one more vault keeps the batch within what one commit can carry. The first one always fits. */
  fits(vault: NewVault): boolean {
    const count = this.vaults.count;
    if (count === 0) return true;
    if (count >= this.#limits.batchVaults[this.mode]) return false;
    const bytes = this.#bytes + this.#bytesOf(vault);
    return this.#carries(count + 1, bytes, this.#blobBytes + vault.end - vault.start);
  }

  /** Puts a new vault into the next slot, and returns the slot. */
  add(holder: Holder, vault: NewVault, standard: Standard, now: number, tokenHash: number): number {
    this.#account(vault);
    const slot = this.vaults.push(holder, vault, now, now, tokenHash);
    if (standard !== "erc721") this.#grows(holder.userIndex, vault, slot);
    this.mintCount++;
    this.#touch(slot);
    return slot;
  }

  /** Adds to a vault that {@link growing} named. */
  grow(slot: number, high: number, low: number, now: number): void {
    const { vaults } = this;
    // An amount may outgrow the width it was counted with.
    const before = widthOfWords(vaults.amountHigh[slot] as number, vaults.amountLow[slot] as number);
    vaults.grow(slot, high, low, now);
    this.#bytes += widthOfWords(vaults.amountHigh[slot] as number, vaults.amountLow[slot] as number) - before;
    this.mintCount++;
    this.#touch(slot);
  }

  /** Takes in the vaults of the next chunk as the store has them. */
  load(record: Uint8Array, standards: readonly Standard[], hashOf: TokenHashOf): void {
    const { vaults } = this;
    const first = vaults.count;
    decodeIntoColumns(record, vaults, hashOf);
    for (let slot = first; slot < vaults.count; slot++) {
      const assetIndex = vaults.assetIndex[slot] as number;
      const [amountHigh, amountLow] = [vaults.amountHigh[slot] as number, vaults.amountLow[slot] as number];
      const place = { blobs: vaults.blobs, start: vaults.blobStart(slot), end: vaults.blobEnd[slot] as number };
      const vault = { assetIndex, amountHigh, amountLow, ...place };
      this.#account(vault);
      if (standards[assetIndex] !== "erc721") this.#grows(vaults.userIndex[slot] as number, vault, slot);
    }
  }

  get dirty(): boolean {
    return this.#dirtyChunks.size > 0;
  }

  /** Writes the chunks that changed since the last time. */
  flush(group: Group): void {
    for (const chunk of this.#dirtyChunks) {
      const first = chunk * CHUNK_VAULTS;
      const end = Math.min(first + CHUNK_VAULTS, this.vaults.count);
      group.put(chunkKey(this.mode, this.batchNumber, chunk), encodeColumns(this.vaults, first, end));
    }
    this.#dirtyChunks.clear();
    this.#lastDirty = -1;
  }

  #touch(slot: number): void {
    const chunk = Math.floor(slot / CHUNK_VAULTS);
    if (chunk === this.#lastDirty) return;
    this.#lastDirty = chunk;
    this.#dirtyChunks.add(chunk);
  }

  #grows(userIndex: number, vault: NewVault, slot: number): void {
    const holding = holdingOf(userIndex, vault.assetIndex);
    let ofHolder = this.#growing.get(holding);
    if (ofHolder === undefined) {
      ofHolder = new Map();
      this.#growing.set(holding, ofHolder);
    }
    ofHolder.set(blobKeyOf(vault), slot);
  }

  /** Whether one commit can carry a batch of so many vaults, bytes of data, and bytes of blobs in these. */
  #carries(vaults: number, bytes: number, blobBytes: number): boolean {
    const { validiumBytes, rollupBytes, rollupGas: gas } = this.#limits;
    if (this.mode === "validium") return bytes <= validiumBytes;
    return bytes <= rollupBytes && rollupGas(vaults, bytes, blobBytes) <= gas;
  }

  #account(vault: NewVault): void {
    this.#bytes += this.#bytesOf(vault);
    this.#blobBytes += vault.end - vault.start;
    if (vault.assetIndex === this.#lastAsset) return;
    this.#lastAsset = vault.assetIndex;
    this.#assets.add(vault.assetIndex);
  }

  #bytesOf({ assetIndex, amountHigh, amountLow, start, end }: NewVault): number {
    const asset = assetIndex === this.#lastAsset || this.#assets.has(assetIndex) ? 0 : ASSET_ENTRY_BYTES;
    return asset + vaultBytesBound(1n, end - start) + widthOfWords(amountHigh, amountLow);
  }
}

/** Upper bound of the gas of committing a rollup batch. */
export function rollupGas(vaults: number, bytes: number, blobBytes: number): number {
  const execution = vaults * GAS.vault + blobBytes * GAS.blobByte;
  return GAS.base + Math.max(GAS.floorByte * bytes, GAS.byte * bytes + execution);
}

/** Exact below 2^53, where every user index times {@link ASSETS} is. */
function holdingOf(userIndex: number, assetIndex: number): number {
  if (assetIndex >= ASSETS) throw new Error("more assets than the open batch can tell apart");
  return userIndex * ASSETS + assetIndex;
}

/** Different for different blobs: text of as many characters as there are bytes is no number. */
function blobKeyOf({ blobs, start, end }: NewVault): BlobKey {
  if (start === end) return "";
  const short = shortDecimalIn(blobs, start, end);
  return short >= 0 ? short : String.fromCharCode(...blobs.subarray(start, end));
}

/** The record of a batch that is open. */
export function openBatchRecord(
  open: Pick<OpenBatch, "mode" | "batchNumber" | "vaultCount" | "mintCount" | "since">,
): BatchRecord {
  return {
    mode: open.mode,
    batchNumber: open.batchNumber,
    status: "open",
    vaultCount: open.vaultCount,
    mintCount: open.mintCount,
    batchRoot: null,
    dataHash: null,
    stateRoot: null,
    l1TxHash: null,
    l1BlockNumber: null,
    committedAt: null,
    l1Sequence: null,
    openedAt: open.since,
    sealedAt: null,
    submittedAt: null,
    settledAt: null,
    finalizedAt: null,
  };
}
