import type { EngineEvents, EngineOptions, Limits } from "./engine-types.ts";
import type { Entry } from "./entries.ts";
import { MintmarkError } from "./errors.ts";
import type { Group } from "./group.ts";
import { encodeEntry } from "./journal.ts";
import { encodeRecord } from "./layout.ts";
import type { MintEntry } from "./mint-entry.ts";
import { type Environment, MODES, type Mode, type Uuid } from "./model.ts";
import type { OpenBatch } from "./open-batch.ts";
import type { Clock, L1Reader, Settlement } from "./ports.ts";
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
} from "./records.ts";
import { StateHistory } from "./state-tree.ts";
import type { Store } from "./store.ts";
import { apiKeyKey, applicationKey, assetKey, batchKey, HEAD_KEY, journalKey } from "./store-keys.ts";
import { Table } from "./table.ts";
import { UserCache } from "./user-cache.ts";
import { Writer } from "./writer.ts";

/** What a journal entry was given when it was recorded. */
export interface Recorded {
  readonly sequence: number;
  readonly time: number;
}

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
  readonly verifySignature: L1Reader["verifySignature"] | undefined;
  readonly emit: Emit;

  readonly applications = new Table<number, ApplicationRecord>();
  readonly keys = new Table<number, KeyRecord>();
  readonly assets = new Table<number, AssetRecord>();
  /** By {@link enablementId}. */
  readonly enablements = new Table<string, boolean>();
  readonly batches: Readonly<Record<Mode, Table<number, BatchRecord>>> = {
    validium: new Table(),
    "zk-rollup": new Table(),
  };
  /** State trees over all sealed batches. */
  readonly histories: Readonly<Record<Mode, StateHistory>> = {
    validium: new StateHistory(),
    "zk-rollup": new StateHistory(),
  };
  readonly users = new UserCache();
  /** Indices never change, so these need no two views; whether a record is on disk its table says. */
  readonly applicationIndices = new Map<Uuid, number>();
  readonly keyIndices = new Map<string, number>();
  readonly assetIndices = new Map<Uuid, number>();
  readonly #open = new Map<Mode, OpenBatch>();
  readonly #dirty = { applications: new Set<number>(), keys: new Set<number>(), assets: new Set<number>() };
  head: HeadRecord = { journalLength: 0, time: 0, userCount: 0, l1Observed: null, l1Finalized: null };
  /** The head as it is on disk. */
  durableHead: HeadRecord = this.head;

  constructor(store: Store, options: EngineOptions, limits: Limits, emit: Emit) {
    this.store = store;
    this.settlement = options.settlement;
    this.environment = options.environment;
    this.limits = limits;
    this.clock = options.clock ?? Date.now;
    this.verifySignature = options.verifySignature;
    this.emit = emit;
    this.writer = new Writer(store, (group) => this.#finish(group));
  }

  open(mode: Mode): OpenBatch {
    const open = this.#open.get(mode);
    if (open === undefined) throw new Error(`the open batch of ${mode} is not loaded`);
    return open;
  }

  setOpen(batch: OpenBatch): void {
    this.#open.set(batch.mode, batch);
  }

  /** The time of the next entry: the clock's, but never before the newest entry's. */
  now(): number {
    return Math.max(this.clock(), this.head.time);
  }

  /** Appends an entry to the journal. The caller derives its records into the same group. */
  record(group: Group, entry: Entry | MintEntry, time = this.now()): Recorded {
    const sequence = this.head.journalLength;
    group.put(journalKey(sequence), encodeEntry(time, entry));
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
    this.assets.put(group, record.assetIndex, record);
    this.#dirty.assets.add(record.assetIndex);
  }

  putBatch(group: Group, record: BatchRecord): void {
    this.batches[record.mode].put(group, record.batchNumber, record);
    group.put(batchKey(record.mode, record.batchNumber), encodeRecord(batchRecord, record));
  }

  /** The application as the writer has it. Throws `application_not_found`. */
  latestApplication(applicationId: Uuid): ApplicationRecord {
    const index = this.applicationIndices.get(String(applicationId).toLowerCase());
    const record = index === undefined ? undefined : this.applications.latest(index);
    if (record === undefined) throw new MintmarkError("application_not_found");
    return record;
  }

  /** The application as readers see it. Throws `application_not_found`. */
  application(applicationId: Uuid): ApplicationRecord {
    const index = this.applicationIndices.get(String(applicationId).toLowerCase());
    const record = index === undefined ? undefined : this.applications.get(index);
    if (record === undefined) throw new MintmarkError("application_not_found");
    return record;
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
  open: Pick<OpenBatch, "mode" | "batchNumber" | "vaults" | "mintCount" | "openedAt">,
): BatchRecord {
  return {
    mode: open.mode,
    batchNumber: open.batchNumber,
    status: "open",
    vaultCount: open.vaults.length,
    mintCount: open.mintCount,
    batchRoot: null,
    dataHash: null,
    stateRoot: null,
    l1TxHash: null,
    l1BlockNumber: null,
    committedAt: null,
    l1Sequence: null,
    openedAt: open.vaults[0]?.createdAt ?? open.openedAt,
    sealedAt: null,
    submittedAt: null,
    settledAt: null,
    finalizedAt: null,
  };
}

export function enablementId(applicationIndex: number, assetIndex: number): string {
  return `${applicationIndex}:${assetIndex}`;
}
