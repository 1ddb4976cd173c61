import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { type Engine, MODES, type PortalIdentity } from "../../core/index.ts";
import type { Answer } from "../app.ts";
import { HeldBytes } from "../http/access/account.ts";
import { meaningOf } from "../http/errors.ts";
import { HostNames } from "../http/fastify-app.ts";
import { within } from "../jobs/operations/deadline.ts";
import { engineChecks, Readiness, type ReadinessCheck } from "../jobs/operations/readiness.ts";
import type { Attempt } from "../jobs/webhooks/attempts.ts";

/** A chain with a contract that pays withdrawals, for its metrics. */
interface MetricsChain {
  readonly settlement: PortalIdentity;
  blockNumber(): Promise<bigint>;
  operatorBalance?(): Promise<bigint | undefined>;
}

interface MetricsOptions {
  readonly engine: Engine;
  /** The memory of the server's requests. */
  readonly memory?: HeldBytes;
  readonly chains?: readonly MetricsChain[];
  /** The checks of `/readyz` besides the engine's own. */
  readonly checks?: () => Readonly<Record<string, ReadinessCheck>>;
}

/** Timeout of a chain, shorter than a scraper's. */
const L1_MS = 3_000;

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Metrics of the server for Prometheus (docs/configuration.md). They name no tenant. */
export class Metrics {
  readonly registry = new Registry();
  readonly #requests: Histogram;
  readonly #problems: Counter;
  readonly #gas: Counter;
  readonly #deliveries: Counter;
  readonly #unsubscribe: readonly (() => void)[];

  constructor({ engine, memory = new HeldBytes(), chains = [], checks = () => ({}) }: MetricsOptions) {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.#requests = new Histogram({
      name: "mintmark_http_request_seconds",
      help: "From a request's head to its response's end.",
      labelNames: ["method", "route", "status"],
      buckets: SECONDS,
      registers,
    });
    this.#problems = new Counter({
      name: "mintmark_http_problems_total",
      help: "Responses with problem documents, by code.",
      labelNames: ["code"],
      registers,
    });
    const requests = new Counter({
      name: "mintmark_mint_requests_total",
      help: "Mint requests acknowledged.",
      registers,
    });
    const mints = new Counter({ name: "mintmark_mints_total", help: "Mint entries acknowledged.", registers });
    const sealed = new Counter({
      name: "mintmark_vaults_sealed_total",
      help: "Vaults in batches sealed by this process.",
      labelNames: ["mode"],
      registers,
    });
    const withdrawals = new Counter({
      name: "mintmark_withdrawals_total",
      help: "Withdrawals by step: accepted, submitted, attempt_refused, settled, finalized, failed, reverted.",
      labelNames: ["chain", "step"],
      registers,
    });
    this.#gas = new Counter({
      name: "mintmark_l1_gas_total",
      help: "Gas of mined transactions, by chain and by work: commit, withdrawal.",
      labelNames: ["chain", "work"],
      registers,
    });
    this.#deliveries = new Counter({
      name: "mintmark_webhook_deliveries_total",
      help: "Attempts at webhooks' receivers, by outcome: delivered, failed.",
      labelNames: ["outcome"],
      registers,
    });
    this.#unsubscribe = [
      engine.events.on("mint", (event) => {
        requests.inc();
        mints.inc(event.mints);
      }),
      engine.events.on("batchSealed", ({ mode, vaultCount }) => sealed.inc({ mode }, vaultCount)),
      engine.events.on("withdrawal", ({ type, withdrawal: { chainId } }) => {
        withdrawals.inc({ chain: `${chainId}`, step: type.slice("withdrawal.".length) });
      }),
    ];
    const readiness = new Readiness(() => ({ ...engineChecks(engine, memory), ...checks() }), Date.now);
    new Gauge({
      name: "mintmark_check_ok",
      help: "For each check of /readyz: 1 if it passes, 0 if it fails.",
      labelNames: ["check"],
      registers,
      async collect() {
        this.reset();
        for (const { name, error } of await readiness.look()) this.set({ check: name }, error === undefined ? 1 : 0);
      },
    });
    new Gauge({
      name: "mintmark_held_bytes",
      help: "Bytes of request bodies and unread responses, of MINTMARK_MEMORY_MIB.",
      registers,
      collect() {
        this.set(memory.total);
      },
    });
    openBatches(engine, registers);
    committedBatches(engine, registers);
    settlementOnL1(engine, chains, registers);
  }

  /** For `ServerOptions.onAnswer`. */
  observe = ({ method, route, status, seconds, code }: Answer): void => {
    this.#requests.observe({ method, route, status }, seconds);
    if (code !== null) this.#problems.inc({ code });
  };

  /** For {@link ProgressLog}: records a transaction's gas, once. */
  spent = (chainId: bigint, work: "commit" | "withdrawal", gas: bigint): void => {
    this.#gas.inc({ chain: `${chainId}`, work }, Number(gas));
  };

  /** For `DispatcherOptions.onAttempt`. */
  attempted = ({ failure }: Attempt): void => {
    this.#deliveries.inc({ outcome: failure === null ? "delivered" : "failed" });
  };

  close(): void {
    for (const stop of this.#unsubscribe) stop();
  }
}

