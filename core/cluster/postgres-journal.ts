import { invalid, MintmarkError } from "../errors.ts";
import { Stack } from "../stack.ts";
import type { JournalStatus, Leadership, Server, SharedJournal } from "./ports.ts";
import {
  Connection,
  type ConnectionOptions,
  createTables,
  refusalOf,
  requireReplication,
} from "./postgres-connection.ts";
import { PostgresLead } from "./postgres-lead.ts";
import { FIRST_HASH, hashOf, JournalKeys } from "./sealed-entries.ts";

/**
 * Entries and bytes of one read, whose last entry may pass the bytes. An entry is one write of the
 * leader's store: 200 KB under load, some megabytes for a large batch. More would not come in time
 * over a slow line.
 */
const ENTRIES_AT_ONCE = 32;
const BYTES_AT_ONCE = 1 << 20;
const STATUS = `select epoch, confirmed, pruned, leader, url, lease_until::text as lease,
    lease_until > clock_timestamp() as live
  from mintmark_shard where id = $1`;
const FIRST_ROW = "insert into mintmark_shard (id, hash) values ($1, $2) on conflict do nothing";
const TAKE_LEAD = `update mintmark_shard set epoch = epoch + 1, leader = $3, url = $4,
    lease_until = clock_timestamp() + $5 * interval '1 ms'
  where id = $1 and epoch = $2 and (lease_until <= clock_timestamp() or leader is null or lease_until = $6::timestamptz)
  returning epoch, head, hash`;
/**
 * PostgreSQL refuses to end another role's connections. The fence holds without that, when the lock
 * is free.
 */
const END_CONNECTIONS = `select pg_terminate_backend(pid) from pg_stat_activity
  where application_name = $1 and datname = current_database() and pid <> pg_backend_pid()
    and pg_has_role(usesysid, 'USAGE')`;
const READ = `select position, epoch, hash, body from (
    select *, sum(octet_length(body)) over (order by position) - octet_length(body) as before from (
      select position, epoch, hash, body from mintmark_journal
      where shard = $1 and position >= $2 and position < $3 order by position limit ${ENTRIES_AT_ONCE}) as next) as sized
  where before < ${BYTES_AT_ONCE} order by position`;
const HASH = "select hash from mintmark_journal where shard = $1 and position = $2";
const SIZE =
  "select coalesce(sum(octet_length(body)), 0) as bytes from mintmark_journal where shard = $1";
/**
 * A snapshot is its leader's, like an entry: an older leader's would take the place of a newer one.
 */
const LEADS = "(select from mintmark_shard where id = $1 and epoch = $2)";
const KEEP_PART = `insert into mintmark_snapshot (shard, length, part, body) select $1, $3, $4, $5 where exists ${LEADS}`;
const DROP_SNAPSHOTS = `delete from mintmark_snapshot
  where shard = $1 and ($3::bigint is null or length <> $3) and exists ${LEADS}`;
/**
 * Prunes up to the previous snapshot, so that servers that are a little behind still find their
 * entries. Two entries before it stay: a store that ends there is compared with them.
 */
const KEEP_SNAPSHOT = `with kept as (
    update mintmark_shard set snapshot = $3, pruned = greatest(pruned, coalesce(snapshot, 0) - 2)
    where id = $1 and epoch = $2 returning pruned),
  dropped as (delete from mintmark_journal using kept where shard = $1 and position < kept.pruned)
  select from kept`;
const SNAPSHOT = "select snapshot from mintmark_shard where id = $1";
const READ_PART =
  "select body from mintmark_snapshot where shard = $1 and length = $2 and part = $3";

/** Address and limits of a journal. */
export interface PostgresOptions extends Partial<Pick<ConnectionOptions, "patienceMs" | "single">> {
  /** `postgres://user:password@host:port/database` of the primary, or of a proxy that finds it. */
  readonly url: string;
  /**
   * Name of the journal in the database: one for each settlement contract. At most 40 characters.
   */
  readonly shard: string;
  /** Keys of 32 random bytes. The first one encrypts, all decrypt. */
  readonly keys: readonly Uint8Array[];
}

/**
 * A cluster's journal on PostgreSQL with synchronous replication. `append` resolves when a standby
 * has the entry: after a write that PostgreSQL confirmed without a warning.
 *
 * @example
 * const journal = await PostgresJournal.open({ url: "postgres://mintmark@db.example/mintmark",
 * shard: "1-0x8464", keys: [key] });
 */
