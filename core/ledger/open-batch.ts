import type { Limits, Mode, Standard } from "../model.ts";
import {
  ASSET_ENTRY_BYTES,
  BATCH_DATA_BASE_BYTES,
  vaultBytesBound,
  widthOfWords,
} from "../protocol/batch-data.ts";
import { MAX_FOREIGN_IDS } from "../protocol/blob.ts";
import { type BatchContent, contentGas, isWide } from "../protocol/commit-gas.ts";
import { elementCount } from "../protocol/elements.ts";
import { MAX_BATCH_ASSETS } from "../protocol/manifest.ts";
import type { TransferGroup } from "../protocol/transfer-data.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { shortDecimalIn } from "../store/token-id.ts";
import type { Holder, NewVault, TokenHashOf } from "../store/vault-columns.ts";
import {
  addsUp,
  amountOf,
  CHUNK_VAULTS,
  decodeIntoColumns,
  encodeColumns,
  VaultColumns,
  widthOfSum,
} from "../store/vault-columns.ts";

/** One of each mode. */
export const byMode = <T>(make: () => T): Readonly<Record<Mode, T>> => ({
  validium: make(),
  "zk-rollup": make(),
});

/**
 * Assets below this index share one number with the user as key of a vault. Higher indices use a
 * text.
 */
const ASSETS = 2 ** 21;

type MutableContent = { -readonly [K in keyof BatchContent]: BatchContent[K] };

/**
 * Tells the vaults of a user and an asset apart: the number of a short decimal blob, or the blob's
 * bytes as text.
 */
type BlobKey = number | string;

