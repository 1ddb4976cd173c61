import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { freePort } from "../../../scripts/sandbox/process.ts";
import { Link } from "./link.ts";

const BINARIES = "/usr/lib/postgresql/15/bin";
const NEEDED = [BINARIES, "/usr/bin/patroni", "/usr/bin/etcd", "/usr/bin/cc"];
/** PostgreSQL refuses to run as root; this is `nobody`. */
const NOBODY = 65_534;
const IDENTITY = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
/** Seconds for which a primary that falls silent stays the primary. */
/** A standby may have to copy the primary anew, on a busy machine. */
const PATIENCE_MS = 240_000;

/** The programs that a run with Patroni lacks here; empty when all of them are installed. */
export function missingForPatroni(): string[] {
  return NEEDED.filter((path) => !existsSync(path));
}

/** The clock and the disk of one machine, as {@link FAULTS} lets a test bend them. */
export class Machine {
  readonly environment: Readonly<Record<string, string>>;
  readonly #file: number;

  constructor(folder: string, name: string, library: string) {
    const path = join(folder, `${name}.faults`);
    writeFileSync(path, Buffer.alloc(16));
    this.#file = openSync(path, "r+");
    this.environment = { FAULTS_FILE: path, LD_PRELOAD: library };
  }

  /** How far the clock is ahead. */
  jump(ms: number): void {
    this.#write(0, ms);
  }

  /** How long each sync of the disk takes. */
  slow(ms: number): void {
    this.#write(8, ms);
  }

  #write(at: number, ms: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(ms));
    writeSync(this.#file, bytes, 0, 8, at);
  }
}

/** Compiles what a {@link Machine} is preloaded with. */
export function compileFaults(folder: string): string {
  const library = join(folder, "faults.so");
  const source = fileURLToPath(new URL("./faults.c", import.meta.url));
  execFileSync("cc", [
    "-O2",
    "-Wall",
    "-Werror",
    "-shared",
    "-fPIC",
    "-o",
    library,
    source,
    "-ldl",
  ]);
  return library;
}

/**
 * One machine of the database: PostgreSQL, the Patroni that leads it, and its three ways to the
 * others.
 */
export class PatroniNode {
  readonly name: string;
  readonly machine: Machine;
  readonly #configuration: string;
  readonly #folder: string;
  readonly #ports: { readonly postgres: number; readonly rest: number };
  /** Others reach its PostgreSQL and its Patroni by these links, and it reaches etcd. */
  readonly links: Readonly<Record<"postgres" | "rest" | "etcd", Link>>;
  #patroni: ChildProcess | null = null;

  constructor(
    name: string,
    folder: string,
    machine: Machine,
    links: PatroniNode["links"],
    own: { readonly postgres: number; readonly rest: number },
    configuration: string,
  ) {
    this.name = name;
    this.#folder = folder;
    this.machine = machine;
    this.links = links;
    this.#ports = own;
    this.#configuration = configuration;
  }

  start(): void {
    const log = openSync(join(this.#folder, `${this.name}.log`), "a");
    this.#patroni = spawn("/usr/bin/patroni", [this.#configuration], {
      env: {
        PATH: `${BINARIES}:/usr/bin:/bin`,
        HOME: this.#folder,
        LANG: "C.UTF-8",
        ...this.machine.environment,
      },
      stdio: ["ignore", log, log],
      ...IDENTITY,
    });
  }