export class PostgresJournal implements SharedJournal, AsyncDisposable {
  readonly #options: PostgresOptions;
  readonly #connectionOptions: ConnectionOptions;
  readonly #keys: JournalKeys;
  readonly #reader: Connection;
  #leading: PostgresLead | null = null;
  /**
   * The leader's lease, and when this process saw it first: a clock of its own, since the
   * database's can jump.
   */
  #lease = { until: "", since: 0 };

  private constructor(options: PostgresOptions) {
    this.#options = options;
    this.#keys = new JournalKeys(options.keys);
    const { url, patienceMs = 5_000, single = false } = options;
    this.#connectionOptions = { url, patienceMs, single };
    this.#reader = new Connection(this.#connectionOptions, "mintmark reader");
  }

  /**
   * Connects, and creates the tables where they are missing.
   *
   * @throws MintmarkError `validation_failed` for bad options, a database without replication, or
   *   one that refuses the user; `journal_unavailable` while the primary is away
   */
  static async open(options: PostgresOptions): Promise<PostgresJournal> {
    if (options.shard.length === 0 || options.shard.length > 40)
      throw invalid("The journal's shard must have 1 to 40 characters.");
    const journal = new PostgresJournal(options);
    try {
      await requireReplication(journal.#reader, options.single === true);
      await createTables(journal.#reader);
      const { count } = await journal.#reader.query(STATUS, [options.shard]);
      if (count === 0) await journal.#reader.query(FIRST_ROW, [options.shard, FIRST_HASH]);
      return journal;
    } catch (error) {
      await journal.close();
      throw refusalOf(error);
    }
  }

  async status(): Promise<JournalStatus> {
    const row = await this.#row(this.#reader);
    const isLed = row.live === true && row.leader !== null;
    const leader = isLed ? { name: String(row.leader), url: String(row.url) } : null;
    const numbers = {
      epoch: Number(row.epoch),
      confirmed: Number(row.confirmed),
      pruned: Number(row.pruned),
    };
    return { ...numbers, leader, silentMs: this.#silentMs(row) };
  }

  /** Entries that are known to be replicated; for the leader, all that it appended. */
  async length(): Promise<number> {
    return this.#leading === null ? (await this.status()).confirmed : this.#leading.length;
  }

  async append(length: number, entries: readonly Uint8Array[]): Promise<void> {
    if (this.#leading === null) throw new MintmarkError("not_leader");
    await this.#leading.append(length, entries);
  }

  async *read(from: number): AsyncGenerator<Uint8Array, void, void> {
    const { shard } = this.#options;
    const { confirmed, pruned } = await this.status();
    const end = this.#leading?.length ?? confirmed;
    // The check of the first entry needs the hash of the one before it.
    if (pruned > 0 && from <= pruned) {
      const detail = `The journal begins behind entry ${pruned}, and this store needs entry ${from}.`;
      throw new MintmarkError("store_mismatch", detail);
    }
    let previous = from === 0 ? FIRST_HASH : await this.#hashBefore(from);
    if (previous === null) throw missing(from - 1);
    for (let position = from; position < end; ) {
      const { rows } = await this.#reader.query(READ, [shard, position, end]);
      if (rows.length === 0) throw missing(position);
      for (const row of rows) {
        if (Number(row.position) !== position) throw missing(position);
        const place = { shard, position, epoch: Number(row.epoch), previous };
        const body = row.body as Buffer;
        yield this.#keys.open(place, body);
        previous = hashOf(place, body);
        position++;
      }
    }
  }

  async entry(position: number): Promise<Uint8Array | null> {
    const { shard } = this.#options;
    const { rows } = await this.#reader.query(READ, [shard, position, position + 1]);
    const [row] = rows;
    const previous = position === 0 ? FIRST_HASH : await this.#hashBefore(position);
    if (row === undefined || previous === null) return null;
    return this.#keys.open(
      { shard, position, epoch: Number(row.epoch), previous },
      row.body as Buffer,
    );
  }

  async lead(server: Server, leaseMs: number): Promise<Leadership | null> {
    const { shard, single = false } = this.#options;
    const name = `mintmark leader ${shard}`;
    await using opened = new Stack();
    const connection = new Connection(this.#connectionOptions, name);
    opened.defer(() => connection.close());
    const before = await this.#row(connection);
    const isSilent = this.#silentMs(before) > leaseMs;
    if (before.live === true && before.leader !== null && !isSilent) return null;
    // Ends the old leader's statements now, not when its connection dies.
    await connection.query(END_CONNECTIONS, [name]);
    const seen = isSilent ? before.lease : null;
    const values = [shard, before.epoch, server.name, server.url, leaseMs, seen];
    const { rows, isDoubtful } = await connection.write(TAKE_LEAD, values);
    const [row] = rows;
    if (row === undefined) return null;
    const head = { epoch: Number(row.epoch), length: Number(row.head), hash: row.hash as Buffer };
    const lead = new PostgresLead({ connection, keys: this.#keys, shard, single, leaseMs }, head);
    // Another server may take over from a leader that nobody has seen confirmed yet.
    if (isDoubtful && !(await lead.confirm())) return null;
    opened.move();
    this.#leading = lead;
    lead.lost.addEventListener("abort", () => {
      if (this.#leading === lead) this.#leading = null;
    });
    lead.start();
    return lead;
  }

  async size(): Promise<number> {
    const { rows } = await this.#reader.query(SIZE, [this.#options.shard]);
    return Number(rows[0]?.bytes);
  }

  async keepSnapshot(length: number, parts: AsyncIterable<Uint8Array>): Promise<void> {
    const { shard } = this.#options;
    if (this.#leading === null) throw new MintmarkError("not_leader");
    const { epoch } = this.#leading;
    const connection = new Connection(this.#connectionOptions, "mintmark snapshot");
    const asLeader = async (text: string, ...values: unknown[]) => {
      const { count } = await connection.query(text, [shard, epoch, ...values]);
      if (count === 0) throw new MintmarkError("not_leader");
    };
    try {
      const { rows } = await connection.query(SNAPSHOT, [shard]);
      if (Number(rows[0]?.snapshot) === length) return;
      // Left by an interrupted snapshot.
      await connection.query(DROP_SNAPSHOTS, [shard, epoch, rows[0]?.snapshot ?? null]);
      let part = 0;
      for await (const bytes of parts) {
        const sealed = this.#keys.seal(partOf(shard, length, part), bytes);
        await asLeader(KEEP_PART, length, part++, sealed);
      }
      const end = this.#keys.seal(partOf(shard, length, part), new Uint8Array());
      await asLeader(KEEP_PART, length, part, end);
      await asLeader(KEEP_SNAPSHOT, length);
      await connection.query(DROP_SNAPSHOTS, [shard, epoch, length]);
    } finally {
      await connection.close();
    }
  }

  async snapshot(): Promise<AsyncIterable<Uint8Array> | null> {
    const { rows } = await this.#reader.query(SNAPSHOT, [this.#options.shard]);
    const { snapshot = null } = rows[0] ?? {};
    return snapshot === null ? null : this.#parts(Number(snapshot));
  }

  /** An empty part ends a snapshot, so a missing part is noticed. */
  async *#parts(length: number): AsyncGenerator<Uint8Array, void, void> {
    const { shard } = this.#options;
    for (let part = 0; ; part++) {
      const { rows } = await this.#reader.query(READ_PART, [shard, length, part]);
      if (rows[0] === undefined) {
        const detail = "The snapshot was replaced by a newer one meanwhile. Start again.";
        throw new MintmarkError("journal_unavailable", detail);
      }
      const bytes = this.#keys.open(partOf(shard, length, part), rows[0].body as Buffer);
      if (bytes.length === 0) return;
      yield bytes;
    }
  }

  async close(): Promise<void> {
    await this.#leading?.resign();
    await this.#reader.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #row(connection: Connection): Promise<Record<string, unknown>> {
    const { rows } = await connection.query(STATUS, [this.#options.shard]);
    if (rows[0] === undefined)
      throw new MintmarkError("store_mismatch", "The database does not hold this journal.");
    return rows[0];
  }

  /** How long the leader has not prolonged its lease, as far as this process has looked. */
  #silentMs({ lease }: Record<string, unknown>): number {
    if (this.#lease.until !== lease)
      this.#lease = { until: String(lease), since: performance.now() };
    return performance.now() - this.#lease.since;
  }

  /** Null when the journal does not hold the entry before. */
  async #hashBefore(position: number): Promise<Buffer | null> {
    const { rows } = await this.#reader.query(HASH, [this.#options.shard, position - 1]);
    return (rows[0]?.hash as Buffer | undefined) ?? null;
  }
}

/** A snapshot part's place. No journal entry has epoch 0, so the two cannot be mixed up. */
function partOf(shard: string, length: number, part: number) {
  return { shard: `${shard} snapshot ${length}`, position: part, epoch: 0, previous: FIRST_HASH };
}

function missing(position: number): MintmarkError {
  return new MintmarkError("store_corrupt", `Entry ${position} is missing in the journal.`);
}