function openBatches(engine: Engine, registers: Registry[]): void {
  const perMode = (name: string, help: string, read: (mode: (typeof MODES)[number]) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["mode"],
      registers,
      collect() {
        for (const mode of MODES) this.set({ mode }, read(mode));
      },
    });
  perMode("mintmark_open_batch_vaults", "Vaults in the open batch.", (mode) => engine.batches.getOpen(mode).vaultCount);
  perMode(
    "mintmark_open_batch_age_seconds",
    "Seconds since the open batch's first mint; 0 when it is empty.",
    (mode) => {
      const { vaultCount, timestamps } = engine.batches.getOpen(mode);
      return vaultCount === 0 || timestamps.open === undefined ? 0 : (Date.now() - timestamps.open) / 1000;
    },
  );
}

function committedBatches(engine: Engine, registers: Registry[]): void {
  new Gauge({
    name: "mintmark_uncommitted_vaults",
    help: "Vaults of batches that L1 has not committed, open ones included.",
    registers,
    collect() {
      this.set(engine.batches.uncommittedVaults());
    },
  });
  const sealed = { name: "mintmark_batches_sealed", help: "Batches sealed so far." };
  const committed = { name: "mintmark_batches_committed", help: "Sealed batches that L1 has committed." };
  new Gauge({
    ...sealed,
    labelNames: ["mode"],
    registers,
    collect() {
      const { countValidium, countRollup } = engine.batches.state();
      this.set({ mode: "validium" }, countValidium);
      this.set({ mode: "zk-rollup" }, countRollup);
    },
  });
  new Gauge({
    ...committed,
    labelNames: ["mode"],
    registers,
    async collect() {
      const { countValidium, countRollup } = await engine.batches.committedState();
      this.set({ mode: "validium" }, countValidium);
      this.set({ mode: "zk-rollup" }, countRollup);
    },
  });
}

/** If a chain does not answer in time, only its own gauges are missing. */
function settlementOnL1(engine: Engine, chains: readonly MetricsChain[], registers: Registry[]): void {
  const asked = (name: string, help: string, ask: (chain: MetricsChain) => Promise<number | undefined>) => {
    if (chains.length === 0) return;
    new Gauge({
      name,
      help,
      labelNames: ["chain"],
      registers,
      async collect() {
        const answers = chains.map(async (chain) => {
          const labels = { chain: `${chain.settlement.chainId}` };
          const answer = within(L1_MS, ask(chain), () => new Error("the chain does not answer"));
          const value = await answer.catch(() => undefined);
          if (value === undefined) this.remove(labels);
          else this.set(labels, value);
        });
        await Promise.all(answers);
      },
    });
  };
  asked("mintmark_l1_lag_blocks", "Blocks of a chain that the engine has not applied yet.", async (chain) => {
    return Number((await chain.blockNumber()) - (engine.operator.portal(chain.settlement.chainId).observed ?? 0n));
  });
  asked("mintmark_operator_balance_ether", "Balance of the operator's account on a chain.", async (chain) => {
    const balance = await chain.operatorBalance?.();
    return balance === undefined ? undefined : Number(balance) / 1e18;
  });
}

interface MetricsServer extends AsyncDisposable {
  readonly port: number;
}

/** Serves `GET /metrics` on a separate port, for the operator's network. `names` are its allowed host names. */
export async function serveMetrics(
  metrics: Pick<Metrics, "registry" | "close">,
  host: string,
  port: number,
  names: readonly string[],
): Promise<MetricsServer> {
  const known = new HostNames([host, ...names]);
  let scrapedAt: number | null = null;
  const server = createServer((request, response) => {
    if (!known.has(request.headers.host)) return void response.writeHead(421).end(`${meaningOf("host_unknown")}\n`);
    if (request.method !== "GET" || request.url !== "/metrics") return void response.writeHead(404).end();
    // For `mintmark doctor`, whose own look is no scrape.
    const ago =
      scrapedAt === null ? {} : { "mintmark-scraped-seconds-ago": `${Math.round((Date.now() - scrapedAt) / 1000)}` };
    if (request.headers["user-agent"] !== "mintmark-doctor") scrapedAt = Date.now();
    metrics.registry.metrics().then(
      (text) => response.writeHead(200, { "content-type": metrics.registry.contentType, ...ago }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      metrics.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
