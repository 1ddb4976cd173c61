import { MintmarkError } from "../errors.ts";
import {
  type Environment,
  type Limits,
  MODES,
  type Mode,
  type Standard,
  type Uuid,
} from "../model.ts";
import type { Clock, Settlement } from "../ports.ts";
import type { ReceiptSigner } from "../protocol/receipt.ts";
import { SignerThread } from "../protocol/signers/signer-thread.ts";
import { StateHistory } from "../protocol/state-tree.ts";
import { Recent } from "../recent.ts";
import { SealingThread } from "../sealing/sealing-thread.ts";
import type { Entry } from "../store/entries.ts";
import { type Group, RecordTable, Table, TwoViews, type View } from "../store/group.ts";
import { encodeEntry } from "../store/journal.ts";
import { emptyOf, encodeRecord } from "../store/layout.ts";
import type { Store } from "../store/ports.ts";
import * as records from "../store/records.ts";
import { HEAD_KEY, keyOf } from "../store/store-keys.ts";
import { TokenHasher } from "../store/token-id.ts";
import { TokenIndex } from "../store/token-index.ts";
import { type Changes, type Transition, Writer } from "../store/writer.ts";
import { CommitHistory } from "./commit-history.ts";
import type { EventHub } from "./event-hub.ts";
import { Followers } from "./followers.ts";
import { JournalClock } from "./journal-clock.ts";
import { byMode, OpenBatch, openBatchRecord, UnsealedBatches } from "./open-batch.ts";
import type { EngineOptions } from "./options.ts";
import { RollupBlobs } from "./rollup-blobs.ts";
import { TokenSumsCache } from "./token-sums-cache.ts";
import { UserCache } from "./user-cache.ts";
import { VaultRefs } from "./vault-refs.ts";

export interface Recorded {
  readonly sequence: number;
  readonly time: number;
}

type Emit = EventHub["emit"];

/** Who makes changes, for the audit log. */
export interface Actor {
  /** null: the operator's command line. */
  readonly personIndex: number | null;
  /** The application whose log gets the entry; null: the operator's log. */
  readonly applicationIndex: number | null;
  /** Throws unless the person still has the right. Called in the writer before a change. */
  require(): void;
}

/**
 * The engine's state in memory. Every change appends an entry to the journal and writes the records
 * derived from it in the same group. All fields are the writer's view. Readers use the tables'
 * durable view and the store.
 */
export class Ledger {
  readonly store: Store;
  readonly writer: Writer;
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly journalClock: JournalClock;
  readonly verifySignature: EngineOptions["verifySignature"];
  readonly receiptSigner: ReceiptSigner | undefined;
  readonly emit: Emit;

