import type { EngineEvents, EngineOptions, Limits } from "../engine-types.ts";
import { MintmarkError } from "../errors.ts";
import { type Environment, MODES, type Mode, type Standard, type Uuid } from "../model.ts";
import type { Clock, ReceiptSigner, Settlement } from "../ports.ts";
import { StateHistory } from "../protocol/state-tree.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { Entry } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import { encodeEntry, encodeMintEntry } from "../store/journal.ts";
import { encodeRecord } from "../store/layout.ts";
import type { MintHeader, PlacedColumns } from "../store/mint-entry.ts";
import {
  type ApplicationRecord,
  type AssetRecord,
  applicationRecord,
  assetRecord,
  type BatchRecord,
  batchRecord,
  type HeadRecord,
  headRecord,
  type KeyRecord,
  keyRecord,
  type PortalRecord,
  portalRecord,
  type VoidedRun,
  voidsRecord,
  type WebhookRecord,
  webhookRecord,
} from "../store/records.ts";
import {
  apiKeyKey,
  applicationKey,
  assetKey,
  batchKey,
  HEAD_KEY,
  journalKey,
  portalKey,
  voidsKey,
  webhookKey,
} from "../store/store-keys.ts";
import { Table } from "../store/table.ts";
import { Writer } from "../store/writer.ts";
import type { Store } from "../store-ports.ts";
import type { OpenBatch } from "./batches/open-batch.ts";
import { SealingThread } from "./batches/sealing-thread.ts";
import { Followers } from "./events/followers.ts";
import type { MintColumns } from "./mint/mint-columns.ts";
import { UserCache } from "./tenants/user-cache.ts";
import { Bindings } from "./tokens/bindings.ts";
import { TokenHasher } from "./tokens/token-hash.ts";
import { TokenIndex } from "./tokens/token-index.ts";
import { TokenSumsCache } from "./vaults/token-sums-cache.ts";

/** What a journal entry was given when it was recorded. */
export interface Recorded {
  readonly sequence: number;
  readonly time: number;
}

/** Highest ref of a vault in the index of tokens; above are those of a request that is being looked at. */
export const MAX_REF = 0xfff0_0000 - 1;

type Emit = <K extends keyof EngineEvents>(type: K, event: EngineEvents[K]) => void;

/**
 * The engine's state in memory and the way to change it: every change appends an entry to the journal and, in the same group, the
 * records derived from it. Everything here is the writer's view; readers use the tables' durable view and the store.
 */
export class Ledger {
  readonly store: Store;
  readonly writer: Writer;
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly verifySignature: EngineOptions["verifySignature"];
  readonly receiptSigner: ReceiptSigner | undefined;
  readonly emit: Emit;

