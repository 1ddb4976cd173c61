import { type Hash, MODES, type Mode } from "../model.ts";
import type { AssetId } from "../ports.ts";
import { stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { kindOf, manifestRoot, batchRoot as rootOf } from "../protocol/manifest.ts";
import { StateTree } from "../protocol/state-tree.ts";
import type { TransferGroup } from "../protocol/transfer-data.ts";
import {
  type BatchPlace,
  type BatchVaultPlace,
  packVaultId,
  type VaultPlace,
} from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import type { BatchEventType } from "../store/event-record.ts";
import { emptyOf } from "../store/layout.ts";
import type { BatchRecord, VoidedRun, VoidRun } from "../store/records.ts";
import { batchApplicationsRecord, batchRecord, voidsRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import type { CommitToBlob, DerivedData, Given } from "./reference-derive.ts";
import { deriveBatch, deriveGiven, deriveTransfers } from "./reference-derive.ts";
import { type Handlers, ReferencePart } from "./reference-records.ts";
import { NO_ASSET, type ReferenceTenants } from "./reference-tenants.ts";
import { batchName, putBatch, type ReferenceTokens } from "./reference-vaults.ts";

/** The journal's claims about a batch. */
type Roots = Readonly<Record<"batchRoot" | "dataHash" | "stateRoot", Hash>>;

/** The state of a batch that is sealed anew. */
const UNSENT = {
  status: "sealed",
  l1TxHash: null,
  submittedAt: null,
  leftOut: null,
  given: false,
} as const;

/** A batch to be sealed, with its vaults. */
interface Sealing extends BatchPlace, Roots {
  readonly mintCount: number;
  readonly inBlobs: boolean;
  readonly groups: readonly TransferGroup[] | null; // null for a batch of mints
  readonly vaults: readonly StoredVault[];
  readonly voids?: readonly VoidRun[];
  readonly given?: Given | null;
  readonly isAdopted?: boolean; // From L1's history
}

interface Sealed {
  record: BatchRecord;
  leaf: Uint8Array;
  voids: readonly VoidedRun[]; // Ascending
  given: Given | null; // Stored data of a foreign batch that our encoder would not reproduce
  vaults: readonly StoredVault[]; // None once its records are final
  readonly applications: readonly number[]; // Applications that have vaults in it
  readonly isAdopted: boolean; // From L1's history
}

/** The vaults of a batch by slot; null for a void slot. */
export function withoutVoids(
  vaults: readonly StoredVault[],
  runs: readonly VoidRun[],
): (StoredVault | null)[] {
  const held: (StoredVault | null)[] = [...vaults];
  for (const { firstSlot, count } of runs) held.fill(null, firstSlot, firstSlot + count);
  return held;
}

function isIn({ firstSlot, count }: VoidRun, slot: number): boolean {
  return slot >= firstSlot && slot < firstSlot + count;
}

/**
 * The part of the reference for sealed batches: roots, void slots, status on L1, and the events of
 * all that.
 */
export class ReferenceBatches extends ReferencePart<{
  readonly tenants: ReferenceTenants;
  readonly tokens: ReferenceTokens;
  /** The number of entries still to come that make slots of a batch void, by {@link batchName}. */
  readonly voidings: Map<string, number>;
  /** Adoptions still to come: the first batch of each mode that L1's history replaces. */
  readonly adoptions: readonly (readonly BatchPlace[])[];
  readonly commit: CommitToBlob;
}> {
  readonly #sealed: Record<Mode, Sealed[]> = { validium: [], "zk-rollup": [] };
  readonly #trees: Record<Mode, StateTree> = {
    validium: new StateTree(),
    "zk-rollup": new StateTree(),
  };

  readonly on = {
    assetsLeftOut: (entry) => {
      if (!this.#setLeftOut(entry))
        this.out.report(
          `assets of ${batchName(entry)} are left out that could not be, or with a wrong root`,
        );
    },
    batchSubmitted: (entry) => {
      const submittedAt = this.at(entry)?.submittedAt ?? this.out.time;
      this.#change(
        entry,
        { status: "submitted", l1TxHash: entry.txHash, submittedAt },
        "batch.submitted",
      );
    },
  } satisfies Handlers;

  count(mode: Mode): number {
    return this.#sealed[mode].length;
  }

  root(mode: Mode): Hash {
    return bytesToHex(this.#trees[mode].root());
  }

  at(place: BatchPlace): BatchRecord | undefined {
    return this.#at(place)?.record;
  }

  /** A sealed vault of a batch whose records a later entry changes. */
  keptVault(place: BatchVaultPlace): StoredVault | undefined {
    return this.#at(place)?.vaults[place.slot];
  }

  /** All sealed batches. */
  sealed(): BatchRecord[] {
    return this.#records();
  }

  /** When the journal got a vault of the store. */
  addedAt(place: BatchVaultPlace, vault: StoredVault): number {
    const batch = this.#at(place);
    return batch?.isAdopted === true ? (batch.record.sealedAt ?? 0) : vault.createdAt;
  }

  isVoid(place: VaultPlace): boolean {
    if (place.mode === "made") return false;
    return this.#at(place)?.voids.some((run) => isIn(run, place.slot)) ?? false;
  }

  /** Whether a later adoption replaces the batch. */
  isReplaced({ mode, batchNumber }: BatchPlace): boolean {
    return this.parts.adoptions.some((firsts) =>
      firsts.some((first) => first.mode === mode && first.batchNumber <= batchNumber),
    );
  }

  /** Seals a mode's next batch. Returns whether its roots are right. */
  async seal({
    mode,
    vaults,
    groups,
    voids = [],
    given = null,
    isAdopted = false,
    ...entry
  }: Sealing): Promise<boolean> {
    const { out } = this;
    const { batchNumber, mintCount, inBlobs } = entry;
    const openedAt = vaults[0]?.createdAt ?? out.time;
    const sealed = {
      mode,
      batchNumber,
      mintCount,
      inBlobs,
      vaultCount: vaults.length,
      openedAt,
      sealedAt: out.time,
    };
    const kind = { transfers: groups !== null, given: given !== null };
    const record: BatchRecord = { ...emptyOf(batchRecord), ...sealed, ...kind, status: "sealed" };
    const applications = [...new Set(vaults.map(({ applicationIndex }) => applicationIndex))].sort(
      (a, b) => a - b,
    );
    const since = voids.map((run) => ({ ...run, voidedAt: out.time, leftOut: false }));
    const batch: Sealed = {
      record,
      leaf: new Uint8Array(),
      voids: since,
      given,
      vaults,
      applications,
      isAdopted,
    };
    const derived =
      groups === null ? await this.#derive(batch) : deriveTransfers(batchNumber, groups);
    this.#sealed[mode].push(batch);
    this.#trees[mode].append(derived.leaf);
    this.#take(batch, derived, { stateRoot: this.root(mode) });
    if (!this.isReplaced(record)) {
      const key = keyOf.batchApplications(mode, batchNumber);
      out.put(
        key,
        batchApplicationsRecord,
        applications,
        `the applications of ${batchName(record)}`,
      );
    }
    this.#tell("batch.sealed", batch);
    // A transfer makes no token.
    this.#putRecords(batch, derived, groups === null ? vaults : []);
    return hasRoots(batch.record, entry);
  }

  /**
   * A batch of transfers becomes one of void slots. Returns them; null when it cannot, or with
   * other roots.
   */
  async takeBack(entry: EntryOf<"transfersTakenBack">): Promise<VoidRun[] | null> {
    const { batchNumber, failure } = entry;
    const batch = this.#unsettled({ mode: "zk-rollup", batchNumber });
    if (batch?.record.transfers !== true) return null;
    const voids = [{ firstSlot: 0, count: batch.vaults.length, failure }];
    this.#addVoids(batch, voids, false);
    batch.record = { ...batch.record, transfers: false };
    return (await this.#sealAnew(batch, entry)) ? voids : null;
  }

  /** Makes slots void. Returns whether it can, with these roots. */
  async voidSlots(entry: EntryOf<"slotsVoided">): Promise<boolean> {
    const batch = this.#unsettled(entry);
    if (batch === null || !this.#fail(batch, entry, false)) return false;
    batch.given = null;
    return this.#sealAnew(batch, entry);
  }

  /**
   * Makes the slots of left-out assets void for good. Returns whether the batch leaves out exactly
   * these.
   */
  async leaveOut(entry: EntryOf<"slotsLeftOut">): Promise<boolean> {
    const batch = this.#at(entry);
    if (batch?.record.status !== "finalized") return false;
    const { leftOut, assets } = batch.record;
    const failureOf = ({ assetIndex }: StoredVault) => {
      const { chainId, assetType } = this.parts.tenants.asset(assetIndex) ?? NO_ASSET;
      const isIt = (asset?: AssetId) => asset?.chainId === chainId && asset.assetType === assetType;
      return leftOut?.find(({ asset }) => isIt(assets?.[asset]))?.failure;
    };
    const isRight = withoutVoids(batch.vaults, batch.voids).every((vault, slot) => {
      const failure = entry.voids.find((run) => isIn(run, slot))?.failure;
      return failure === (vault === null ? undefined : failureOf(vault));
    });
    if (!isRight || !this.#fail(batch, entry, true)) return false;
    this.#putRecords(batch, await this.#derive(batch));
    return true;
  }

  settle(entry: EntryOf<"batchCommitted">): void {
    const { txHash: l1TxHash, blockNumber: l1BlockNumber, committedAt, l1Sequence } = entry;
    const { time } = this.out;
    const settled = {
      status: "settled",
      l1TxHash,
      l1BlockNumber,
      committedAt,
      l1Sequence,
      submittedAt: this.at(entry)?.submittedAt ?? time,
      settledAt: time,
      finalizedAt: null,
    } as const;
    this.#change(entry, settled, "batch.settled");
  }

  /** L1's blocks up to this one are final. */
  finalize(blockNumber: bigint): void {
    const final = { status: "finalized", finalizedAt: this.out.time } as const;
    for (const record of this.#records())
      if (
        record.status === "settled" &&
        record.l1BlockNumber !== null &&
        record.l1BlockNumber <= blockNumber
      )
        this.#change(record, final, "batch.finalized");
  }

  /** L1's blocks from this one on were replaced. */
  revert(blockNumber: bigint): void {
    const gone = {
      l1BlockNumber: null,
      committedAt: null,
      l1Sequence: null,
      settledAt: null,
      finalizedAt: null,
    };
    const reverted = { status: "submitted", ...gone } as const;
    for (const record of this.#records())
      if (record.l1BlockNumber !== null && record.l1BlockNumber >= blockNumber)
        this.#change(record, reverted, "batch.reverted");
  }

  /**
   * Drops a mode's batches from `first` on. Returns their vaults, null for a void slot, and all of
   * them.
   */
  drop(mode: Mode, first: number) {
    const dropped = this.#sealed[mode].splice(first);
    this.#rebuildTree(mode, first);
    return dropped.map(({ record: { batchNumber, transfers }, vaults, voids }) => {
      return { mode, batchNumber, transfers, all: vaults, vaults: withoutVoids(vaults, voids) };
    });
  }

  /** Tells of failed mints: one event for each range of one application's vaults. */
  tellFailed(
    { mode, batchNumber }: BatchPlace,
    voids: readonly VoidRun[],
    vaults: readonly StoredVault[],
  ): void {
    for (const { firstSlot, count, failure } of voids) {
      const run = vaults.slice(firstSlot, firstSlot + count);
      const starts = [...run.keys()].filter(
        (i) => run[i]?.applicationIndex !== run[i - 1]?.applicationIndex,
      );
      for (const [i, start] of starts.entries()) {
        const firstVaultId = packVaultId({ mode, batchNumber, slot: firstSlot + start });
        const failed = { firstVaultId, vaults: (starts[i + 1] ?? run.length) - start, failure };
        this.out.tell(run[start]?.applicationIndex ?? 0, { type: "mint.failed", ...failed });
      }
    }
  }

  override finish(): void {
    for (const { record, voids } of MODES.flatMap((mode) => this.#sealed[mode])) {
      putBatch(this.out, record);
      const { mode, batchNumber } = record;
      const runs = { mode, batchNumber, runs: voids };
      if (voids.length > 0)
        this.out.put(
          keyOf.voids(mode, batchNumber),
          voidsRecord,
          runs,
          `the void slots of ${batchName(record)}`,
        );
    }
  }

  #records(): BatchRecord[] {
    return MODES.flatMap((mode) => this.#sealed[mode].map(({ record }) => record));
  }

  #at({ mode, batchNumber }: BatchPlace): Sealed | undefined {
    return this.#sealed[mode][batchNumber];
  }

  /** A batch that L1 has not taken. */
  #unsettled(place: BatchPlace): Sealed | null {
    const batch = this.#at(place);
    const isSettled = batch?.record.status === "settled" || batch?.record.status === "finalized";
    return batch === undefined || isSettled ? null : batch;
  }

  /**
   * Sets the assets that L1 leaves out of a batch. Returns whether it can leave them out, with
   * these roots.
   */
  #setLeftOut(entry: EntryOf<"assetsLeftOut">): boolean {
    const { mode, batchNumber, assets: leftOut } = entry;
    const batch = this.#unsettled(entry);
    if (batch === null) return false;
    const { vaultCount, dataHash, content, assets, inBlobs, transfers } = batch.record;
    const places = leftOut.map(({ asset }) => asset);
    const ascend = places.every(
      (place, i) => place > (places[i - 1] ?? -1) && place < (assets?.length ?? 0),
    );
    if (!ascend || assets === null || content === null || dataHash === null) return false;
    const batchRoot = rootOf(
      kindOf(mode, inBlobs, transfers),
      manifestRoot(assets, places),
      content,
    );
    batch.leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot }));
    batch.record = { ...batch.record, batchRoot, leftOut: leftOut.length === 0 ? null : leftOut };
    this.#rebuildTree(mode, batchNumber);
    return hasRoots(batch.record, entry);
  }

  /** Makes slots void, and releases their tokens and amounts; false unless each holds a vault. */
  #fail(
    batch: Sealed,
    entry: BatchPlace & { readonly voids: readonly VoidRun[] },
    leftOut: boolean,
  ): boolean {
    const held = withoutVoids(batch.vaults, batch.voids);
    const isHeld = ({ firstSlot, count }: VoidRun) =>
      firstSlot + count <= held.length && !held.slice(firstSlot, firstSlot + count).includes(null);
    if (!entry.voids.every(isHeld)) return false;
    this.#addVoids(batch, entry.voids, leftOut);
    this.tellFailed(entry, entry.voids, batch.vaults);
    for (const { firstSlot, count } of entry.voids)
      this.parts.tokens.countAll(
        entry,
        batch.vaults.slice(firstSlot, firstSlot + count),
        -1n,
        firstSlot,
      );
    return true;
  }

  #addVoids(batch: Sealed, voids: readonly VoidRun[], leftOut: boolean): void {
    const added = voids.map((run) => ({ ...run, voidedAt: this.out.time, leftOut }));
    batch.voids = [...batch.voids, ...added].sort((a, b) => a.firstSlot - b.firstSlot);
    const name = batchName(batch.record);
    this.parts.voidings.set(name, (this.parts.voidings.get(name) ?? 1) - 1);
  }

  async #sealAnew(batch: Sealed, roots: Roots): Promise<boolean> {
    const derived = await this.#derive(batch);
    this.#take(batch, derived, UNSENT);
    this.#rebuildTree(batch.record.mode, batch.record.batchNumber);
    this.#putRecords(batch, derived);
    return hasRoots(batch.record, roots);
  }

  #take(batch: Sealed, { leaf, facts }: DerivedData, change: Partial<BatchRecord>): void {
    batch.leaf = leaf;
    batch.record = { ...batch.record, ...facts, ...change };
  }

  /** Changes a sealed batch, and adds an event for each application with vaults in it. */
  #change(place: BatchPlace, change: Partial<BatchRecord>, type: BatchEventType): void {
    const batch = this.#at(place);
    if (batch === undefined)
      this.out.report(`the journal has ${batchName(place)} on L1 before it is sealed`);
    else {
      batch.record = { ...batch.record, ...change };
      this.#tell(type, batch);
    }
  }

  #tell(type: BatchEventType, { record, applications }: Sealed): void {
    const { batchRoot } = record;
    if (batchRoot === null) return;
    for (const application of applications)
      this.out.tell(application, { type, ...record, batchRoot });
  }

  #derive({ record, vaults, voids, given }: Sealed): Promise<DerivedData> {
    const { tenants, commit } = this.parts;
    const zeroed = voids.filter(({ leftOut }) => !leftOut);
    const held = withoutVoids(vaults, zeroed);
    return given === null
      ? deriveBatch(record, held, tenants, commit)
      : deriveGiven(record, given, commit);
  }

  /** Puts out the records of a batch's slots, unless a later entry changes them. */
  #putRecords(batch: Sealed, { data, pageRoots }: DerivedData, minted = batch.vaults): void {
    const { mode, batchNumber } = batch.record;
    const name = batchName(batch.record);
    if ((this.parts.voidings.get(name) ?? 0) > 0 || this.isReplaced(batch.record)) return;
    batch.vaults = [];
    const tokens = this.parts.tokens.recordOf(withoutVoids(minted, batch.voids));
    this.out.bytes(keyOf.batchData(mode, batchNumber), data, `the data of ${name}`);
    this.out.bytes(keyOf.pageRoots(mode, batchNumber), pageRoots, `the page roots of ${name}`);
    this.out.bytes(keyOf.batchTokens(mode, batchNumber), tokens, `the tokens of ${name}`);
  }

  #rebuildTree(mode: Mode, from: number): void {
    const tree = this.#trees[mode];
    tree.truncate(Math.min(from, tree.count));
    for (const batch of this.#sealed[mode].slice(from)) {
      tree.append(batch.leaf);
      batch.record = { ...batch.record, stateRoot: bytesToHex(tree.root()) };
    }
  }
}

function hasRoots(record: BatchRecord, { batchRoot, dataHash, stateRoot }: Roots): boolean {
  return (
    record.batchRoot === batchRoot && record.dataHash === dataHash && record.stateRoot === stateRoot
  );
}