  readonly applications = new RecordTable(
    keyOf.application,
    records.applicationRecord,
    "applicationIndex",
    "applicationId",
  );
  readonly keys = new RecordTable(keyOf.key, records.keyRecord, "keyIndex", "keyId");
  readonly keysOf = this.keys.indexBy(({ applicationIndex }) => applicationIndex);
  /** Keys of programs that are not revoked. Expired ones leave when the next one is issued. */
  readonly keysInForce = this.keys.indexBy(({ applicationIndex, ofPerson, revokedAt }) =>
    ofPerson || revokedAt !== null ? undefined : applicationIndex,
  );
  readonly webhooks = new RecordTable(
    keyOf.webhook,
    records.webhookRecord,
    "webhookIndex",
    "webhookId",
  );
  /** Webhooks that are not deleted. */
  readonly webhooksOf = this.webhooks.indexBy(({ applicationIndex, status }) =>
    status === "deleted" ? undefined : applicationIndex,
  );
  readonly people = new RecordTable(keyOf.person, records.personRecord, "personIndex", "personId");
  /** People by application; the operator's under null, as in {@link teamOf}. */
  readonly peopleOf = this.people.indexBy(({ applicationIndex }) => applicationIndex);
  /** People who are not removed. */
  readonly teamOf = this.people.indexBy(({ applicationIndex, removedAt }) =>
    removedAt === null ? applicationIndex : undefined,
  );
  readonly peopleByWallet = this.people.indexBy(({ address, removedAt }) =>
    removedAt === null ? (address ?? undefined) : undefined,
  );
  /** Log 0 is the operator's; log n + 1 is that of the application with index n. */
  readonly auditCounts = new RecordTable(keyOf.auditCount, records.auditCountRecord, "log");
  /** A removed asset's id may name a later one. */
  readonly assets = new RecordTable(keyOf.asset, records.assetRecord, "assetIndex", "assetId");
  /** Assets by application, removed ones too; null has those of no application. */
  readonly assetsOf = this.assets.indexBy(({ applicationIndex }) => applicationIndex);
  /** Assets by chain and contract; removed ones are left out. */
  readonly assetsByContract = this.assets.indexBy(({ chainId, contractAddress, removed }) =>
    removed ? undefined : `${chainId} ${contractAddress}`,
  );
  readonly assetsByType = this.assets.indexBy(({ chainId, assetType, removed }) =>
    removed ? undefined : `${chainId} ${assetType}`,
  );
  readonly portals = new RecordTable(keyOf.portal, records.portalRecord, "chainId");
  /** Metadata that assets have of their own, by asset id. */
  readonly collections = new RecordTable(keyOf.collection, records.collectionRecord, "assetId");
  readonly enablements = new Table<string, boolean>();
  readonly batches = byMode(() => new Table<number, records.BatchRecord>());
  readonly voids = byMode(() => new Table<number, readonly records.VoidedRun[]>());
  /** Mints that L1's history lacks, by the number of their batch. */
  readonly lost = byMode(() => new Table<number, readonly records.LostRecord[]>());
  /**
   * The state trees over all sealed batches. Readers do not ask a tree for batches that are not on
   * disk.
   */
  readonly histories = byMode(() => new TwoViews(new StateHistory()));
  readonly commits = new CommitHistory();
  readonly unsealed = new UnsealedBatches();
  readonly refs = new VaultRefs();
  readonly sealingThread = new SealingThread();
  readonly signers = new SignerThread();
  readonly blobs: RollupBlobs;
  /** Batches that are closed and not yet sealed on disk, by number. */
  readonly sealings = byMode(() => new Map<number, Promise<records.BatchRecord>>());
  readonly users = new UserCache();
  // Mints in progress that have an idempotency key, by application and key
  readonly keyedMints = new Set<string>();
  readonly tokenSums = new TokenSumsCache();
  /**
   * ERC-1155 ids of up to 15 digits, by asset, bound to their own decimal: minting them needs no
   * read.
   */
  readonly bindings = new Recent<number, number, true>(200_000);
  /** The newest block with a recent mark, by application and by asset or (below zero) mode. */
  readonly marks = new Recent<number, number, number>(100_000);
  readonly followers = new Followers();
  readonly standards: Standard[] = []; // The standard of each asset, by index. It never changes.
  readonly isForeign = (assetIndex: number): boolean =>
    this.standards[assetIndex] === "erc1155" && this.assetAt(assetIndex).blobScheme !== "mintmark";
  readonly hasher: TokenHasher;
  tokens = new TokenIndex(); // Every ERC-721 token, in the writer's view
  readonly head = new TwoViews(emptyOf(records.headRecord));
  /** Why mints are refused; null while L1's history is a prefix of this store's. */
  divergence: records.DivergenceRecord | null = null;
  /**
   * L1 has contradicted this store's history since this time of the monotonic clock; null while it
   * agrees. `source` is the kind of question that L1 answered.
   */
  doubt: { readonly source: string; readonly detail: string; readonly since: number } | null = null;
  readonly divergenceMs: number;
  readonly monotonic: Clock;
  reorganisations = 0; // Entries recorded since the opening, for all chains
  betterSignatures = 0; // Signatures since the opening that took the place of refused ones
  awaitsComparison = false; // Whether the store must be compared with L1 before it mints

