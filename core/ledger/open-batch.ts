import type { Limits, Mode, Series, Standard } from "../model.ts";
import { batchDataBound } from "../protocol/batch-data.ts";
import { MAX_BATCH_ASSETS } from "../protocol/manifest.ts";
import { MAX_FOREIGN_IDS } from "../protocol/minting-blob.ts";
import type { TransferGroup } from "../protocol/transfer-data.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { payloadBytes, shortPayloadBytes, WORD_BYTES, writePayload } from "../protocol/words.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { shortDecimalIn } from "../store/token-id.ts";
import type { Holder, NewVault, TokenHashOf } from "../store/vault-columns.ts";
import {
  addsUp,
  CHUNK_VAULTS,
  decodeIntoColumns,
  encodeColumns,
  VaultColumns,
} from "../store/vault-columns.ts";

/** One of each mode. */
export const byMode = <T>(make: () => T): Readonly<Record<Mode, T>> => ({
  validium: make(),
  "zk-rollup": make(),
});

/** One of each series. */
export const bySeries = <T>(make: () => T): Readonly<Record<Series, T>> => ({
  ...byMode(make),
  made: make(),
});

/** Questions that a batch asks while it takes mints. */
export interface BatchRules {
  /** Whether an asset is an ERC-1155 token of a scheme that is not this project's own. */
  readonly isForeign: (assetIndex: number) => boolean;
  /** Whether rollup batches go into blobs now. */
  readonly takesBlobs: () => boolean;
}

/**
 * Assets below this index share one number with the user as key of a vault. Higher indices use a
 * text.
 */
const ASSETS = 2 ** 21;

/**
 * Tells the vaults of a user and an asset apart: the number of a short decimal minting blob, or
 * else its bytes as text.
 */
type MintingBlobKey = number | string;

/** An open batch of a mode, with its vaults in memory, in the writer's view. */
export class OpenBatch {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly openedAt: number;
  // The place of the first vault among those of its mode, for the index of tokens
  readonly firstOrdinal: number;
  /** The content of a batch of transfers, which takes no mints; its outputs are the vaults. */
  transfers: readonly TransferGroup[] | null = null;
  readonly vaults = new VaultColumns();
  mintCount = 0;
  readonly #limits: Limits;
  /** The newest slot of each vault that can grow, by user and asset, then by minting blob. */
  readonly #growing = new Map<number, Map<MintingBlobKey, number>>();
  readonly #assets = new Set<number>();
  /** The distinct minting blobs of each foreign ERC-1155 token, each of which stands for an id. */
  readonly #foreignItems = new Map<number, Set<MintingBlobKey>>();
  readonly #isForeign: (assetIndex: number) => boolean;
  #lastAsset = -1;
  readonly #dirtyChunks = new Set<number>();
  #lastDirty = -1;
  #continuations = 0;
  /** The payload of the vault that has the most. */
  #payloadBytes = 0;
  /** The vault that {@link growing} found: continuations that its sum adds, and its payload. */
  readonly #sum = { continuations: 0, payloadBytes: 0 };
  readonly #takesBlobs: () => boolean;

  constructor(
    mode: Mode,
    batchNumber: number,
    openedAt: number,
    firstOrdinal: number,
    limits: Limits,
    { isForeign, takesBlobs }: BatchRules,
  ) {
    this.mode = mode;
    this.batchNumber = batchNumber;
    this.openedAt = openedAt;
    this.firstOrdinal = firstOrdinal;
    this.#limits = limits;
    this.#isForeign = isForeign;
    this.#takesBlobs = () => mode === "zk-rollup" && takesBlobs();
  }

  /** Time of the first vault, or of the opening while there is none. */
  get since(): number {
    return this.vaults.count === 0 ? this.openedAt : this.vaults.createdAt[0]!;
  }

