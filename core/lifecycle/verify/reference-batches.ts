import { type Hash, type Hex, MODES, type Mode } from "../../model.ts";
import type { AssetId, VaultContent } from "../../ports.ts";
import type { VaultEntry } from "../../protocol/batch-data.ts";
import { decodeBatch, placeVaults } from "../../protocol/batch-decoder.ts";
import { encodeBatchData } from "../../protocol/batch-encoder.ts";
import { BatchTree } from "../../protocol/batch-tree.ts";
import {
  type BlobBatch,
  blobBatchData,
  blobContent,
  blobsIn,
  encodeBlobBatch,
  manifestHash,
  readBlobBatchData,
} from "../../protocol/blob-batch.ts";
import { stateLeaf } from "../../protocol/commitment.ts";
import { keccak256 } from "../../protocol/hash.ts";
import { bytesToHex, hexToBytes } from "../../protocol/hex.ts";
import { versionedHash } from "../../protocol/kzg.ts";
import { kindOf, manifestRoot, batchRoot as rootOf } from "../../protocol/manifest.ts";
import { StateTree } from "../../protocol/state-tree.ts";
import { transferBatchRoot } from "../../protocol/transfer.ts";
import { encodeTransferData, type TransferGroup, transferLeaves } from "../../protocol/transfer-data.ts";
import { packVaultId, type VaultPlace, vaultLeaves } from "../../protocol/vault.ts";
import type { EntryOf } from "../../store/entries.ts";
import type { BatchEventType } from "../../store/event-record.ts";
import { encodeRecord } from "../../store/layout.ts";
import { type AssetRecord, type BatchRecord, type VoidedRun, type VoidRun, voidsRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import type { ReferenceEvents } from "./reference-events.ts";
import { batchExpected, type Expected, expectedRecord } from "./reference-records.ts";

/** The journal's claims about a batch. */
export type Roots = Pick<BatchRecord, "batchRoot" | "dataHash" | "stateRoot">;
/** The commitment to a blob. */
export type Commit = (blob: Uint8Array) => Promise<Hex>;
type AssetAt = (assetIndex: number) => AssetRecord | undefined;
type Place = Pick<BatchRecord, "mode" | "batchNumber">;

export const NO_ASSET = {
  assetId: "00000000-0000-0000-0000-000000000000",
  chainId: 0n,
  assetType: `0x${"00".repeat(32)}`,
} as const;

export function batchName({ mode, batchNumber }: Place): string {
  return `batch ${batchNumber} of ${mode}`;
}

/** The vaults of a batch by slot; null for a void slot. */
export function withoutVoids(vaults: readonly StoredVault[], runs: readonly VoidRun[]): (StoredVault | null)[] {
  const held: (StoredVault | null)[] = [...vaults];
  for (const { firstSlot, count } of runs) held.fill(null, firstSlot, firstSlot + count);
  return held;
}

/** The state of a batch that is sealed anew. */
const UNSENT = { status: "sealed", l1TxHash: null, submittedAt: null, leftOut: null, given: false } as const;

type Given = NonNullable<EntryOf<"historyAdopted">["batches"][number]["given"]>;

function withTree(
  { mode, batchNumber }: Place,
  slots: readonly (VaultContent | null)[],
  data: Uint8Array,
  assets: readonly AssetId[],
) {
  const tree = new BatchTree(vaultLeaves(slots));
  const [content, dataHash] = [bytesToHex(tree.root), bytesToHex(keccak256(data))];
  const batchRoot = rootOf(kindOf(mode), manifestRoot(assets), content);
  const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount: slots.length, dataHash, batchRoot }));
  return { data, pageRoots: tree.pageRoots(), leaf, assets, content, batchRoot, dataHash };
}

function isIn({ firstSlot, count }: VoidRun, slot: number): boolean {
  return slot >= firstSlot && slot < firstSlot + count;
}

function deriveTransfers(batchNumber: number, groups: readonly TransferGroup[]) {
  const data = encodeTransferData(groups);
  const tree = new BatchTree(transferLeaves(groups, batchNumber));
  const [content, dataHash] = [bytesToHex(tree.root), bytesToHex(keccak256(data))];
  const batchRoot = transferBatchRoot(content);
  const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount: tree.count, dataHash, batchRoot }));
  return { data, pageRoots: tree.pageRoots(), leaf, assets: [], content, batchRoot, dataHash };
}

