import { setTimeout as pause } from "node:timers/promises";
import { Turns } from "../at-once.ts";
import { MintmarkError } from "../errors.ts";
import type { Leadership } from "./ports.ts";
import type { Connection } from "./postgres-connection.ts";
import { hashOf, type JournalKeys } from "./sealed-entries.ts";

/**
 * After this many ms without an append, the row says that the last entry is replicated, so that the
 * others may read it.
 */
const SETTLED_MS = 20;
/**
 * A leader prolongs its lease at least this often, in ms: a standby calls its reads unreliable
 * after 5,000.
 */
const BEAT_MS = 1_000;
const RETRY_MS = 100; // Pause between attempts while the journal cannot be written, in ms

const HEAD = "select epoch, hash from mintmark_shard where id = $1";
/**
 * The fence. It changes nothing unless this leader's entries come next. PostgreSQL checks the
 * condition again after a wait.
 */
const APPEND = `with fence as (
    update mintmark_shard set head = $3 + cardinality($6::bytea[]), hash = $7, confirmed = $3,
      lease_until = clock_timestamp() + $8 * interval '1 ms'
    where id = $1 and epoch = $2 and head = $3 and hash = $4 and ($9 or current_setting('synchronous_standby_names') <> '')
    returning 1)
  insert into mintmark_journal (shard, position, epoch, hash, body)
  select $1, $3 + ord - 1, $2, hashes.hash, body
  from fence, unnest($6::bytea[], $5::bytea[]) with ordinality as hashes (body, hash, ord)`;
/**
 * Changes nothing unless the journal ends with this leader's entries: a database that took over may
 * lack them.
 */
const PROLONG = `update mintmark_shard set confirmed = greatest(confirmed, $3),
    lease_until = clock_timestamp() + $4 * interval '1 ms' where id = $1 and epoch = $2 and hash = any($5::bytea[])`;
const RESIGN =
  "update mintmark_shard set leader = null, lease_until = '-infinity' where id = $1 and epoch = $2";

/** A shard's row. */
export interface Head {
  readonly epoch: number;
  readonly length: number;
  readonly hash: Buffer;
}

const LOST = "Another server leads the cluster, or the database lacks entries of this one.";

interface LeadOptions {
  readonly connection: Connection;
  readonly keys: JournalKeys;
  readonly shard: string;
  readonly single: boolean;
  readonly leaseMs: number;
}

/** One server's lead. Statements run one after another. */
export class PostgresLead implements Leadership {
  readonly #options: LeadOptions;
  readonly #lost = new AbortController();
  #head: Head;
  // The journal's end with the append that is under way; the same as `#head` while there is none
  #next: Head;
  readonly #appends = new Turns();
  #timer: NodeJS.Timeout | null = null;
  #answeredAt = performance.now();
  // When the append that is under way began; infinite while there is none
  #appendingSince = Number.POSITIVE_INFINITY;

  constructor(options: LeadOptions, head: Head) {
    this.#options = options;
    this.#head = head;
    this.#next = head;
  }

  get epoch(): number {
    return this.#head.epoch;
  }

