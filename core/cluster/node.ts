import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { type ClusterEngine, type Engine, openAs } from "../engine.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineOptions } from "../ledger/options.ts";
import { Stack } from "../stack.ts";
import { requireNewest } from "../store/format.ts";
import { genesisOf, requireSameStore } from "../store/genesis.ts";
import { LevelStore } from "../store/level-store.ts";
import { HEAD_KEY } from "../store/store-keys.ts";
import { ClusterStore, partsOf } from "./cluster-store.ts";
import type { JournalStatus, Leadership, Server, SharedJournal } from "./ports.ts";

const LEASE_MS = 3_000; // Lease of a leader, in ms: nobody else leads during it
const SIZE_CHECK_MS = 30_000; // Pause between a leader's checks of the journal's size, in ms
const JOURNAL_BYTES = 1 << 30;
const POLL_MS = 50; // Pause between a standby's reads of the journal, in ms
/**
 * After this many ms without a heartbeat of the leader in the journal, a standby calls its reads
 * unreliable.
 */
const STALE_MS = 5_000;

/** How an engine ends when its role does. */
const PASSED_ON: ReadonlySet<unknown> = new Set(["engine_closed", "not_leader"]);

const AWAY = "The cluster's journal does not answer, or does not replicate.";

/** Options of a server in a cluster. */
export interface ClusterOptions extends Omit<EngineOptions, "store" | "journal"> {
  /** The server's own folder. It may be empty: the journal fills it. */
  readonly store: string;
  /** The shared journal. The node closes it. */
  readonly journal: SharedJournal;
  readonly server: Server;
  /** See {@link SharedJournal.lead}. Default 3,000. */
  readonly leaseMs?: number;
  /**
   * Size of the journal at which the leader writes a snapshot and prunes it, in bytes. Default 1
   * GiB.
   */
  readonly journalBytes?: number;
}

/** A server's role at a moment. */
export interface ClusterRole {
  readonly role: "leader" | "standby";
  /**
   * Rejects changes with `not_leader` while the server is a standby. Closed when the role changes.
   */
  readonly engine: Engine;
}

/**
 * One server of a cluster: a leader, or a standby that can take over. Several machines with the
 * same options and journal make a cluster.
 *
 * @example
 * const journal = await PostgresJournal.open({ url, shard: "1-0x8464", keys: [key] }); const node =
 * await ClusterNode.join({ store: "./data", journal, server: { name: "a", url: "http://a:3000" },
 * ...options }); const { role, engine } = await node.next();
 */
export class ClusterNode implements AsyncDisposable {
  readonly #options: ClusterOptions;
  readonly #store: ClusterStore;
  readonly #stop = new AbortController();
  #role: ClusterRole | null = null;
  #standby: ClusterEngine | null = null;
  #leadership: Leadership | null = null;
  #leading: ClusterEngine | null = null;
  #status: JournalStatus;
  /**
   * When the leader last prolonged its lease: a database that was cut off still answers, and knows
   * nothing new.
   */
  #heardAt = performance.now();
  /**
   * Looks in a row at which the leader found the journal away. After one, an answer may still wait
   * to be read.
   */
  #looksAway = 0;
  #awayMs = 0;
  #lookedAt = performance.now();
  #failure: MintmarkError | null = null;
  #term = newTerm();
  #pruneAt = 0;
  #running: Promise<void> = Promise.resolve();
  #changed = Promise.withResolvers<void>();

  private constructor(options: ClusterOptions, store: ClusterStore, status: JournalStatus) {
    this.#options = options;
    this.#store = store;
    this.#status = status;
  }

  /**
   * Joins a cluster. Resolves when the server has a role, after it has caught up with the journal.
   *
   * @throws MintmarkError `store_missing` when the journal is empty and `createIfMissing` is not
   *   set; `journal_unavailable`, `store_mismatch`, `store_locked`, `store_corrupt`, `store_failed`
   */
  static async join(options: ClusterOptions): Promise<ClusterNode> {
    await using opened = new Stack();
    opened.defer(() => options.journal.close());
    const store = await ClusterStore.open(options.store, options.journal);
    opened.defer(() => store.release());
    const node = new ClusterNode(options, store, await options.journal.status());
    opened.move();
    node.#running = node.#run();
    await node.next().catch(async (error) => {
      await node.close();
      throw error;
    });
    return node;
  }

  get role(): ClusterRole["role"] {
    return this.#current.role;
  }

  /** Whether this server leads and serves; false between two roles. */
  get isLeader(): boolean {
    return this.#role?.role === "leader";
  }

  get engine(): Engine {
    return this.#current.engine;
  }

  /** The leader as far as this server knows; null when there is none. */
  get leader(): Server | null {
    return this.#leadership === null ? this.#status.leader : this.#options.server;
  }

  /** Aborted when another server leads than before, or when the node ends. */
  get term(): AbortSignal {
    return this.#term.signal;
  }