/** The part of the reference for sealed batches: roots, void slots, status on L1. */
export class ReferenceBatches {
  readonly #report: (problem: string) => void;
  readonly #records: Record<Mode, BatchRecord[]> = { validium: [], "zk-rollup": [] };
  readonly #trees: Record<Mode, StateTree> = { validium: new StateTree(), "zk-rollup": new StateTree() };
  /** Leaves of the state trees by batch number, 32 bytes each. */
  readonly #leaves: Record<Mode, Uint8Array[]> = { validium: [], "zk-rollup": [] };
  readonly #voids = new Map<string, VoidedRun[]>();
  /** The data of batches that another operator made as no engine would. */
  readonly #given = new Map<string, Given>();
  /** How many further entries make slots of a batch void. */
  readonly #coming: Map<string, number>;
  /** The vaults of sealed batches with slots that become void later. */
  readonly #kept = new Map<string, readonly StoredVault[]>();
  readonly #isReplaced: (place: Place) => boolean;
  readonly #events: ReferenceEvents;
  readonly #assetAt: AssetAt;
  readonly #commit: Commit;
  readonly #tokensOf: (vaults: readonly (StoredVault | null)[]) => Buffer;

  /**
   * @param voidings - by {@link batchName}: number of journal entries that make slots of the batch void
   * @param isReplaced - whether L1's batch will replace this one
   * @param tokensOf - the record of a batch's tokens; null for a void slot
   * @param commit - the commitment to a blob
   */
  constructor(
    report: (problem: string) => void,
    voidings: ReadonlyMap<string, number>,
    isReplaced: (place: Place) => boolean,
    events: ReferenceEvents,
    assetAt: AssetAt,
    tokensOf: (vaults: readonly (StoredVault | null)[]) => Buffer,
    commit: Commit,
  ) {
    this.#report = report;
    this.#coming = new Map(voidings);
    this.#isReplaced = isReplaced;
    this.#events = events;
    this.#assetAt = assetAt;
    this.#tokensOf = tokensOf;
    this.#commit = commit;
  }

  count(mode: Mode): number {
    return this.#records[mode].length;
  }

  at({ mode, batchNumber }: Place): BatchRecord | undefined {
    return this.#records[mode][batchNumber];
  }

  /** A sealed vault of a batch whose records a later entry changes. */
  keptVault(place: VaultPlace): StoredVault | undefined {
    return this.#kept.get(batchName(place))?.[place.slot];
  }

  isVoid(place: VaultPlace): boolean {
    return this.#voids.get(batchName(place))?.some((run) => isIn(run, place.slot)) ?? false;
  }

