import { type Limits, MODES, type Uuid, type VaultId } from "../model.ts";
import { type Group, Table } from "../store/group.ts";
import { encodeRecord } from "../store/layout.ts";
import type { Store } from "../store/ports.ts";
import * as records from "../store/records.ts";
import { HEAD_KEY, keyOf } from "../store/store-keys.ts";
import { type ChangeWriter, type Transition, Writer } from "../store/writer.ts";
import { BatchTables } from "./batch-tables.ts";
import type { EventHub } from "./event-hub.ts";
import { JournalClock } from "./journal-clock.ts";
import { JournalHead } from "./journal-head.ts";
import { MintingState } from "./minting-state.ts";
import { ObservedL1 } from "./observed-l1.ts";
import { openBatchRecord } from "./open-batch.ts";
import type { EngineOptions } from "./options.ts";
import { ReaderState } from "./reader-state.ts";
import { Services } from "./services.ts";
import { TenantTables } from "./tenant-tables.ts";

/** Who makes changes, for the audit log. */
export interface Actor {
  /** null: the operator's command line. */
  readonly personIndex: number | null;
  /** The application whose log gets the entry; null: the operator's log. */
  readonly applicationIndex: number | null;
  /** Throws unless the person still has the right. Called in the writer before a change. */
  require(group: Group): void;
}

/**
 * The engine's state in memory, in parts. Every change appends an entry to the journal and writes
 * the records derived from it in the same group. A room names the parts that it gets.
 */
export class Ledger {
  readonly store: Store;
  readonly writer: Writer;
  readonly services: Services;
  readonly journal: JournalHead;
  readonly tenants = new TenantTables();
  readonly batches: BatchTables;
  readonly minting: MintingState;
  readonly l1: ObservedL1;
  /** The vaults of orders whose fills wait for L1, with the orders. */
  readonly trades = new Table<VaultId, Uuid>();
  readonly readers = new ReaderState();

  constructor(
    store: Store,
    options: EngineOptions,
    limits: Limits,
    emit: EventHub["emit"],
    seed: Uint8Array,
  ) {
    this.store = store;
    this.services = new Services(options, limits, emit);
    const { clock, monotonic, sealingThread } = this.services;
    const ahead = options.clockAheadMs ?? Number.POSITIVE_INFINITY;
    this.journal = new JournalHead(new JournalClock(clock, monotonic, ahead));
    this.batches = new BatchTables(options, limits, this.tenants.isForeign);
    this.minting = new MintingState(seed);
    this.l1 = new ObservedL1(options.divergenceMs);
    this.writer = new Writer(store, (group) => this.#finish(group), sealingThread);
  }

  /**
   * The writer for changes of one actor: the entries of each in the journal are followed by the
   * actor's name.
   */
  changesOf(actor: Actor): ChangeWriter {
    const { writer } = this;
    const { head } = this.journal;
    /** Returns what ends the change. */
    const begin = (group: Group) => {
      actor.require(group);
      const before = head.view(group).journalLength;
      return <T>(value: T): T => {
        this.#recordAct(group, actor, head.view(group).journalLength - before);
        return value;
      };
    };
    return {
      run: <T>(transition: Transition<T>, signal?: AbortSignal) => {
        const { weight } = transition;
        const keys = () => transition.keys();
        const apply: typeof transition.apply = (group, stored) =>
          begin(group)(transition.apply(group, stored));
        return writer.run({ weight, keys, apply }, signal);
      },
      alone: (body, signal) =>
        writer.alone(async (group) => begin(group)(await body(group)), signal),
    };
  }

  #recordAct(group: Group, { personIndex, applicationIndex }: Actor, count: number): void {
    if (count === 0) return;
    const { sequence } = this.journal.record(group, {
      kind: "acted",
      personIndex,
      applicationIndex,
      count,
    });
    const log = applicationIndex === null ? 0 : applicationIndex + 1;
    const { auditCounts } = this.tenants;
    const { count: number } = auditCounts.view(group).get(log) ?? { count: 0 };
    auditCounts.set(group, { log, count: number + 1 });
    group.put(keyOf.audit(log, number), keyOf.journal(sequence).subarray(1));
  }

  /** Adds each changed thing once, however many transitions of the group change it. */
  #finish(group: Group): void {
    for (const mode of MODES) {
      const open = this.batches.unsealed.open(group, mode);
      if (open.flush(group)) this.batches.putBatch(group, openBatchRecord(open));
    }
    const { applications, keys, assets, collections, webhooks, people, auditCounts } = this.tenants;
    for (const index of applications.flush(group))
      group.onDurable(() => this.readers.followers.wake(index));
    for (const table of [keys, assets, collections, webhooks, people, auditCounts])
      table.flush(group);
    this.l1.portals.flush(group);
    if (group.operations.length === 0) return;
    group.put(HEAD_KEY, encodeRecord(records.headRecord, this.journal.head.view(group)));
  }
}

/** Rooms about applications get these parts: neither batches, nor mints, nor L1. */
export type TenantLedger = Omit<Ledger, "batches" | "minting" | "l1">;