  /**
   * The slot that this mint adds to; -1 when it needs a new one. An ERC-721 mint never adds, so it
   * does not ask.
   */
  growing(holder: Holder, vault: NewVault): number {
    const ofHolder = this.#growing.get(holdingOf(holder.userIndex, vault.assetIndex));
    const slot = ofHolder?.get(mintingBlobKeyOf(vault));
    if (slot === undefined) return -1;
    const { amountHigh, amountLow } = this.vaults;
    const [high, low] = [amountHigh[slot]!, amountLow[slot]!];
    if (!addsUp(high, low, vault.amountHigh, vault.amountLow)) return -1;
    const before = roomOf(this.#vaultAt(slot));
    const sum = low + vault.amountLow;
    const carried = high + vault.amountHigh + (sum >= 2 ** 32 ? 1 : 0);
    const after = roomOf({ ...vault, amountHigh: carried, amountLow: sum % 2 ** 32 });
    const more = continuationsIn(after) - continuationsIn(before);
    if (!this.#holds(0, more, payloadIn(after), 0)) return -1;
    this.#sum.continuations = more;
    this.#sum.payloadBytes = payloadIn(after);
    return slot;
  }

  /**
   * The slot of a new vault; -1 when one commit would not carry the batch with it. The first vault
   * always fits.
   */
  add(holder: Holder, vault: NewVault, standard: Standard, now: number, tokenHash: number): number {
    const room = roomOf(vault);
    const isNew = vault.assetIndex !== this.#lastAsset && !this.#assets.has(vault.assetIndex);
    if (this.vaults.count > 0 && !this.#fits(vault, room, isNew)) return -1;
    this.#account(vault.assetIndex, continuationsIn(room), payloadIn(room));
    const slot = this.vaults.push(holder, vault, now, now, tokenHash);
    if (standard !== "erc721") this.#grows(holder.userIndex, vault, slot);
    this.mintCount++;
    this.#touch(slot);
    return slot;
  }

  #fits(vault: NewVault, room: number, isNewAsset: boolean): boolean {
    if (this.#foreignItems.size > 0 && this.#hasAllIds(vault)) return false;
    if (isNewAsset && this.#assets.size >= MAX_BATCH_ASSETS) return false;
    return this.#holds(1, continuationsIn(room), payloadIn(room), isNewAsset ? 1 : 0);
  }

  /**
   * Whether one commit still carries the batch with so many more slots, continuations and assets.
   */
  #holds(slots: number, continuations: number, payloadBytes: number, assets: number): boolean {
    const { batchVaults, blobElements, validiumBytes, rollupBytes } = this.#limits;
    const count = this.vaults.count + slots;
    const behind = this.#continuations + continuations;
    if (this.#takesBlobs()) return count + behind <= blobElements;
    const width = Math.max(this.#payloadBytes, payloadBytes);
    const bytes = batchDataBound(this.#assets.size + assets, count, width, behind);
    return (
      count <= batchVaults[this.mode] &&
      bytes <= (this.mode === "validium" ? validiumBytes : rollupBytes)
    );
  }

  /** Whether the batch's data go into blobs if it is sealed now: see {@link BatchRules}. */
  get inBlobs(): boolean {
    if (this.mode === "validium" || this.transfers !== null || this.vaults.count === 0)
      return false;
    // A batch that was filled for blobs, and that calldata do not hold, waits for them.
    return this.#takesBlobs() || !this.#holds(0, 0, 0, 0);
  }

  /** Adds to the slot that {@link growing} has just found for this mint. */
  grow(slot: number, high: number, low: number, now: number): void {
    this.vaults.grow(slot, high, low, now);
    const { continuations, payloadBytes } = this.#sum;
    this.#account(this.vaults.assetIndex[slot]!, continuations, payloadBytes);
    this.mintCount++;
    this.#touch(slot);
  }

  load(record: Uint8Array, standards: readonly Standard[], hashOf: TokenHashOf): void {
    const { vaults } = this;
    const first = vaults.count;
    decodeIntoColumns(record, vaults, hashOf);
    for (let slot = first; slot < vaults.count; slot++) {
      const vault = this.#vaultAt(slot);
      const room = roomOf(vault);
      this.#account(vault.assetIndex, continuationsIn(room), payloadIn(room));
      if (standards[vault.assetIndex] !== "erc721")
        this.#grows(vaults.userIndex[slot]!, vault, slot);
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
    const ofHolder = this.#growing.get(holding) ?? new Map<MintingBlobKey, number>();
    if (ofHolder.size === 0) this.#growing.set(holding, ofHolder);
    const mintingBlob = mintingBlobKeyOf(vault);
    ofHolder.set(mintingBlob, slot);
    if (mintingBlob === "" || !this.#isForeign(vault.assetIndex)) return;
    const items = this.#foreignItems.get(vault.assetIndex) ?? new Set();
    this.#foreignItems.set(vault.assetIndex, items.add(mintingBlob));
  }

  /**
   * Whether the vault's token has as many ids here as can be tried before the commit, and this is
   * another one.
   */
  #hasAllIds(vault: NewVault): boolean {
    const items = this.#foreignItems.get(vault.assetIndex);
    return (
      items !== undefined && items.size >= MAX_FOREIGN_IDS && !items.has(mintingBlobKeyOf(vault))
    );
  }

  #vaultAt(slot: number): NewVault {
    const { vaults } = this;
    return {
      assetIndex: vaults.assetIndex[slot]!,
      amountHigh: vaults.amountHigh[slot]!,
      amountLow: vaults.amountLow[slot]!,
      mintingBlobs: vaults.mintingBlobs,
      start: vaults.mintingBlobStart(slot),
      end: vaults.mintingBlobEnd[slot]!,
    };
  }

  #account(assetIndex: number, continuations: number, payloadBytes: number): void {
    this.#continuations += continuations;
    this.#payloadBytes = Math.max(this.#payloadBytes, payloadBytes);
    if (assetIndex === this.#lastAsset) return;
    this.#lastAsset = assetIndex;
    this.#assets.add(assetIndex);
  }
}

const HEAD = new Uint8Array(WORD_BYTES);

/**
 * Continuations and bytes of the payload that a vault takes, in one number: a mint is a hot path.
 */
function roomOf({ amountHigh, amountLow, mintingBlobs, start, end }: NewVault): number {
  // A token with a short number as its id, the usual case, has no continuations.
  const bytes = shortPayloadBytes(amountHigh, amountLow, shortDecimalIn(mintingBlobs, start, end));
  if (bytes >= 0) return bytes;
  const continuations = writePayload(HEAD, 0, amountHigh, amountLow, mintingBlobs, start, end);
  return continuations * 16 + payloadBytes(HEAD, 0);
}

const continuationsIn = (room: number) => room >> 4;
const payloadIn = (room: number) => room & 15;

/** Exact below 2^53, which bounds every user index times {@link ASSETS}. */
function holdingOf(userIndex: number, assetIndex: number): number {
  if (assetIndex >= ASSETS) throw new Error("more assets than the open batch can tell apart");
  return userIndex * ASSETS + assetIndex;
}

/** Differs for different blobs: a text with as many characters as bytes is no number. */
function mintingBlobKeyOf({ mintingBlobs, start, end }: NewVault): MintingBlobKey {
  if (start === end) return "";
  const short = shortDecimalIn(mintingBlobs, start, end);
  return short >= 0
    ? short
    : Buffer.from(mintingBlobs.buffer, mintingBlobs.byteOffset + start, end - start).toString(
        "latin1",
      );
}

export function openBatchRecord(
  open: Pick<OpenBatch, "mode" | "batchNumber" | "mintCount" | "since" | "transfers"> & {
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
    inBlobs: false,
    transfers: open.transfers !== null,
  };
}

/**
 * The batches whose vaults are in memory, in the writer's view: the open one of each mode, and
 * closed ones that may not be on disk yet.
 */
export class UnsealedBatches {
  readonly #open = new Map<Mode, OpenBatch>();
  readonly #closed = byMode(() => new Map<number, OpenBatch>());

  /** The batch that takes a change's mints. */
  open(_group: Group, mode: Mode): OpenBatch {
    const open = this.#open.get(mode);
    if (open === undefined) throw new Error(`the open batch of ${mode} is not loaded`);
    return open;
  }

  openNumber(mode: Mode): number {
    return this.#open.get(mode)?.batchNumber ?? 0;
  }

  /** Replaces a mode's open batch, which is closed then. */
  setOpen(batch: OpenBatch): void {
    const before = this.#open.get(batch.mode);
    if (before !== undefined) {
      this.#closed[batch.mode].set(before.batchNumber, before);
      batch.vaults.reserveLike(before.vaults);
    }
    this.#open.set(batch.mode, batch);
  }

  /** Drops a mode's batches, because L1's history lacks them. */
  forget(mode: Mode): void {
    this.#closed[mode].clear();
    this.#open.delete(mode);
  }

  /** Drops a closed batch that is on disk. Its vaults are read from there. */
  release({ mode, batchNumber }: Pick<OpenBatch, "mode" | "batchNumber">): void {
    this.#closed[mode].delete(batchNumber);
  }

  /** The batch of a place, if its vaults are in memory. */
  at({ mode, batchNumber }: VaultPlace): OpenBatch | undefined {
    if (mode === "made") return undefined;
    const open = this.#open.get(mode);
    return open?.batchNumber === batchNumber ? open : this.#closed[mode].get(batchNumber);
  }
}