/** An open batch of a mode, with its vaults in memory, in the writer's view. */
export class OpenBatch {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly openedAt: number;
  // The place of the first vault among those of its mode, for the index of tokens
  readonly firstOrdinal: number;
  readonly isBeside: boolean;
  inBlobs = false; // Whether its data go into blobs. The first vault decides.
  /** The content of a batch of transfers, which takes no mints; its outputs are the vaults. */
  transfers: readonly TransferGroup[] | null = null;
  readonly vaults = new VaultColumns();
  mintCount = 0;
  readonly #limits: Limits;
  /** By user and asset, then by blob: the newest slot of each vault that can grow. */
  readonly #growing = new Map<number, Map<BlobKey, number>>();
  readonly #assets = new Set<number>();
  /** The distinct blobs of each foreign ERC-1155 token, each of which stands for an id. */
  readonly #foreignItems = new Map<number, Set<BlobKey>>();
  readonly #isForeign: (assetIndex: number) => boolean;
  #lastAsset = -1;
  readonly #dirtyChunks = new Set<number>();
  #lastDirty = -1;
  /** The inputs of the batch's gas bound; its bytes are an upper bound of the encoded data. */
  #content: MutableContent = {
    vaults: 0,
    runs: 0,
    assets: 0,
    bytes: BATCH_DATA_BASE_BYTES,
    blobBytes: 0,
  };
  /**
   * The result of {@link OpenBatch.#contentWith}: this and the content take turns, because an
   * object a vault is much.
   */
  #next: MutableContent = { ...this.#content };
  #elements = 0;

  constructor(
    mode: Mode,
    batchNumber: number,
    openedAt: number,
    firstOrdinal: number,
    limits: Limits,
    isForeign: (assetIndex: number) => boolean,
    isBeside = false,
  ) {
    this.mode = mode;
    this.batchNumber = batchNumber;
    this.openedAt = openedAt;
    this.firstOrdinal = firstOrdinal;
    this.#limits = limits;
    this.#isForeign = isForeign;
    this.isBeside = isBeside;
  }

  /** Time of the first vault, or of the opening while there is none. */
  get since(): number {
    return this.vaults.count === 0 ? this.openedAt : (this.vaults.createdAt[0] as number);
  }

  /**
   * The slot that this mint adds to; -1 when it needs a new one. An ERC-721 mint never adds, so it
   * does not ask.
   */
  growing(holder: Holder, vault: NewVault): number {
    const ofHolder = this.#growing.get(holdingOf(holder.userIndex, vault.assetIndex));
    const slot = ofHolder?.get(blobKeyOf(vault));
    if (slot === undefined) return -1;
    const { amountHigh, amountLow } = this.vaults;
    const [high, low] = [amountHigh[slot] as number, amountLow[slot] as number];
    if (!addsUp(high, low, vault.amountHigh, vault.amountLow)) return -1;
    const fits = this.inBlobs
      ? this.#hasElements(slot, vault)
      : this.#canWiden(slot, widthOfSum(high, low, vault));
    return fits ? slot : -1;
  }

  /**
   * The slot of a new vault; -1 when one commit would not carry the batch with it. The first vault
   * always fits.
   */
  add(holder: Holder, vault: NewVault, standard: Standard, now: number, tokenHash: number): number {
    const content = this.#contentWith(vault);
    if (this.vaults.count > 0 && !this.#fits(vault, content)) return -1;
    this.#account(vault, content);
    const slot = this.vaults.push(holder, vault, now, now, tokenHash);
    if (standard !== "erc721") this.#grows(holder.userIndex, vault, slot);
    this.mintCount++;
    this.#touch(slot);
    return slot;
  }

  #fits(vault: NewVault, content: BatchContent): boolean {
    if (!this.inBlobs && this.vaults.count >= this.#limits.batchVaults[this.mode]) return false;
    if (this.#foreignItems.size > 0 && this.#hasAllIds(vault)) return false;
    if (content.assets > MAX_BATCH_ASSETS) return false;
    return this.inBlobs
      ? this.#elements + elementsOf(vault) <= this.#limits.blobElements
      : this.#carries(content);
  }

  grow(slot: number, high: number, low: number, now: number): void {
    const { vaults } = this;
    // The new amount may need more bytes than the batch counted.
    const width = this.#widthAt(slot);
    if (this.inBlobs) this.#elements -= this.#elementsAt(slot);
    vaults.grow(slot, high, low, now);
    if (this.inBlobs) this.#elements += this.#elementsAt(slot);
    const wider = this.#widthAt(slot);
    if (wider !== width) this.#content = this.#widened(slot, width, wider);
    this.mintCount++;
    this.#touch(slot);
  }

  load(record: Uint8Array, standards: readonly Standard[], hashOf: TokenHashOf): void {
    const { vaults } = this;
    const first = vaults.count;
    decodeIntoColumns(record, vaults, hashOf);
    for (let slot = first; slot < vaults.count; slot++) {
      const assetIndex = vaults.assetIndex[slot] as number;
      const [amountHigh, amountLow] = [
        vaults.amountHigh[slot] as number,
        vaults.amountLow[slot] as number,
      ];
      const place = {
        blobs: vaults.blobs,
        start: vaults.blobStart(slot),
        end: vaults.blobEnd[slot] as number,
      };
      const vault = { assetIndex, amountHigh, amountLow, ...place };
      this.#account(vault, this.#contentWith(vault));
      if (standards[assetIndex] !== "erc721")
        this.#grows(vaults.userIndex[slot] as number, vault, slot);
    }
  }

  /** Writes the chunks that changed since the last call. Returns whether there are some. */
  flush(group: Group): boolean {
    if (this.#dirtyChunks.size === 0) return false;
    for (const chunk of this.#dirtyChunks) {
      const first = chunk * CHUNK_VAULTS;
      const end = Math.min(first + CHUNK_VAULTS, this.vaults.count);
      group.put(
        keyOf.chunk(this.mode, this.batchNumber, chunk),
        encodeColumns(this.vaults, first, end),
      );
    }
    this.#dirtyChunks.clear();
    this.#lastDirty = -1;
    return true;
  }

  #touch(slot: number): void {
    const chunk = Math.floor(slot / CHUNK_VAULTS);
    if (chunk === this.#lastDirty) return;
    this.#lastDirty = chunk;
    this.#dirtyChunks.add(chunk);
  }

  #grows(userIndex: number, vault: NewVault, slot: number): void {
    const holding = holdingOf(userIndex, vault.assetIndex);
    const ofHolder = this.#growing.get(holding) ?? new Map<BlobKey, number>();
    if (ofHolder.size === 0) this.#growing.set(holding, ofHolder);
    const blob = blobKeyOf(vault);
    ofHolder.set(blob, slot);
    if (blob === "" || !this.#isForeign(vault.assetIndex)) return;
    const items = this.#foreignItems.get(vault.assetIndex) ?? new Set();
    this.#foreignItems.set(vault.assetIndex, items.add(blob));
  }

  /**
   * Whether the vault's token has as many ids here as can be tried before the commit, and this is
   * another one.
   */
  #hasAllIds(vault: NewVault): boolean {
    const items = this.#foreignItems.get(vault.assetIndex);
    return items !== undefined && items.size >= MAX_FOREIGN_IDS && !items.has(blobKeyOf(vault));
  }

  /** Whether the batch's blobs still hold a slot's vault with a larger amount. */
  #hasElements(slot: number, more: NewVault): boolean {
    const amount = this.#amountAt(slot) + amountOf(more.amountHigh, more.amountLow);
    const elements = elementCount(amount, this.#blobAt(slot));
    return (
      elements > 0 &&
      this.#elements - this.#elementsAt(slot) + elements <= this.#limits.blobElements
    );
  }

  #elementsAt(slot: number): number {
    return elementCount(this.#amountAt(slot), this.#blobAt(slot));
  }

  #amountAt(slot: number): bigint {
    return amountOf(this.vaults.amountHigh[slot] as number, this.vaults.amountLow[slot] as number);
  }

  #blobAt(slot: number): Uint8Array {
    return this.vaults.blobs.subarray(this.vaults.blobStart(slot), this.vaults.blobEnd[slot]);
  }

  #carries(content: BatchContent): boolean {
    const { validiumBytes, rollupBytes, rollupGas } = this.#limits;
    if (this.mode === "validium") return content.bytes <= validiumBytes;
    return content.bytes <= rollupBytes && contentGas(content) <= rollupGas;
  }

  /** Whether the batch still fits when a slot's amount takes that many bytes. */
  #canWiden(slot: number, width: number): boolean {
    const before = this.#widthAt(slot);
    return width === before || this.#carries(this.#widened(slot, before, width));
  }

  #widened(slot: number, before: number, width: number): MutableContent {
    const { bytes, runs } = this.#content;
    const cuts =
      this.mode === "validium" ? 0 : this.#cutsAround(slot, width) - this.#cutsAround(slot, before);
    return { ...this.#content, bytes: bytes + width - before, runs: runs + cuts };
  }

  #contentWith(vault: NewVault): MutableContent {
    const { assetIndex, amountHigh, amountLow, start, end } = vault;
    const { vaults, runs, assets, bytes, blobBytes } = this.#content;
    const next = this.#next;
    const width = widthOfWords(amountHigh, amountLow);
    const isKnown = assetIndex === this.#lastAsset || this.#assets.has(assetIndex);
    next.vaults = vaults + 1;
    // Only the gas of a rollup batch depends on its runs.
    if (this.mode !== "validium")
      next.runs = runs + (this.#cutBetween(vaults - 1, assetIndex, width) ? 1 : 0);
    next.assets = isKnown ? assets : assets + 1;
    next.bytes = bytes + vaultBytesBound(width, end - start) + (isKnown ? 0 : ASSET_ENTRY_BYTES);
    next.blobBytes = blobBytes + end - start;
    return next;
  }

  /** Runs that begin at a slot or right after it, if its amount takes that many bytes. */
  #cutsAround(slot: number, width: number): number {
    const { assetIndex, count } = this.vaults;
    const before = this.#cutBetween(slot - 1, assetIndex[slot] as number, width) ? 1 : 0;
    if (slot + 1 === count) return before;
    const sameAsset = assetIndex[slot] === assetIndex[slot + 1];
    return before + (sameAsset && isWide(width) === isWide(this.#widthAt(slot + 1)) ? 0 : 1);
  }

  /** Whether the vault after this slot begins a run. True when there is none. */
  #cutBetween(slot: number, assetIndex: number, width: number): boolean {
    return (
      slot < 0 ||
      this.vaults.assetIndex[slot] !== assetIndex ||
      isWide(this.#widthAt(slot)) !== isWide(width)
    );
  }

  #widthAt(slot: number): number {
    return widthOfWords(
      this.vaults.amountHigh[slot] as number,
      this.vaults.amountLow[slot] as number,
    );
  }

  /** @param content - the last result of {@link OpenBatch.#contentWith}, for this vault */
  #account(vault: NewVault, content: MutableContent): void {
    this.#next = this.#content;
    this.#content = content;
    if (this.inBlobs) this.#elements += elementsOf(vault);
    if (vault.assetIndex === this.#lastAsset) return;
    this.#lastAsset = vault.assetIndex;
    this.#assets.add(vault.assetIndex);
  }
}