  get length(): number {
    return this.#head.length;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** A database with a full disk refuses entries, and still prolongs the lease. */
  get available(): boolean {
    const since = Math.min(this.#answeredAt, this.#appendingSince);
    return !this.lost.aborted && performance.now() - since < this.#options.leaseMs;
  }

  /** Prolongs the lease from now. */
  start(): void {
    this.#beatIn(this.#beatMs);
  }

  get #beatMs(): number {
    return Math.min(this.#options.leaseMs / 4, BEAT_MS);
  }

  #beatIn(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.lost.aborted) return;
    this.#timer = setTimeout(async () => {
      const isConfirmed = await this.#prolong().catch(() => false);
      this.#beatIn(isConfirmed ? this.#beatMs : RETRY_MS);
    }, ms);
  }

  append(length: number, entries: readonly Uint8Array[]): Promise<void> {
    return this.#appends.run(() => this.#append(length, entries));
  }

  /**
   * Resolves with true when all of the primary's data is replicated: a later write was confirmed
   * without a warning. False when another server leads.
   */
  async confirm(): Promise<boolean> {
    while (!this.lost.aborted) {
      const isConfirmed = await this.#prolong().catch(() => false);
      if (isConfirmed) return true;
      await pause(RETRY_MS);
    }
    return false;
  }

  async resign(): Promise<void> {
    if (!this.lost.aborted) {
      await this.#appends.run(async () => {});
      const { connection, shard } = this.#options;
      await connection.query(RESIGN, [shard, this.epoch]).catch(() => {});
    }
    this.#lose("The server has given the lead away.");
  }

  async #append(length: number, entries: readonly Uint8Array[]): Promise<void> {
    this.lost.throwIfAborted();
    if (length !== this.#head.length)
      throw new MintmarkError(
        "store_mismatch",
        `The journal holds ${this.#head.length} entries, not ${length}.`,
      );
    if (entries.length === 0) return;
    const { keys, shard, leaseMs, single, connection } = this.#options;
    let { hash } = this.#head;
    const [bodies, hashes]: [Buffer[], Buffer[]] = [[], []];
    for (const [i, entry] of entries.entries()) {
      const place = { shard, position: length + i, epoch: this.epoch, previous: hash };
      const body = keys.seal(place, entry);
      hash = hashOf(place, body);
      bodies.push(body);
      hashes.push(hash);
    }
    const next = { epoch: this.epoch, length: length + entries.length, hash };
    this.#next = next;
    const values = [
      shard,
      this.epoch,
      length,
      this.#head.hash,
      hashes,
      bodies,
      hash,
      leaseMs,
      single,
    ];
    this.#appendingSince = performance.now();
    for (let isRepeated = false; ; isRepeated = true) {
      this.lost.throwIfAborted();
      try {
        const { count, isDoubtful } = await connection.write(APPEND, values);
        if (count > 0 && !isDoubtful) break;
        if ((count > 0 || (await this.#has(next))) && (await this.confirm())) break;
      } catch (error) {
        if (error instanceof MintmarkError && error.code !== "journal_unavailable") throw error;
      }
      if (isRepeated) await pause(RETRY_MS);
    }
    this.#appendingSince = Number.POSITIVE_INFINITY;
    this.#answeredAt = performance.now();
    this.#head = next;
    this.#beatIn(SETTLED_MS);
  }

  /**
   * Whether the journal ends with these entries; false while it ends before them. Throws
   * `not_leader` for other entries.
   */
  async #has(next: Head): Promise<boolean> {
    const { connection, shard } = this.#options;
    const { rows } = await connection.query(HEAD, [shard]);
    const [row] = rows;
    const hash = row?.hash as Buffer | undefined;
    if (Number(row?.epoch) === next.epoch && hash?.equals(next.hash)) return true;
    if (Number(row?.epoch) === next.epoch && hash?.equals(this.#head.hash)) return false;
    this.#lose(LOST);
    throw this.lost.reason;
  }

  /** Records whether the primary wrote and replicated. Aborts `lost` when another server leads. */
  async #prolong(): Promise<boolean> {
    const { connection, shard, leaseMs } = this.#options;
    const ends = [this.#head.hash, this.#next.hash];
    const values = [shard, this.epoch, this.#head.length, leaseMs, ends];
    const { count, isDoubtful } = await connection.write(PROLONG, values);
    if (count === 0) this.#lose(LOST);
    if (count === 0 || isDoubtful) return false;
    this.#answeredAt = performance.now();
    return true;
  }

  #lose(detail: string): void {
    if (this.lost.aborted) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#lost.abort(new MintmarkError("not_leader", detail));
    void this.#options.connection.close();
  }
}
