import { addsUp, widthOfSum, widthOfWords } from "../columns/amount-words.ts";
import { type Holder, type NewVault, VaultColumns } from "../columns/vault-columns.ts";
import type { Limits, Mode, Standard } from "../model.ts";
import { ASSET_ENTRY_BYTES, BATCH_DATA_BASE_BYTES, vaultBytesBound } from "../protocol/batch-data.ts";
import { type BatchContent, contentGas, isWide } from "../protocol/commit-gas.ts";
import { MAX_BATCH_ASSETS } from "../protocol/manifest.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { chunkKey } from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeIntoColumns, encodeColumns, type TokenHashOf } from "../store/vault-chunk.ts";
import { shortDecimalIn } from "../tokens/token-id.ts";

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
  /** What the batch's gas depends on; its bytes are an upper bound of the encoded data. */
  #content: BatchContent = { vaults: 0, runs: 0, assets: 0, bytes: BATCH_DATA_BASE_BYTES, blobBytes: 0 };

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
    return fits && this.#canWiden(slot, widthOfSum(amountHigh[slot] as number, amountLow[slot] as number, vault))
      ? slot
      : -1;
  }

  /** Whether one more vault keeps the batch within what one commit can carry. The first one always fits. */
  fits(vault: NewVault): boolean {
    const count = this.vaults.count;
    if (count === 0) return true;
    if (count >= this.#limits.batchVaults[this.mode]) return false;
    const content = this.#contentWith(vault);
    return content.assets <= MAX_BATCH_ASSETS && this.#carries(content);
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
    const width = this.#widthAt(slot);
    vaults.grow(slot, high, low, now);
    const wider = this.#widthAt(slot);
    if (wider !== width) this.#content = this.#widened(slot, width, wider);
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

  /** Whether one commit can carry a batch of this content. */
  #carries(content: BatchContent): boolean {
    const { validiumBytes, rollupBytes, rollupGas } = this.#limits;
    if (this.mode === "validium") return content.bytes <= validiumBytes;
    return content.bytes <= rollupBytes && contentGas(content) <= rollupGas;
  }

  /** Whether the batch is still carried when this slot's amount takes so many bytes. */
  #canWiden(slot: number, width: number): boolean {
    const before = this.#widthAt(slot);
    return width === before || this.#carries(this.#widened(slot, before, width));
  }

  /** What the content is when a slot's amount takes more bytes than before. */
  #widened(slot: number, before: number, width: number): BatchContent {
    const { bytes, runs } = this.#content;
    const cuts = this.#cutsAround(slot, width) - this.#cutsAround(slot, before);
    return { ...this.#content, bytes: bytes + width - before, runs: runs + cuts };
  }

  /** What the content is with one more vault. */
  #contentWith(vault: NewVault): BatchContent {
    const { assetIndex, amountHigh, amountLow, start, end } = vault;
    const { vaults, runs, assets, bytes, blobBytes } = this.#content;
    const width = widthOfWords(amountHigh, amountLow);
    const isKnown = assetIndex === this.#lastAsset || this.#assets.has(assetIndex);
    return {
      vaults: vaults + 1,
      runs: runs + (this.#cutBetween(vaults - 1, assetIndex, width) ? 1 : 0),
      assets: isKnown ? assets : assets + 1,
      bytes: bytes + vaultBytesBound(width, end - start) + (isKnown ? 0 : ASSET_ENTRY_BYTES),
      blobBytes: blobBytes + end - start,
    };
  }

  /** Runs that begin at a slot or right behind it, if its amount takes so many bytes. */
  #cutsAround(slot: number, width: number): number {
    const { assetIndex, count } = this.vaults;
    const before = this.#cutBetween(slot - 1, assetIndex[slot] as number, width) ? 1 : 0;
    if (slot + 1 === count) return before;
    const sameAsset = assetIndex[slot] === assetIndex[slot + 1];
    return before + (sameAsset && isWide(width) === isWide(this.#widthAt(slot + 1)) ? 0 : 1);
  }

  /** Whether a vault behind this slot begins a run; it does where there is no such slot. */
  #cutBetween(slot: number, assetIndex: number, width: number): boolean {
    return slot < 0 || this.vaults.assetIndex[slot] !== assetIndex || isWide(this.#widthAt(slot)) !== isWide(width);
  }

  #widthAt(slot: number): number {
    return widthOfWords(this.vaults.amountHigh[slot] as number, this.vaults.amountLow[slot] as number);
  }

  #account(vault: NewVault): void {
    this.#content = this.#contentWith(vault);
    if (vault.assetIndex === this.#lastAsset) return;
    this.#lastAsset = vault.assetIndex;
    this.#assets.add(vault.assetIndex);
  }
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
    assets: null,
    content: null,
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
    leftOut: null,
  };
}

/** The batches whose vaults are in memory: of each mode the open one, and those that are closed but perhaps not on disk yet. */
export class UnsealedBatches {
  readonly #open = new Map<Mode, OpenBatch>();
  /** By number. */
  readonly #closed: Readonly<Record<Mode, Map<number, OpenBatch>>> = { validium: new Map(), "zk-rollup": new Map() };

  open(mode: Mode): OpenBatch {
    const open = this.#open.get(mode);
    if (open === undefined) throw new Error(`the open batch of ${mode} is not loaded`);
    return open;
  }

  /** Puts a batch in the place of its mode's open one, which is closed then. */
  setOpen(batch: OpenBatch): void {
    const before = this.#open.get(batch.mode);
    if (before !== undefined) this.#closed[batch.mode].set(before.batchNumber, before);
    this.#open.set(batch.mode, batch);
  }

  /** Puts a batch in the place of its mode's open one and of all that are closed: L1's history has none of them. */
  replace(batch: OpenBatch): void {
    this.#closed[batch.mode].clear();
    this.#open.set(batch.mode, batch);
  }

  /** A closed batch is on disk: its vaults are read from there. */
  release({ mode, batchNumber }: Pick<OpenBatch, "mode" | "batchNumber">): void {
    this.#closed[mode].delete(batchNumber);
  }

  /** The batch of a place when its vaults are in memory. */
  at({ mode, batchNumber }: VaultPlace): OpenBatch | undefined {
    const open = this.open(mode);
    return open.batchNumber === batchNumber ? open : this.#closed[mode].get(batchNumber);
  }
}