  readonly applications = new Table<number, ApplicationRecord>();
  readonly keys = new Table<number, KeyRecord>();
  readonly webhooks = new Table<number, WebhookRecord>();
  readonly assets = new Table<number, AssetRecord>();
  /** By chain. */
  readonly portals = new Table<bigint, PortalRecord>();
  /** By {@link enablementId}. */
  readonly enablements = new Table<string, boolean>();
  readonly batches: Readonly<Record<Mode, Table<number, BatchRecord>>> = {
    validium: new Table(),
    "zk-rollup": new Table(),
  };
  /** Void slots of the sealed batches that have some. */
  readonly voids: Readonly<Record<Mode, Table<number, readonly VoidedRun[]>>> = {
    validium: new Table(),
    "zk-rollup": new Table(),
  };
  /** State trees over all sealed batches, as the writer has them. */
  readonly #latestHistories: Record<Mode, StateHistory> = {
    validium: new StateHistory(),
    "zk-rollup": new StateHistory(),
  };
  readonly sealingThread = new SealingThread();
  /** Batches that are closed and not sealed on disk yet, by number. */
  readonly sealings: Readonly<Record<Mode, Map<number, Promise<BatchRecord>>>> = {
    validium: new Map(),
    "zk-rollup": new Map(),
  };
  /** The same trees, or those before a batch was sealed anew, while that is not on disk. */
  readonly #histories: Record<Mode, StateHistory> = { ...this.#latestHistories };
  readonly users = new UserCache();
  readonly tokenSums = new TokenSumsCache(this);
  readonly bindings = new Bindings();
  readonly followers = new Followers();
  /** Of every asset, by its index: they never change. */
  readonly standards: Standard[] = [];
  readonly hasher: TokenHasher;
  /** Every ERC-721 token, as the writer has them. */
  tokens = new TokenIndex();
  /** Indices never change, so these need no two views; whether a record is on disk its table says. */
  readonly applicationIndices = new Map<Uuid, number>();
  readonly keyIndices = new Map<string, number>();
  readonly webhookIndices = new Map<Uuid, number>();
  readonly assetIndices = new Map<Uuid, number>();
  readonly #open = new Map<Mode, OpenBatch>();
  /** Batches that are closed but perhaps not on disk yet, by number. */
  readonly #closed: Readonly<Record<Mode, Map<number, OpenBatch>>> = { validium: new Map(), "zk-rollup": new Map() };
  /** By batch number: how many vaults the mode's earlier batches have together. */
  readonly #firstOrdinals: Readonly<Record<Mode, number[]>> = { validium: [], "zk-rollup": [] };
  readonly #dirty = { applications: new Set<number>(), keys: new Set<number>(), assets: new Set<number>() };
  head: HeadRecord = { journalLength: 0, time: 0, userCount: 0, keysForgotten: 0 };
  /** The head as it is on disk. */
  durableHead: HeadRecord = this.head;

  constructor(store: Store, options: EngineOptions, limits: Limits, emit: Emit, seed: Uint8Array) {
    this.store = store;
    this.hasher = new TokenHasher(seed);
    this.settlement = options.settlement;
    this.environment = options.environment;
    this.limits = limits;
    this.clock = options.clock ?? Date.now;
    this.verifySignature = options.verifySignature;
    this.receiptSigner = options.receiptSigner;
    this.emit = emit;
    this.writer = new Writer(
      store,
      (group) => this.#finish(group),
      () => this.sealingThread.room(),
    );
  }

  open(mode: Mode): OpenBatch {
    const open = this.#open.get(mode);
    if (open === undefined) throw new Error(`the open batch of ${mode} is not loaded`);
    return open;
  }

  setOpen(batch: OpenBatch): void {
    const before = this.#open.get(batch.mode);
    if (before !== undefined) this.#closed[batch.mode].set(before.batchNumber, before);
    this.#open.set(batch.mode, batch);
    this.setFirstOrdinal(batch.mode, batch.batchNumber, batch.firstOrdinal);
  }

  /** A closed batch is on disk: its vaults are read from there. */
  release({ mode, batchNumber }: OpenBatch): void {
    this.#closed[mode].delete(batchNumber);
  }

  /** The batch of a place when its vaults are in memory. */
  batchInMemory({ mode, batchNumber }: VaultPlace): OpenBatch | undefined {
    const open = this.open(mode);
    return open.batchNumber === batchNumber ? open : this.#closed[mode].get(batchNumber);
  }

  /** The state tree as the writer has it; batches are only added to it. */
  latestHistory(mode: Mode): StateHistory {
    return this.#latestHistories[mode];
  }

  /** The state tree as readers see it; what it holds beyond the batches that are on disk they do not ask for. */
  history(mode: Mode): StateHistory {
    return this.#histories[mode];
  }

  /** Puts another tree in the place of a mode's, for readers when the group is on disk. */
  putHistory(group: Group, mode: Mode, history: StateHistory): void {
    this.#latestHistories[mode] = history;
    group.onDurable(() => {
      this.#histories[mode] = history;
    });
  }

  /** Puts in what was read from disk. */
  loadHistory(mode: Mode, history: StateHistory): void {
    this.#latestHistories[mode] = history;
    this.#histories[mode] = history;
  }

  /** Vaults of all earlier batches of the mode. */
  firstOrdinalOf(mode: Mode, batchNumber: number): number {
    return this.#firstOrdinals[mode][batchNumber] ?? 0;
  }

  setFirstOrdinal(mode: Mode, batchNumber: number, firstOrdinal: number): void {
    this.#firstOrdinals[mode][batchNumber] = firstOrdinal;
  }

  /** What the index of tokens keeps of a vault: 1 to {@link MAX_REF}. */
  refOf({ mode, firstOrdinal }: Pick<OpenBatch, "mode" | "firstOrdinal">, slot: number): number {
    const ref = 1 + 2 * (firstOrdinal + slot) + MODES.indexOf(mode);
    if (ref > MAX_REF) throw new Error("the index of tokens is at its end");
    return ref;
  }

  /** The inverse of {@link refOf}. */
  placeOfRef(ref: number): VaultPlace {
    const mode = MODES[(ref - 1) & 1] ?? "validium";
    const ordinal = (ref - 1) >>> 1;
    const firsts = this.#firstOrdinals[mode];
    let low = 0;
    for (let high = firsts.length; high - low > 1; ) {
      const middle = (low + high) >>> 1;
      if ((firsts[middle] as number) <= ordinal) low = middle;
      else high = middle;
    }
    return { mode, batchNumber: low, slot: ordinal - (firsts[low] ?? 0) };
  }

  /** The time of the next entry: the clock's, but never before the newest entry's. */
  now(): number {
    return Math.max(this.clock(), this.head.time);
  }

  /** Appends an entry to the journal. The caller derives its records into the same group. */
  record(group: Group, entry: Entry): Recorded {
    const time = this.now();
    return this.#append(group, time, encodeEntry(time, entry));
  }

  /** The same for a mint of this time. */
  recordMint(group: Group, header: MintHeader, columns: MintColumns, placed: PlacedColumns, time: number): Recorded {
    return this.#append(group, time, encodeMintEntry(time, header, columns, placed));
  }

  #append(group: Group, time: number, record: Buffer): Recorded {
    const sequence = this.head.journalLength;
    group.put(journalKey(sequence), record);
    this.head = { ...this.head, journalLength: sequence + 1, time };
    return { sequence, time };
  }

  putApplication(group: Group, record: ApplicationRecord): void {
    this.applicationIndices.set(record.applicationId, record.applicationIndex);
    this.applications.put(group, record.applicationIndex, record);
    this.#dirty.applications.add(record.applicationIndex);
  }

  putKey(group: Group, record: KeyRecord): void {
    this.keyIndices.set(record.keyId, record.keyIndex);
    this.keys.put(group, record.keyIndex, record);
    this.#dirty.keys.add(record.keyIndex);
  }

  putAsset(group: Group, record: AssetRecord): void {
    this.assetIndices.set(record.assetId, record.assetIndex);
    this.standards[record.assetIndex] = record.standard;
    this.assets.put(group, record.assetIndex, record);
    this.#dirty.assets.add(record.assetIndex);
  }

  putVoids(group: Group, mode: Mode, batchNumber: number, runs: readonly VoidedRun[]): void {
    this.voids[mode].put(group, batchNumber, runs);
    group.put(voidsKey(mode, batchNumber), encodeRecord(voidsRecord, { mode, batchNumber, runs }));
  }

  putPortal(group: Group, record: PortalRecord): void {
    this.portals.put(group, record.chainId, record);
    group.put(portalKey(record.chainId), encodeRecord(portalRecord, record));
  }

  putWebhook(group: Group, record: WebhookRecord): void {
    this.webhookIndices.set(record.webhookId, record.webhookIndex);
    this.webhooks.put(group, record.webhookIndex, record);
    group.put(webhookKey(record.webhookIndex), encodeRecord(webhookRecord, record));
  }

  putBatch(group: Group, record: BatchRecord): void {
    this.batches[record.mode].put(group, record.batchNumber, record);
    group.put(batchKey(record.mode, record.batchNumber), encodeRecord(batchRecord, record));
  }

  /** The application as the writer has it. Throws `application_not_found`. */
  latestApplication(applicationId: Uuid): ApplicationRecord {
    const index = this.#applicationIndex(applicationId);
    const record = index === undefined ? undefined : this.applications.latest(index);
    if (record === undefined) throw new MintmarkError("application_not_found");
    return record;
  }

  /** The application as readers see it. Throws `application_not_found`. */
  application(applicationId: Uuid): ApplicationRecord {
    const index = this.#applicationIndex(applicationId);
    const record = index === undefined ? undefined : this.applications.get(index);
    if (record === undefined) throw new MintmarkError("application_not_found");
    return record;
  }

  #applicationIndex(applicationId: Uuid): number | undefined {
    const { applicationIndices } = this;
    return applicationIndices.get(applicationId) ?? applicationIndices.get(String(applicationId).toLowerCase());
  }

  /** An asset that records name by its index. */
  assetAt(assetIndex: number): AssetRecord {
    const record = this.assets.latest(assetIndex);
    if (record === undefined) throw new MintmarkError("store_corrupt", `Asset ${assetIndex} is missing.`);
    return record;
  }

  /** Adds what a group changes once, however many of its transitions touch it. */
  #finish(group: Group): void {
    for (const mode of MODES) this.#flushOpen(group, this.open(mode));
    for (const index of this.#dirty.applications) {
      const record = this.applications.latest(index);
      if (record) group.put(applicationKey(index), encodeRecord(applicationRecord, record));
      group.onDurable(() => this.followers.wake(index));
    }
    for (const index of this.#dirty.keys) {
      const record = this.keys.latest(index);
      if (record) group.put(apiKeyKey(index), encodeRecord(keyRecord, record));
    }
    for (const index of this.#dirty.assets) {
      const record = this.assets.latest(index);
      if (record) group.put(assetKey(index), encodeRecord(assetRecord, record));
    }
    for (const dirty of Object.values(this.#dirty)) dirty.clear();
    if (group.operations.length === 0) return;
    const head = this.head;
    group.put(HEAD_KEY, encodeRecord(headRecord, head));
    group.onDurable(() => {
      this.durableHead = head;
    });
  }

  #flushOpen(group: Group, open: OpenBatch): void {
    if (!open.dirty) return;
    open.flush(group);
    this.putBatch(group, openBatchRecord(open));
  }
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

export function enablementId(applicationIndex: number, assetIndex: number): string {
  return `${applicationIndex}:${assetIndex}`;
}