  constructor(store: Store, options: EngineOptions, limits: Limits, emit: Emit, seed: Uint8Array) {
    this.store = store;
    this.hasher = new TokenHasher(seed);
    this.settlement = options.settlement;
    this.environment = options.environment;
    this.limits = limits;
    this.clock = options.clock ?? Date.now;
    // A caller's clock counts as monotonic too, unless the caller gives another.
    const monotonic = options.monotonic ?? options.clock ?? (() => performance.now());
    this.monotonic = monotonic;
    this.divergenceMs = options.divergenceMs ?? 60_000;
    this.journalClock = new JournalClock(
      this.clock,
      monotonic,
      options.clockAheadMs ?? Number.POSITIVE_INFINITY,
    );
    this.verifySignature = options.verifySignature;
    this.receiptSigner = options.receiptSigner;
    this.blobs = new RollupBlobs(options);
    this.emit = emit;
    this.writer = new Writer(store, (group) => this.#finish(group), this.sealingThread);
  }

  /** Throws `history_diverged` while L1 holds another history than this store, or seems to. */
  requireOneHistory(): void {
    const contradiction = this.divergence ?? this.doubt;
    if (contradiction !== null) throw new MintmarkError("history_diverged", contradiction.detail);
  }

  /** Throws `history_diverged` or `l1_not_compared` while a mint here may never reach L1. */
  requirePromising(): void {
    this.requireOneHistory();
    if (this.awaitsComparison) throw new MintmarkError("l1_not_compared");
  }

  /**
   * Opens a batch, which takes mints from now on, and closes the mode's open one.
   *
   * @param firstOrdinal - vaults in the mode's earlier batches
   * @param openedAt - default {@link now}
   */
  open(mode: Mode, batchNumber: number, firstOrdinal: number, openedAt = this.now()): OpenBatch {
    const batch = new OpenBatch(mode, batchNumber, openedAt, firstOrdinal, this.limits, {
      isForeign: this.isForeign,
      takesBlobs: () => this.blobs.kind === "blobs",
    });
    this.unsealed.setOpen(batch);
    this.refs.set(mode, batchNumber, firstOrdinal);
    return batch;
  }

  /**
   * The time of the next entry: the clock's if it fits the journal, and never before the newest
   * entry's.
   */
  now(): number {
    const now = this.journalClock.now();
    const { time } = this.head.latest;
    return now > time ? now : time;
  }

  /** Appends an entry to the journal. The caller writes the derived records in the same group. */
  record(group: Group, entry: Entry): Recorded {
    const time = this.now();
    return this.append(group, time, encodeEntry(time, entry));
  }

  append(group: Group, time: number, record: Buffer): Recorded {
    const sequence = this.head.latest.journalLength;
    group.put(keyOf.journal(sequence), record);
    this.head.latest = { ...this.head.latest, journalLength: sequence + 1, time };
    return { sequence, time };
  }

  /**
   * The writer for changes of one actor: the entries of each in the journal are followed by the
   * actor's name.
   */
  changesOf(actor: Actor): Changes {
    const { writer } = this;
    /** Returns what ends the change. */
    const begin = (group: Group) => {
      actor.require();
      const before = this.head.latest.journalLength;
      return <T>(value: T): T => {
        this.#recordAct(group, actor, this.head.latest.journalLength - before);
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
    const { sequence } = this.record(group, {
      kind: "acted",
      personIndex,
      applicationIndex,
      count,
    });
    const log = applicationIndex === null ? 0 : applicationIndex + 1;
    const { count: number } = this.auditCounts.latest.get(log) ?? { count: 0 };
    this.auditCounts.set(group, { log, count: number + 1 });
    group.put(keyOf.audit(log, number), keyOf.journal(sequence).subarray(1));
  }

  putAsset(group: Group, record: records.AssetRecord): void {
    this.standards[record.assetIndex] = record.standard;
    this.assets.set(group, record);
  }

  putVoids(
    group: Group,
    mode: Mode,
    batchNumber: number,
    runs: readonly records.VoidedRun[],
  ): void {
    this.voids[mode].put(group, batchNumber, runs);
    group.put(
      keyOf.voids(mode, batchNumber),
      encodeRecord(records.voidsRecord, { mode, batchNumber, runs }),
    );
  }

  putLost(group: Group, record: records.LostRecord): void {
    const { mode, batchNumber, upTo } = record;
    const earlier = this.lost[mode].latest.get(batchNumber) ?? [];
    this.lost[mode].put(group, batchNumber, [...earlier, record]);
    group.put(keyOf.lost(mode, batchNumber, upTo), encodeRecord(records.lostRecord, record));
  }

  putBatch(group: Group, record: records.BatchRecord): void {
    const before = this.batches[record.mode].latest.get(record.batchNumber);
    this.batches[record.mode].put(group, record.batchNumber, record);
    group.onDurable(() => this.commits.changed(before, record));
    group.put(
      keyOf.batch(record.mode, record.batchNumber),
      encodeRecord(records.batchRecord, record),
    );
  }

  /** The application. Throws `application_not_found`. */
  application(applicationId: Uuid, view: View = "durable"): records.ApplicationRecord {
    const record = this.applications.named(applicationId, view);
    if (record === undefined) throw new MintmarkError("application_not_found");
    return record;
  }

  assetAt(assetIndex: number): records.AssetRecord {
    const record = this.assets.latest.get(assetIndex);
    if (record === undefined)
      throw new MintmarkError("store_corrupt", `Asset ${assetIndex} is missing.`);
    return record;
  }

  /** Adds each changed thing once, however many transitions of the group change it. */
  #finish(group: Group): void {
    for (const mode of MODES) {
      const open = this.unsealed.open(mode);
      if (open.flush(group)) this.putBatch(group, openBatchRecord(open));
    }
    for (const index of this.applications.flush(group))
      group.onDurable(() => this.followers.wake(index));
    for (const table of [
      this.keys,
      this.assets,
      this.collections,
      this.webhooks,
      this.people,
      this.auditCounts,
    ])
      table.flush(group);
    this.portals.flush(group);
    if (group.operations.length === 0) return;
    const { latest } = this.head;
    group.put(HEAD_KEY, encodeRecord(records.headRecord, latest));
    this.head.put(group, latest);
  }
}

export function enablementId(applicationIndex: number, assetIndex: number): string {
  return `${applicationIndex}:${assetIndex}`;
}