  /** Number of the cluster's writes that this server's reads show. */
  get position(): number {
    return this.#store.length;
  }

  /** Number of the cluster's writes that this server lacks. */
  get lag(): number {
    return this.#leadership === null ? Math.max(0, this.#status.confirmed - this.#store.length) : 0;
  }

  /** Why this server's reads are unreliable now; null while all is well. */
  get fault(): string | null {
    if (this.#failure !== null) return this.#failure.message;
    const isAway =
      this.#leadership === null
        ? performance.now() - this.#heardAt > STALE_MS
        : this.#looksAway > 1;
    return isAway ? AWAY : null;
  }

  /** For how many ms of its life this server has had a {@link fault}. */
  get awayMs(): number {
    return this.#awayMs;
  }

  /** Aborted with the error when the node ends by itself. */
  get ended(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * Resolves when this server's reads show the write at this position. Rejects with the signal's
   * reason.
   */
  async reached(position: number, signal: AbortSignal): Promise<void> {
    while (this.#store.length < position) await pause(POLL_MS / 5, undefined, { signal });
  }

  /**
   * The server's role, as soon as it has one. Rejects when the node ends. The engine is closed when
   * the role ends.
   */
  async next(): Promise<ClusterRole> {
    while (this.#role === null) {
      if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
      await this.#changed.promise;
    }
    return this.#role;
  }

  /** Writes a snapshot to the journal now; see {@link ClusterOptions.journalBytes}. */
  async keepSnapshot(): Promise<void> {
    await this.#store.keepSnapshot();
  }

  /** Gives up the lead and closes the store. */
  async close(): Promise<void> {
    this.#stop.abort(this.#failure ?? new MintmarkError("engine_closed"));
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #engineOptions(): EngineOptions {
    const { journal: _, server: __, leaseMs: ___, journalBytes: ____, ...options } = this.#options;
    return { ...options, store: this.#store };
  }

  get #current(): ClusterRole {
    if (this.#role === null) throw this.#failure ?? new MintmarkError("engine_closed");
    return this.#role;
  }

  async #run(): Promise<void> {
    try {
      while (!this.#stop.signal.aborted) await this.#look();
    } catch (error) {
      const isOurs = error instanceof MintmarkError;
      this.#fail(isOurs ? error : new MintmarkError("store_failed", undefined, { cause: error }));
    }
    await this.#end();
    this.#stop.abort(this.#failure);
    this.#tell();
  }

  #fail(failure: MintmarkError): void {
    this.#failure ??= failure;
    this.#stop.abort(failure);
  }

  /**
   * Reads the journal's status once, and acts on it. While the journal is away, the next look tries
   * again.
   */
  async #look(): Promise<void> {
    try {
      if (this.#leadership === null) await this.#follow(await this.#options.journal.status());
      else await this.#keepLead(this.#leadership);
    } catch (error) {
      const isPassing = error instanceof MintmarkError && error.code === "journal_unavailable";
      if (!isPassing && !this.#stop.signal.aborted) throw error;
      if (isPassing && this.#role === null) await this.#standBy();
    }
    const now = performance.now();
    if (this.fault !== null) this.#awayMs += now - this.#lookedAt;
    this.#lookedAt = now;
    await pause(POLL_MS, undefined, { signal: this.#stop.signal }).catch(() => {});
  }

  async #keepLead({ available }: Leadership): Promise<void> {
    this.#looksAway = available ? 0 : this.#looksAway + 1;
    this.#leading?.refuse(this.fault === null ? null : new MintmarkError("journal_unavailable"));
    if (available && performance.now() >= this.#pruneAt) await this.#prune();
  }

  /** Bounds the journal. A failure is tried again later; until then the journal is longer. */
  async #prune(): Promise<void> {
    const { journal, journalBytes = JOURNAL_BYTES } = this.#options;
    try {
      if ((await journal.size()) > journalBytes) await this.#store.keepSnapshot();
    } catch (error) {
      if (!(error instanceof MintmarkError)) throw error;
    }
    this.#pruneAt = performance.now() + SIZE_CHECK_MS;
  }

  async #follow(status: JournalStatus): Promise<void> {
    // Another leader, or a database that took over, may not have what this store took in.
    const isOther = status.epoch !== this.#status.epoch || status.confirmed < this.#store.length;
    if (isOther) await this.#store.requireHeld();
    if (status.epoch !== this.#status.epoch) this.#endTerm();
    this.#status = status;
    this.#heardAt = performance.now() - status.silentMs;
    await this.#read(status.confirmed);
    const { journal, server, leaseMs = LEASE_MS } = this.#options;
    if (status.leader === null || status.silentMs > leaseMs) {
      const leadership = await journal.lead(server, leaseMs);
      if (leadership !== null) return this.#lead(leadership);
    }
    if (this.#role === null) await this.#standBy();
  }

  async #read(to: number): Promise<void> {
    let isOutdated = false;
    try {
      await this.#store.follow(
        to,
        (operations) => {
          if (this.#standby?.apply(operations) === false) isOutdated = true;
        },
        this.#stop.signal,
      );
    } finally {
      if (isOutdated) await this.#standBy();
    }
  }

  /**
   * Does nothing before the journal holds a whole store of this version's format. A server that is
   * upgraded before its leader only follows until then.
   */
  async #standBy(): Promise<void> {
    if (!(await this.#store.isReadable())) return;
    await this.#closeEngine();
    const standby = await openAs("standby", this.#engineOptions);
    this.#standby = standby;
    this.#become({ role: "standby", engine: standby.engine });
  }

  async #lead(leadership: Leadership): Promise<void> {
    this.#endTerm();
    try {
      await this.#closeEngine();
      while (this.#store.length < leadership.length) {
        leadership.lost.throwIfAborted();
        await this.#store.follow(leadership.length, () => {}, leadership.lost);
      }
      await this.#store.requireEnd(leadership.length);
      const isNew = this.#store.length === 0;
      const createIfMissing = isNew && this.#options.createIfMissing === true;
      const leading = await openAs("leader", { ...this.#engineOptions, createIfMissing });
      this.#leading = leading;
      this.#leadership = leadership;
      this.#pruneAt = performance.now();
      leadership.lost.addEventListener("abort", () => void this.#stepDown(leadership));
      this.#become({ role: "leader", engine: leading.engine });
    } catch (error) {
      const wasLost = leadership.lost.aborted;
      await leadership.resign();
      if (!wasLost) throw error;
    }
  }

  /** Another server leads. This server's store has nothing that the journal lacks. */
  async #stepDown(leadership: Leadership): Promise<void> {
    if (this.#leadership !== leadership || this.#stop.signal.aborted) return;
    await this.#closeEngine();
    this.#loseLead();
  }

  /** Until the journal tells more, this server has heard of a leader just now: itself. */
  #loseLead(): void {
    this.#leadership = null;
    this.#heardAt = performance.now();
  }

  async #closeEngine(): Promise<void> {
    const role = this.#role;
    this.#role = null;
    this.#standby = null;
    this.#leading = null;
    await role?.engine.close();
  }

  #endTerm(): void {
    this.#term.abort(new MintmarkError("not_leader"));
    this.#term = newTerm();
  }

  async #end(): Promise<void> {
    this.#term.abort(this.#failure ?? new MintmarkError("not_leader"));
    await this.#closeEngine();
    await this.#leadership?.resign();
    this.#loseLead();
    await this.#store.release();
    await this.#options.journal.close();
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  #become(role: ClusterRole): void {
    this.#role = role;
    const { ended } = role.engine;
    ended.addEventListener("abort", () => {
      const { reason } = ended;
      // A failed store ends membership.
      if (!PASSED_ON.has(reason.code)) this.#fail(reason);
    });
    this.#tell();
  }
}

/** Each request that is sent on to the leader listens. */
function newTerm(): AbortController {
  const term = new AbortController();
  setMaxListeners(0, term.signal);
  return term;
}

const BEGINNING_LEASE_MS = 30_000; // Reading the store's first part must not cost the lead
const NO_BYTES = new Uint8Array();

/**
 * Begins a journal with a store's records, and leads meanwhile. Repeated with the same store, it
 * goes on where it was interrupted. Resolves with the journal's length. The store may be any
 * engine's, or a server's of an earlier journal.
 *
 * @throws MintmarkError `store_mismatch` for a journal of another store, `not_leader` while a
 *   server leads
 */
export async function beginJournal(
  folder: string,
  {
    journal,
    server,
    ...expected
  }: Pick<ClusterOptions, "journal" | "server" | "settlement" | "environment">,
): Promise<number> {
  await using opened = new Stack();
  const store = await LevelStore.open(folder, false, "source");
  opened.defer(() => store.close());
  requireNewest(await requireSameStore(store, genesisOf(expected)));
  const leadership = await journal.lead(server, BEGINNING_LEASE_MS);
  if (leadership === null)
    throw new MintmarkError("not_leader", "A server leads this journal. Stop all servers first.");
  opened.defer(() => leadership.resign());
  let length = 0;
  for await (const part of partsOf(store, [HEAD_KEY])) {
    if (length >= leadership.length) await journal.append(length, [part]);
    else if (!Buffer.from(part).equals((await journal.entry(length)) ?? NO_BYTES))
      throw notEmpty(leadership);
    length++;
  }
  if (length < leadership.length) throw notEmpty(leadership);
  return length;
}

function notEmpty({ length }: { readonly length: number }): MintmarkError {
  const detail = `The journal already holds ${length} entries, which are not this store's.`;
  return new MintmarkError("store_mismatch", `${detail} Give an empty database.`);
}