  /** The last lines of what Patroni and PostgreSQL said. */
  said(lines: number): string {
    return readFileSync(join(this.#folder, `${this.name}.log`), "utf8")
      .split("\n")
      .slice(-lines)
      .join("\n");
  }

  /** Ends PostgreSQL as a power cut does, and Patroni unless it shall mend that. */
  async kill(what: "postgres" | "machine"): Promise<void> {
    const processes = this.#postgres();
    const patroni = this.#patroni;
    if (
      what === "machine" &&
      patroni !== null &&
      patroni.exitCode === null &&
      patroni.signalCode === null
    ) {
      const ended = once(patroni, "exit");
      patroni.kill("SIGKILL");
      await ended;
    }
    for (const pid of processes) signal(pid, "SIGKILL");
  }

  /** Stops everything of it as it is, or only Patroni; or lets it go on. */
  freeze(isFrozen: boolean, what: "patroni" | "machine" = "machine"): void {
    const pids = [this.#patroni?.pid ?? 0, ...(what === "machine" ? this.#postgres() : [])];
    for (const pid of pids) if (pid > 0) signal(pid, isFrozen ? "SIGSTOP" : "SIGCONT");
  }

  /** Cuts it off from everyone, or only from some. */
  cut(
    isCut: boolean,
    links: readonly (keyof PatroniNode["links"])[] = ["postgres", "rest", "etcd"],
  ): void {
    for (const name of links) this.links[name].cut(isCut);
  }

  /** Whether it says that it is the primary. */
  async isPrimary(): Promise<boolean> {
    const reply = await fetch(`http://127.0.0.1:${this.#ports.rest}/primary`, {
      signal: AbortSignal.timeout(1_000),
    }).catch(() => null);
    await reply?.body?.cancel();
    return reply?.status === 200;
  }

  /** Asks Patroni for something; what it answers is nobody's promise. */
  async ask(path: string, method: "POST" | "PATCH", body: object): Promise<string> {
    const url = `http://127.0.0.1:${this.#ports.rest}${path}`;
    const signal = AbortSignal.timeout(30_000);
    const headers = { "content-type": "application/json" };
    const reply = await fetch(url, { method, headers, body: JSON.stringify(body), signal }).catch(
      () => null,
    );
    return (await reply?.text().catch(() => "")) ?? "";
  }

  /** One statement of the administrator's. */
  async query(text: string, database = "postgres"): Promise<readonly Record<string, unknown>[]> {
    const url = `postgres://postgres@127.0.0.1:${this.#ports.postgres}/${database}`;
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: 2_000,
      query_timeout: 5_000,
    });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query(text)).rows;
    } finally {
      void client.end().catch(() => {});
    }
  }

  /** The postmaster and all of its children. */
  #postgres(): number[] {
    const path = join(this.#folder, this.name, "postmaster.pid");
    const pid = existsSync(path) ? Number(readFileSync(path, "utf8").split("\n")[0]) : 0;
    return pid > 0 && isPostgres(pid) ? [pid, ...childrenOf(pid)] : [];
  }
}

export interface PatroniOptions {
  readonly nodes: number;
  /** Whether only a standby that was synchronous may take over. */
  readonly isSynchronous: boolean;
  /** How long a silent primary keeps its lock; default 8. */
  readonly ttlSeconds?: number;
}

/** PostgreSQL 15 on several machines of this one, with Patroni and etcd, for tests. */
export class PatroniCluster implements AsyncDisposable {
  readonly nodes: readonly PatroniNode[];
  readonly #etcd: ChildProcess;
  readonly #stack: AsyncDisposableStack;
  /** A proxy of production would know this primary. */
  #primary: PatroniNode | null = null;

  private constructor(
    nodes: readonly PatroniNode[],
    etcd: ChildProcess,
    stack: AsyncDisposableStack,
  ) {
    this.nodes = nodes;
    this.#etcd = etcd;
    this.#stack = stack;
    const look = setInterval(async () => {
      const all = await Promise.all(
        nodes.map(async (node) => ((await node.isPrimary()) ? node : null)),
      );
      this.#primary = all.find((node) => node !== null) ?? null;
    }, 300);
    stack.defer(() => clearInterval(look));
  }