/** Exact below 2^53, which bounds every user index times {@link ASSETS}. */
function holdingOf(userIndex: number, assetIndex: number): number {
  if (assetIndex >= ASSETS) throw new Error("more assets than the open batch can tell apart");
  return userIndex * ASSETS + assetIndex;
}

/** Differs for different blobs: a text with as many characters as bytes is no number. */
function blobKeyOf({ blobs, start, end }: NewVault): BlobKey {
  if (start === end) return "";
  const short = shortDecimalIn(blobs, start, end);
  return short >= 0
    ? short
    : Buffer.from(blobs.buffer, blobs.byteOffset + start, end - start).toString("latin1");
}

/**
 * The field elements of a vault in a blob; 0 when no form holds it. The usual ones need no big
 * numbers.
 */
export function elementsOf({ amountHigh, amountLow, blobs, start, end }: NewVault): number {
  const isOne = amountHigh === 0 && amountLow === 1;
  if (start === end || (isOne && shortDecimalIn(blobs, start, end) >= 0)) return 1;
  return elementCount(amountOf(amountHigh, amountLow), blobs.subarray(start, end));
}

export function openBatchRecord(
  open: Pick<
    OpenBatch,
    "mode" | "batchNumber" | "mintCount" | "since" | "inBlobs" | "transfers"
  > & {
    readonly vaults: Pick<VaultColumns, "count">;
  },
): BatchRecord {
  // Written out, because each group of mints writes one: V8 copies a record of so many fields
  // slowly.
  return {
    mode: open.mode,
    batchNumber: open.batchNumber,
    status: "open",
    vaultCount: open.vaults.count,
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
    given: false,
    leftOut: null,
    inBlobs: open.inBlobs,
    transfers: open.transfers !== null,
  };
}

