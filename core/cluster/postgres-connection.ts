import pg from "pg";
import { Turns } from "../at-once.ts";
import { invalid, MintmarkError } from "../errors.ts";

/**
 * The tables of a journal. Each settlement contract has one row in the first. `body` is encrypted.
 */
const TABLES = `
create table if not exists mintmark_shard (
  id text primary key, epoch bigint not null default 0, head bigint not null default 0, hash bytea not null,
  confirmed bigint not null default 0, pruned bigint not null default 0, snapshot bigint,
  leader text, url text, lease_until timestamptz not null default '-infinity');
create table if not exists mintmark_journal (
  shard text not null, position bigint not null, epoch bigint not null, hash bytea not null, body bytea not null,
  primary key (shard, position));
create table if not exists mintmark_snapshot (
  shard text not null, length bigint not null, part bigint not null, body bytea not null, primary key (shard, length, part));
alter table mintmark_journal alter column body set storage external;
alter table mintmark_snapshot alter column body set storage external`;

/** A wrong user, password or database: waiting does not mend it. */
const REFUSED = new Set(["28000", "28P01", "3D000", "42501"]);

/** Another connection may create the same table at the same time. */
const CREATED_MEANWHILE = new Set(["42P07", "23505", "XX000"]);

const CONNECT_MS = 2_000; // Longest wait for a new connection

const REPLICATES = "select current_setting('synchronous_standby_names') <> '' as replicates";

/** A statement's result, and whether its commit may not be replicated. */
export interface Answer {
  readonly rows: readonly Record<string, unknown>[];
  readonly count: number;
  readonly isDoubtful: boolean;
}

/** Address of a database, and what is expected of it. */
export interface ConnectionOptions {
  /**
   * `postgres://user:password@host:port/database`. For several hosts, use one name or a proxy that
   * knows the primary.
   */
  readonly url: string;
  /** After this many ms without an answer the connection is closed. */
  readonly patienceMs: number;
  /** Whether a database without a synchronous standby is enough. */
  readonly single?: boolean;
}

/** One connection to the primary. A failure closes it; the next statement opens another. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #name: string;
  #client: Promise<pg.Client> | null = null;
  #warned = false; // Statements run one after another, so one flag is enough.
  readonly #turns = new Turns();

  /** @param name - shown in `pg_stat_activity`; at most 63 bytes */
  constructor(options: ConnectionOptions, name: string) {
    this.#options = options;
    this.#name = name;
  }

  /**
   * Rejects with `journal_unavailable` for every failure. Whether the statement took effect is
   * unknown then.
   */
  query(text: string, values: readonly unknown[] = []): Promise<Answer> {
    return this.#turns.run(() => this.#query(text, values));
  }

  async #query(text: string, values: readonly unknown[]): Promise<Answer> {
    this.#client ??= this.#open();
    const opening = this.#client;
    try {
      const client = await opening;
      this.#warned = false;
      const { rows, rowCount } = await this.#inTime(client.query(text, [...values]));
      return { rows, count: rowCount ?? 0, isDoubtful: this.#warned };
    } catch (error) {
      if (this.#client === opening) this.#client = null;
      void opening.then(end, () => {});
      throw failureOf(error);
    }
  }

  /**
   * A change. It is doubtful too when PostgreSQL waited for no standby, about which it does not
   * warn.
   */
  async write(text: string, values: readonly unknown[]): Promise<Answer> {
    const answer = await this.query(text, values);
    if (answer.count === 0 || answer.isDoubtful || this.#options.single === true) return answer;
    const { rows } = await this.query(REPLICATES);
    return { ...answer, isDoubtful: rows[0]?.replicates !== true };
  }

  async close(): Promise<void> {
    const opening = this.#client;
    this.#client = null;
    await opening?.then(end, () => {});
  }

  async #open(): Promise<pg.Client> {
    const { url, patienceMs } = this.#options;
    const client = new pg.Client({
      connectionString: url,
      application_name: this.#name,
      // A frozen primary still accepts connections, behind a proxy too. The next attempt may find
      // another one.
      connectionTimeoutMillis: Math.min(patienceMs, CONNECT_MS),
      keepAlive: true,
      options: "-c synchronous_commit=on -c client_connection_check_interval=2000",
    });
    client.on("error", () => {
      this.#client = null;
    });
    // A cancelled wait for a standby ends with success and this warning.
    client.on("notice", ({ severity }) => {
      if (severity === "WARNING") this.#warned = true;
    });
    try {
      await client.connect();
      return client;
    } catch (error) {
      end(client);
      throw error;
    }
  }

  #inTime<T>(answer: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error("no answer in time")),
      this.#options.patienceMs,
    );
    return Promise.race([answer, promise]).finally(() => clearTimeout(timer));
  }
}

/** Does not wait for a silent server. */
function end(client: pg.Client): void {
  client.on("error", () => {});
  void client.end().catch(() => {});
  (
    client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }
  ).connection.stream.destroy();
}

/** Creates missing tables. When they exist it writes nothing, so it needs no standby. */
export async function createTables(connection: Connection): Promise<void> {
  const { rows } = await connection.query("select to_regclass('mintmark_journal') as found");
  if (rows[0]?.found !== null) return;
  try {
    await connection.query(TABLES);
  } catch (error) {
    if (!CREATED_MEANWHILE.has(codeOf(error))) throw error;
    await connection.query(TABLES);
  }
}

/**
 * Throws `validation_failed`, and says what to change, unless acknowledged writes survive the
 * primary.
 *
 * @param single - whether the operator accepts a single copy
 */
export async function requireReplication(connection: Connection, single: boolean): Promise<void> {
  const names = ["fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names"];
  const asked = names.map((name) => `current_setting('${name}') as ${name}`).join(", ");
  const { rows } = await connection.query(`select pg_is_in_recovery() as standby, ${asked}`);
  const [is = {}] = rows;
  if (is.standby === true) {
    // After a failover a proxy may still lead to the old primary.
    const detail =
      "this server of PostgreSQL is a standby; name the primary, or a proxy that finds it";
    throw new MintmarkError("journal_unavailable", `MINTMARK_JOURNAL: ${detail}.`);
  }
  const wrong =
    is.fsync !== "on" || is.full_page_writes !== "on"
      ? "fsync and full_page_writes must be on"
      : is.synchronous_commit !== "on" && is.synchronous_commit !== "remote_apply"
        ? "synchronous_commit must be on"
        : is.synchronous_standby_names === "" && !single
          ? "synchronous_standby_names is empty, so the journal would have one copy. Name a standby there, " +
            "or set MINTMARK_JOURNAL_COPIES=1 to accept the loss of all mints since the last commit with that disk"
          : null;
  if (wrong !== null) throw invalid(`MINTMARK_JOURNAL: ${wrong}.`);
}

function failureOf(cause: unknown): MintmarkError {
  if (cause instanceof MintmarkError) return cause;
  // A connection error's text may hold the address, never the password.
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new MintmarkError("journal_unavailable", `PostgreSQL: ${detail}`, { cause });
}

/**
 * Turns a refusal of the address's user into `validation_failed`; returns any other error as it is.
 */
export function refusalOf(error: unknown): unknown {
  if (!(error instanceof MintmarkError) || !REFUSED.has(codeOf(error))) return error;
  return new MintmarkError("validation_failed", `MINTMARK_JOURNAL: ${error.message}`, {
    cause: error.cause,
  });
}

function codeOf(error: unknown): string {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return String(cause?.code);
}