  static async start(
    folder: string,
    { nodes: count, isSynchronous, ttlSeconds = 8 }: PatroniOptions,
  ): Promise<PatroniCluster> {
    await using stack = new AsyncDisposableStack();
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    if (IDENTITY.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
    const library = compileFaults(folder);
    const [client, peer] = [await freePort(0), await freePort(0)];
    const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
    const etcd = spawn(
      "/usr/bin/etcd",
      [
        [
          "--data-dir",
          join(folder, "etcd"),
          "--unsafe-no-fsync",
          "--log-level",
          "error",
          "--logger",
          "zap",
        ],
        ["--listen-client-urls", clientUrl, "--advertise-client-urls", clientUrl],
        [
          "--listen-peer-urls",
          peerUrl,
          "--initial-advertise-peer-urls",
          peerUrl,
          "--initial-cluster",
          `default=${peerUrl}`,
        ],
      ].flat(),
      { stdio: "ignore" },
    );
    stack.defer(async () => {
      const ended = once(etcd, "exit");
      etcd.kill("SIGCONT");
      if (etcd.kill("SIGKILL")) await ended;
    });
    const nodes: PatroniNode[] = [];
    for (let i = 0; i < count; i++) {
      const name = `n${i}`;
      const own = { postgres: await freePort(0), rest: await freePort(0) };
      const links = {
        postgres: stack.use(await Link.to(async () => own.postgres)),
        rest: stack.use(await Link.to(async () => own.rest)),
        etcd: stack.use(await Link.to(async () => client)),
      };
      const path = join(folder, `${name}.json`);
      writeFileSync(
        path,
        JSON.stringify(configuration(folder, name, own, links, { isSynchronous, ttlSeconds })),
      );
      const node = new PatroniNode(
        name,
        folder,
        new Machine(folder, name, library),
        links,
        own,
        path,
      );
      stack.defer(() => node.kill("machine"));
      node.start();
      nodes.push(node);
    }
    const cluster = new PatroniCluster(nodes, etcd, stack.move());
    try {
      const primary = await cluster.primary();
      await cluster.replicates();
      await primary.query("create role mintmark login");
      await primary.query("create database mintmark owner mintmark");
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The primary, once there is one. */
  async primary(): Promise<PatroniNode> {
    for (let left = 600; left > 0; left--) {
      if (this.#primary !== null) return this.#primary;
      await pause(100);
    }
    throw new Error("Patroni finds no primary");
  }

  /**
   * Resolves once every other node follows the primary, and one of them is synchronous where one
   * must be.
   */
  async replicates(): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    let rows: readonly Record<string, unknown>[] = [];
    while (performance.now() < end) {
      const primary = await this.primary();
      rows = await primary
        .query(
          "select application_name, state, sync_state from pg_stat_replication where application_name like 'n%'",
        )
        .catch(() => []);
      const streaming = rows.filter(({ state }) => state === "streaming");
      const isSafe = streaming.some(
        ({ sync_state: state }) => state === "sync" || state === "quorum",
      );
      if (streaming.length === this.nodes.length - 1 && isSafe) return;
      await pause(100);
    }
    const said = this.nodes.map((node) => `${node.name}:\n${node.said(40)}`).join("\n");
    throw new Error(`a standby does not replicate: ${JSON.stringify(rows)}\n${said}`);
  }

  /** A way to the primary, as HAProxy gives one: connections that are there stay where they are. */
  async link(): Promise<Link> {
    return Link.to(async () => this.#primary?.links.postgres.port ?? null);
  }

  /** Stops etcd as it is, or lets it go on. */
  freezeEtcd(isFrozen: boolean): void {
    this.#etcd.kill(isFrozen ? "SIGSTOP" : "SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function configuration(
  folder: string,
  name: string,
  own: { readonly postgres: number; readonly rest: number },
  links: PatroniNode["links"],
  { isSynchronous, ttlSeconds }: Required<Pick<PatroniOptions, "isSynchronous" | "ttlSeconds">>,
): object {
  return {
    scope: "mintmark",
    name,
    restapi: { listen: `127.0.0.1:${own.rest}`, connect_address: `127.0.0.1:${links.rest.port}` },
    etcd3: { host: `127.0.0.1:${links.etcd.port}` },
    bootstrap: {
      dcs: {
        ttl: ttlSeconds,
        loop_wait: 1,
        retry_timeout: Math.floor((ttlSeconds - 1) / 2),
        primary_start_timeout: 0,
        maximum_lag_on_failover: 2 ** 40,
        synchronous_mode: isSynchronous,
        postgresql: {
          use_pg_rewind: true,
          parameters: {
            wal_log_hints: "on",
            // A standby looks for its new primary so often; until it has found it, nothing is
            // acknowledged.
            wal_retrieve_retry_interval: "500ms",
            shared_buffers: "32MB",
            max_connections: 60,
            ...(!isSynchronous && { synchronous_standby_names: "ANY 1 (*)" }),
          },
        },
      },
      initdb: [{ encoding: "UTF8" }, { auth: "trust" }, "no-sync"],
      pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
    },
    postgresql: {
      listen: `127.0.0.1:${own.postgres}`,
      connect_address: `127.0.0.1:${links.postgres.port}`,
      data_dir: join(folder, name),
      bin_dir: BINARIES,
      pgpass: join(folder, `${name}.pgpass`),
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      authentication: {
        replication: { username: "replicator", password: "-" },
        superuser: { username: "postgres", password: "-" },
      },
      parameters: { unix_socket_directories: "" },
    },
  };
}

function isPostgres(pid: number): boolean {
  const path = `/proc/${pid}/comm`;
  return existsSync(path) && readFileSync(path, "utf8").startsWith("postgres");
}

function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, "utf8").split(" ").filter(Boolean).map(Number) : [];
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