  /** Seals a batch with these vaults. Returns the final records and the roots. */
  async seal(
    entry: EntryOf<"batchSealed">,
    vaults: readonly StoredVault[],
    time: number,
    inBlobs: boolean,
    groups: readonly TransferGroup[] | null = null,
  ) {
    const { mode, batchNumber, vaultCount, mintCount } = entry;
    const none = { l1TxHash: null, l1BlockNumber: null, committedAt: null, l1Sequence: null };
    const notYet = { submittedAt: null, settledAt: null, finalizedAt: null, leftOut: null };
    const openedAt = vaults[0]?.createdAt ?? time;
    const transfers = groups !== null;
    const given = this.#given.has(batchName(entry));
    const facts = { mode, batchNumber, status: "sealed" as const, vaultCount, mintCount, inBlobs, transfers, given };
    const { data, pageRoots, leaf, assets, content, ...derived } =
      groups === null ? await this.#derive(facts, vaults) : deriveTransfers(batchNumber, groups);
    this.#leaves[mode].push(leaf);
    this.#trees[mode].append(leaf);
    const roots: Roots = { ...derived, stateRoot: bytesToHex(this.#trees[mode].root) };
    const sealed = { sealedAt: time, assets, content, ...roots };
    const record: BatchRecord = { ...facts, ...none, openedAt, ...notYet, ...sealed };
    this.#records[mode].push(record);
    const applications = this.#events.seal(record, vaults);
    const told = this.#events.batch("batch.sealed", record, time);
    if (!this.#isReplaced(entry)) told.push(applications);
    // A transfer makes no token.
    const tokens = groups === null ? vaults : [];
    return { roots, expected: [...told, ...this.#settledRecords(entry, vaults, data, pageRoots, tokens)] };
  }

  /** A batch of transfers becomes one of void slots. Returns the final records and the new roots. */
  async takeBack({ batchNumber, failure }: EntryOf<"transfersTakenBack">, time: number) {
    const place = { mode: "zk-rollup", batchNumber } as const;
    const batch = this.at(place);
    if (batch?.transfers !== true || batch.status === "settled" || batch.status === "finalized") return null;
    const name = batchName(place);
    const vaults = this.#kept.get(name) ?? [];
    const voids = [{ firstSlot: 0, count: vaults.length, failure }];
    this.#voids.set(
      name,
      voids.map((run) => ({ ...run, voidedAt: time, leftOut: false })),
    );
    this.#coming.set(name, (this.#coming.get(name) ?? 1) - 1);
    const emptied = { ...batch, transfers: false };
    const { data, pageRoots, leaf, ...derived } = await this.#derive(emptied, vaults);
    this.#leaves["zk-rollup"][batchNumber] = leaf;
    this.#records["zk-rollup"][batchNumber] = { ...emptied, ...derived, ...UNSENT };
    this.#rebuildTree("zk-rollup", batchNumber);
    const expected = this.#settledRecords(place, vaults, data, pageRoots);
    return { roots: this.at(place) as Roots, voids: { ...place, voids }, expected };
  }

  /** L1's batch replaces a dropped one. */
  adopt(
    entry: Omit<EntryOf<"batchSealed">, "kind">,
    vaults: readonly StoredVault[],
    voids: readonly VoidRun[],
    time: number,
    inBlobs: boolean,
    groups: readonly TransferGroup[] | null,
    given: Given | null,
  ) {
    if (given !== null) this.#given.set(batchName(entry), given);
    if (voids.length > 0) {
      const since = voids.map((run) => ({ ...run, voidedAt: time, leftOut: false }));
      this.#voids.set(batchName(entry), since);
    }
    return this.seal({ kind: "batchSealed", ...entry }, vaults, time, inBlobs, groups);
  }

  /** Drops a mode's batches from `first` on. Returns their vaults, null for a void slot, and all of them. */
  drop(mode: Mode, first: number) {
    const dropped = this.#records[mode].splice(first).map(({ batchNumber, transfers }) => {
      const name = batchName({ mode, batchNumber });
      const [all, runs] = [this.#kept.get(name) ?? [], this.#voids.get(name) ?? []];
      this.#kept.delete(name);
      this.#voids.delete(name);
      this.#given.delete(name);
      return { mode, batchNumber, transfers, all, vaults: withoutVoids(all, runs) };
    });
    this.#leaves[mode].splice(first);
    this.#rebuildTree(mode, first);
    return dropped;
  }

  /** Makes slots void. Returns their vaults, the final records, and the new roots. */
  async voidSlots(entry: EntryOf<"slotsVoided">, time: number) {
    const { mode, batchNumber } = entry;
    const batch = this.at(entry);
    if (batch === undefined || batch.status === "settled" || batch.status === "finalized") return null;
    const failed = this.#fail(entry, time, false);
    if (failed === null) return null;
    const { vaults, voided, told } = failed;
    this.#given.delete(batchName(entry));
    const { data, pageRoots, leaf, ...derived } = await this.#derive(batch, vaults);
    this.#leaves[mode][batchNumber] = leaf;
    this.#records[mode][batchNumber] = { ...batch, ...derived, ...UNSENT };
    this.#rebuildTree(mode, batchNumber);
    const expected = [...told, ...this.#settledRecords(entry, vaults, data, pageRoots)];
    return { roots: this.at(entry) as Roots, voided, expected };
  }

  /** Sets the assets that L1 leaves out of a batch. Returns the roots; null when L1 cannot leave them out. */
  setLeftOut(entry: EntryOf<"assetsLeftOut">): Roots | null {
    const { mode, batchNumber, assets: leftOut } = entry;
    const batch = this.at(entry);
    const places = leftOut.map(({ asset }) => asset);
    const ascend = places.every((place, i) => place > (places[i - 1] ?? -1) && place < (batch?.assets?.length ?? 0));
    if (batch === undefined || !ascend || batch.status === "settled" || batch.status === "finalized") return null;
    const { vaultCount, dataHash, content, assets, inBlobs, transfers } = batch;
    if (assets === null || content === null || dataHash === null) return null;
    const batchRoot = rootOf(kindOf(mode, inBlobs, transfers), manifestRoot(assets, places), content);
    this.#leaves[mode][batchNumber] = hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot }));
    this.#records[mode][batchNumber] = { ...batch, batchRoot, leftOut: leftOut.length === 0 ? null : leftOut };
    this.#rebuildTree(mode, batchNumber);
    return this.at(entry) as Roots;
  }

  /** Makes the slots of left-out assets void for good. Returns their vaults and the final records. */
  async leaveOut(entry: EntryOf<"slotsLeftOut">, time: number) {
    const batch = this.at(entry);
    const failureOf = ({ assetIndex }: StoredVault) => {
      const { chainId, assetType } = this.#assetAt(assetIndex) ?? NO_ASSET;
      const isIt = (asset?: AssetId) => asset?.chainId === chainId && asset.assetType === assetType;
      return batch?.leftOut?.find(({ asset }) => isIt(batch.assets?.[asset]))?.failure;
    };
    const known = this.#voids.get(batchName(entry)) ?? [];
    const held = withoutVoids(this.#kept.get(batchName(entry)) ?? [], known);
    const expectedFailures = held.map((vault) => (vault === null ? undefined : failureOf(vault)));
    const given = held.map((_, slot) => entry.voids.find((run) => isIn(run, slot))?.failure);
    const differs = given.some((failure, slot) => failure !== expectedFailures[slot]);
    if (batch?.status !== "finalized" || differs) return null;
    const failed = this.#fail(entry, time, true);
    if (failed === null) return null;
    const { vaults, voided, told } = failed;
    const { data, pageRoots } = await this.#derive(batch, vaults);
    return { voided, expected: [...told, ...this.#settledRecords(entry, vaults, data, pageRoots)] };
  }

  /** Marks slots as void; null unless each holds a vault. */
  #fail(entry: EntryOf<"slotsVoided"> | EntryOf<"slotsLeftOut">, time: number, leftOut: boolean) {
    const name = batchName(entry);
    const vaults = this.#kept.get(name) ?? [];
    const known = this.#voids.get(name) ?? [];
    const held = withoutVoids(vaults, known);
    const slots = entry.voids.flatMap(({ firstSlot, count }) => Array.from({ length: count }, (_, i) => firstSlot + i));
    if (!slots.every((slot) => slot < held.length && held[slot] !== null)) return null;
    const runs = [...known, ...entry.voids.map((run) => ({ ...run, voidedAt: time, leftOut }))];
    this.#voids.set(
      name,
      runs.sort((a, b) => a.firstSlot - b.firstSlot),
    );
    this.#coming.set(name, (this.#coming.get(name) ?? 1) - 1);
    const voided = slots.map((slot) => ({ slot, vault: vaults[slot] as StoredVault }));
    return { vaults, voided, told: this.#events.failMints(entry, vaults, time) };
  }

  /** A batch's commit was sent, or L1 has taken it. */
  progress(entry: EntryOf<"batchSubmitted"> | EntryOf<"batchCommitted">, time: number): Expected[] {
    const submittedAt = this.at(entry)?.submittedAt ?? time;
    const { txHash: l1TxHash } = entry;
    if (this.at(entry) === undefined) this.#report(`the journal has ${batchName(entry)} on L1 before it is sealed`);
    if (entry.kind === "batchSubmitted") {
      return this.change(entry, { status: "submitted", l1TxHash, submittedAt }, "batch.submitted", time);
    }
    const { blockNumber: l1BlockNumber, committedAt, l1Sequence } = entry;
    const onL1 = { l1TxHash, l1BlockNumber, committedAt, l1Sequence, submittedAt };
    return this.change(
      entry,
      { status: "settled", ...onL1, settledAt: time, finalizedAt: null },
      "batch.settled",
      time,
    );
  }

  /** Changes a sealed batch, and adds an event for each application with vaults in it. */
  change(place: Place, change: Partial<BatchRecord>, type: BatchEventType, time: number): Expected[] {
    const known = this.at(place);
    if (known === undefined) return [];
    const changed = { ...known, ...change };
    this.#records[place.mode][place.batchNumber] = changed;
    return this.#events.batch(type, changed, time);
  }

  /** Changes the batches that L1 committed in a range of blocks. */
  changeCommitted(
    statuses: readonly BatchRecord["status"][],
    within: (block: bigint) => boolean,
    change: Partial<BatchRecord>,
    type: BatchEventType,
    time: number,
  ): Expected[] {
    return MODES.flatMap((mode) => this.#records[mode]).flatMap((record) => {
      const { status, l1BlockNumber } = record;
      const meant = statuses.includes(status) && l1BlockNumber !== null && within(l1BlockNumber);
      return meant ? this.change(record, change, type, time) : [];
    });
  }

  /** The root of the state tree over the sealed batches. */
  root(mode: Mode): Hash {
    return bytesToHex(this.#trees[mode].root);
  }

  finish(): Expected[] {
    const records = MODES.flatMap((mode) => this.#records[mode]);
    const voids = records.flatMap((record) => {
      const runs = this.#voids.get(batchName(record));
      if (runs === undefined) return [];
      const { mode, batchNumber } = record;
      const value = encodeRecord(voidsRecord, { mode, batchNumber, runs });
      return [expectedRecord(keys.voidsKey(mode, batchNumber), value, `the void slots of ${batchName(record)}`)];
    });
    return [...records.map(batchExpected), ...voids];
  }

  async #derive({ mode, batchNumber, inBlobs }: Place & Pick<BatchRecord, "inBlobs">, vaults: readonly StoredVault[]) {
    const name = batchName({ mode, batchNumber });
    const given = this.#given.get(name);
    if (given !== undefined) return this.#deriveGiven({ mode, batchNumber }, given, inBlobs);
    const runs = this.#voids.get(name) ?? [];
    const zero = runs.filter(({ leftOut }) => !leftOut);
    const contents = withoutVoids(vaults, zero).map((vault, slot) => {
      if (vault === null) return null;
      const { chainId, assetType } = this.#assetAt(vault.assetIndex) ?? NO_ASSET;
      const { owner, amount, blob } = vault;
      return { vaultId: packVaultId({ mode, batchNumber, slot }), chainId, owner, assetType, amount, blob };
    });
    if (inBlobs) return this.#deriveBlobs(batchNumber, contents);
    // The root of one void slot is zero, which the contract refuses. Such a batch has two (docs/protocol.md 4).
    const slots = contents.length === 1 && contents[0] === null ? [null, null] : contents;
    const data = encodeBatchData(slots, mode === "validium" ? "bytes" : "gas");
    return withTree({ mode, batchNumber }, slots, data, decodeBatch(data).assets);
  }

  #deriveGiven(place: Place, { data: hex, assets }: Given, inBlobs: boolean) {
    const data = hexToBytes(hex);
    if (inBlobs) return this.#withBlobs(place.batchNumber, readBlobBatchData(data));
    return withTree(place, placeVaults(decodeBatch(data).slots, place.mode, place.batchNumber), data, assets);
  }

  #deriveBlobs(batchNumber: number, slots: readonly (VaultEntry | null)[]) {
    return this.#withBlobs(batchNumber, encodeBlobBatch(slots));
  }

  async #withBlobs(batchNumber: number, batch: BlobBatch) {
    const { vaultCount, assets } = batch;
    const commitments: Hex[] = [];
    for (const blob of blobsIn(batch)) commitments.push(await this.#commit(blob));
    const content = blobContent(vaultCount, manifestHash(assets), commitments.map(versionedHash));
    const roots = { batchRoot: rootOf("blobs", manifestRoot(assets), content), dataHash: content };
    const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount, ...roots }));
    const pageRoots = Buffer.concat(commitments.map((commitment) => hexToBytes(commitment)));
    return { data: blobBatchData(batch), pageRoots, leaf, assets, content, ...roots };
  }

  /** The records of a batch's slots; none before the last of them became void. */
  #settledRecords(
    place: Place,
    vaults: readonly StoredVault[],
    data: Uint8Array,
    pageRoots: Uint8Array,
    minted: readonly StoredVault[] = vaults,
  ): Expected[] {
    const { mode, batchNumber } = place;
    const name = batchName(place);
    if ((this.#coming.get(name) ?? 0) > 0 || this.#isReplaced(place)) {
      this.#kept.set(name, vaults);
      return [];
    }
    this.#kept.delete(name);
    const runs = this.#voids.get(name) ?? [];
    const tokens = this.#tokensOf(withoutVoids(minted, runs));
    return [
      expectedRecord(keys.batchDataKey(mode, batchNumber), Buffer.from(data), `the data of ${name}`),
      expectedRecord(keys.pageRootsKey(mode, batchNumber), Buffer.from(pageRoots), `the page roots of ${name}`),
      expectedRecord(keys.batchTokensKey(mode, batchNumber), tokens, `the tokens of ${name}`),
    ];
  }

  /** Adds all leaves again, because the tree cannot remove any. */
  #rebuildTree(mode: Mode, from: number): void {
    const tree = new StateTree();
    for (const [number, record] of this.#records[mode].entries()) {
      tree.append(this.#leaves[mode][number] as Uint8Array);
      if (number >= from) this.#records[mode][number] = { ...record, stateRoot: bytesToHex(tree.root) };
    }
    this.#trees[mode] = tree;
  }
}