/**
 * The batches whose vaults are in memory: the open ones of each mode, and closed ones that may not
 * be on disk yet.
 *
 * Rollup vaults that blobs cannot hold need calldata. So a mode has up to two open batches with
 * consecutive numbers, of one kind each: the first vault decides the kind of the first one, and the
 * second one opens with the first vault that does not belong there. They close together. So no
 * order of mints makes batches smaller than one kind alone would be, whoever sends them; at most
 * each batch is followed by one of the other kind.
 */
export class UnsealedBatches {
  readonly #open = new Map<Mode, OpenBatch>();
  readonly #beside = new Map<Mode, OpenBatch>();
  readonly #closed = byMode(() => new Map<number, OpenBatch>()); // By number

  open(mode: Mode): OpenBatch {
    const open = this.#open.get(mode);
    if (open === undefined) throw new Error(`the open batch of ${mode} is not loaded`);
    return open;
  }

  beside(mode: Mode): OpenBatch | undefined {
    return this.#beside.get(mode);
  }

  /** The open batches of a mode, by number. */
  opened(mode: Mode): readonly OpenBatch[] {
    const beside = this.#beside.get(mode);
    return beside === undefined ? [this.open(mode)] : [this.open(mode), beside];
  }

  /**
   * Replaces a mode's open batches, which are closed then. A batch that goes beside the first
   * closes none.
   */
  setOpen(batch: OpenBatch): void {
    const { mode } = batch;
    if (batch.isBeside) {
      this.#beside.set(mode, batch);
      return;
    }
    if (this.#open.has(mode))
      for (const before of this.opened(mode)) this.#closed[mode].set(before.batchNumber, before);
    this.#beside.delete(mode);
    this.#open.set(mode, batch);
  }

  /** Replaces a mode's open batches and all closed ones, because L1's history lacks them. */
  replace(batch: OpenBatch): void {
    this.#closed[batch.mode].clear();
    this.#beside.delete(batch.mode);
    this.#open.set(batch.mode, batch);
  }

  /** Drops a closed batch that is on disk. Its vaults are read from there. */
  release({ mode, batchNumber }: Pick<OpenBatch, "mode" | "batchNumber">): void {
    this.#closed[mode].delete(batchNumber);
  }

  /** The batch of a place, if its vaults are in memory. */
  at({ mode, batchNumber }: VaultPlace): OpenBatch | undefined {
    for (const open of this.opened(mode)) if (open.batchNumber === batchNumber) return open;
    return this.#closed[mode].get(batchNumber);
  }
}
