import type { AddressInfo } from "node:net";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Archive } from "../../core/archive/index.ts";
import type { ClusterNode } from "../../core/cluster/index.ts";
import {
  type Attempt,
  type Engine,
  MODES,
  type Mode,
  ORDER_EVENTS,
  WITHDRAWAL_EVENTS,
} from "../../core/index.ts";
import { ordersOf } from "../../core/orders/index.ts";
import { HeldBytes } from "../http/access/rate-account.ts";
import { fastifyApp } from "../http/fastify-app.ts";
import type { ReachedChain } from "../jobs/chain.ts";
import { engineChecks, type ReadinessCheck, recentFindings, within } from "../jobs/readiness.ts";
import type { Answer, SweptOrders } from "../service.ts";

type MetricsChain = Pick<ReachedChain, "blockNumber" | "operatorBalance">;

interface MetricsOptions {
  readonly engine: Engine;
  readonly memory?: HeldBytes;
  readonly chains?: ReadonlyMap<bigint, () => Promise<MetricsChain>>;
  /** The checks of `/readyz` besides the engine's own. */
  readonly checks?: () => Readonly<Record<string, ReadinessCheck>>;
  /** The server's part of a cluster. */
  readonly cluster?: Pick<ClusterNode, "awayMs"> | undefined;
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
  #swept: SweptOrders = { open: 0, fillsUsed: 0 };
  readonly #unsubscribe: readonly (() => void)[];

  constructor({
    engine,
    memory = new HeldBytes(),
    chains = new Map(),
    checks = () => ({}),
    cluster,
  }: MetricsOptions) {
    const { counter, gauge } = metricsIn(this.registry);
    this.#requests = new Histogram({
      name: "mintmark_http_request_seconds",
      help: "From a request's head to its response's end.",
      labelNames: ["method", "route", "status"],
      buckets: SECONDS,
      registers: [this.registry],
    });
    this.#problems = counter(
      "mintmark_http_problems_total",
      "Responses with problem documents, by code.",
      "code",
    );
    const requests = counter("mintmark_mint_requests_total", "Mint requests acknowledged.");
    const mints = counter("mintmark_mints_total", "Mint entries acknowledged.");
    const sealed = counter(
      "mintmark_vaults_sealed_total",
      "Vaults in batches sealed by this process.",
      "mode",
    );
    const steps = "accepted, submitted, attempt_refused, settled, finalized, failed, reverted";
    const withdrawals = counter(
      "mintmark_withdrawals_total",
      `Withdrawals by step: ${steps}.`,
      "chain",
      "step",
    );
    const orderSteps =
      "created, filled, submitted, attempt_refused, settled, reopened, cancelled, stale, expired";
    const orders = counter("mintmark_orders_total", `Orders by step: ${orderSteps}.`, "step");
    const gas = "Gas of mined transactions, by chain and by work: commit, withdrawal.";
    this.#gas = counter("mintmark_l1_gas_total", gas, "chain", "work");
    const attempts = "Attempts at webhooks' endpoints, by outcome: delivered, failed.";
    this.#deliveries = counter("mintmark_webhook_deliveries_total", attempts, "outcome");
    this.#unsubscribe = [
      engine.events.on("mint.accepted", ({ event }) => {
        requests.inc();
        mints.inc(event.data.mints);
      }),
      engine.events.on("batch", ({ type, batch: { mode, vaultCount } }) => {
        if (type === "batch.sealed") sealed.inc({ mode }, vaultCount);
      }),
      engine.events.on(WITHDRAWAL_EVENTS, ({ event: { type, data } }) => {
        withdrawals.inc({ chain: `${data.chainId}`, step: type.slice("withdrawal.".length) });
      }),
      engine.events.on(ORDER_EVENTS, ({ event: { type } }) =>
        orders.inc({ step: type.slice("order.".length) }),
      ),
    ];
    const findings = recentFindings(
      () => ({ ...engineChecks(engine, memory), ...checks() }),
      Date.now,
    );
    const passes = "For each check of /readyz: 1 if it passes, 0 if it fails.";
    gauge("mintmark_check_ok", passes, ["check"], async function () {
      this.reset();
      for (const { name, error } of await findings())
        this.set({ check: name }, error === undefined ? 1 : 0);
    });
    const held = "Bytes of request bodies and unread responses, of MINTMARK_MEMORY_MIB.";
    gauge("mintmark_held_bytes", held, [], function () {
      this.set(memory.total);
    });
    const perOrders = (name: string, help: string, read: (swept: SweptOrders) => number) => {
      const swept = () => read(this.#swept);
      gauge(name, help, [], function () {
        this.set(swept());
      });
    };
    const found = "as the server's last look at all of them has found it";
    perOrders("mintmark_open_orders", `Open orders, ${found}.`, ({ open }) => open);
    const used = `The largest part of its day's fills that an application has used, ${found}: 0 to 1.`;
    perOrders("mintmark_fills_used_ratio", used, ({ fillsUsed }) => fillsUsed);
    gauge("mintmark_waiting_fills", "Taken orders that wait for L1.", [], function () {
      this.set(ordersOf(engine).waitingFills());
    });
    batches(engine, gauge);
    settlementOnL1(engine, chains, gauge);
    if (cluster !== undefined) journalAway(cluster, this.registry);
  }

  /** Serves `ServerOptions.onAnswer`. */
  observe = ({ method, route, status, seconds, code }: Answer): void => {
    this.#requests.observe({ method, route, status }, seconds);
    if (code !== null) this.#problems.inc({ code });
  };

  /** Serves `ServerOptions.onSwept`. */
  swept = (orders: SweptOrders): void => {
    this.#swept = orders;
  };

  /** Serves {@link logProgress}: records a transaction's gas, once. */
  spent = (chainId: bigint, work: "commit" | "withdrawal", gas: bigint): void => {
    this.#gas.inc({ chain: `${chainId}`, work }, Number(gas));
  };

  /** Serves `DispatcherOptions.onAttempt`. */
  attempted = ({ failure }: Attempt): void => {
    this.#deliveries.inc({ outcome: failure === null ? "delivered" : "failed" });
  };

  close(): void {
    for (const stop of this.#unsubscribe) stop();
  }
}

/** Prometheus metrics of a committee member or an issuer; docs/operating.md lists them. */
export class SignerMetrics {
  readonly registry = new Registry();
  readonly #answers: Counter;

  constructor(archive: Archive) {
    const { counter, gauge } = metricsIn(this.registry);
    const asked =
      "Batches that an operator asked to have signed: `signed`, or the reason of the refusal.";
    this.#answers = counter("mintmark_signing_requests_total", asked, "answer");
    gauge(
      "mintmark_archive_block",
      "The newest block of L1 that the archive holds.",
      [],
      function () {
        this.set(Number(archive.position?.block ?? 0n));
      },
    );
    gauge(
      "mintmark_archive_missing_batches",
      "Committed batches without data.",
      [],
      async function () {
        this.set((await archive.missing()).length);
      },
    );
  }

  answered(answer: string): void {
    this.#answers.inc({ answer });
  }

  close(): void {
    this.registry.clear();
  }
}

function metricsIn(registry: Registry) {
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  return {
    counter: (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),
    /** @param collect - sets the values at each scrape */
    gauge: (
      name: string,
      help: string,
      labelNames: string[],
      collect: (this: Gauge) => void | Promise<void>,
    ) => new Gauge({ name, help, labelNames, registers, collect }),
  };
}

type MakeGauge = ReturnType<typeof metricsIn>["gauge"];

function batches({ batches }: Engine, gauge: MakeGauge): void {
  const perMode = (
    name: string,
    help: string,
    read: () => Promise<readonly number[]> | readonly number[],
  ) =>
    gauge(name, help, ["mode"], async function () {
      for (const [i, value] of (await read()).entries())
        this.set({ mode: MODES[i] as Mode }, value);
    });
  const counts = ({
    countValidium,
    countRollup,
  }: Record<"countValidium" | "countRollup", number>) => [countValidium, countRollup];
  perMode("mintmark_open_batch_vaults", "Vaults in the open batch.", () =>
    MODES.map((mode) => batches.getOpen(mode).vaultCount),
  );
  perMode(
    "mintmark_open_batch_age_seconds",
    "Seconds since the open batch's first mint; 0 when it is empty.",
    () =>
      MODES.map((mode) => {
        const { vaultCount, timestamps } = batches.getOpen(mode);
        return vaultCount === 0 || timestamps.open === undefined
          ? 0
          : (Date.now() - timestamps.open) / 1000;
      }),
  );
  const uncommitted = "Vaults of batches that L1 has not committed, open ones included.";
  gauge("mintmark_uncommitted_vaults", uncommitted, [], function () {
    this.set(batches.uncommittedVaults());
  });
  perMode("mintmark_places_left", "Vaults that the store still has places for.", () =>
    MODES.map((mode) => batches.placesLeft(mode)),
  );
  perMode("mintmark_batches_sealed", "Batches sealed so far.", () => counts(batches.state()));
  perMode("mintmark_batches_committed", "Sealed batches that L1 has committed.", async () =>
    counts(await batches.committedState()),
  );
}

/** A counter, since an outage of seconds falls between two scrapes. */
function journalAway(cluster: Pick<ClusterNode, "awayMs">, registry: Registry): void {
  new Counter({
    name: "mintmark_journal_away_seconds_total",
    help: "Seconds in which the cluster's journal did not answer or replicate.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(cluster.awayMs / 1000);
    },
  });
}

/** If a chain does not answer in time, only its own gauges are missing. */
function settlementOnL1(
  engine: Engine,
  chains: NonNullable<MetricsOptions["chains"]>,
  gauge: MakeGauge,
): void {
  if (chains.size === 0) return;
  const asked = (
    name: string,
    help: string,
    ask: (l1: MetricsChain, chainId: bigint) => Promise<number | undefined>,
  ) =>
    gauge(name, help, ["chain"], async function () {
      const answers = [...chains].map(async ([chainId, connect]) => {
        const labels = { chain: `${chainId}` };
        const asking = connect().then((l1) => ask(l1, chainId));
        const answer = within(L1_MS, asking, () => new Error("the chain does not answer"));
        const value = await answer.catch(() => undefined);
        if (value === undefined) this.remove(labels);
        else this.set(labels, value);
      });
      await Promise.all(answers);
    });
  asked(
    "mintmark_l1_lag_blocks",
    "Blocks of a chain that the engine has not applied yet.",
    async (l1, chainId) => {
      return Number((await l1.blockNumber()) - (engine.operator.portal(chainId).observed ?? 0n));
    },
  );
  asked(
    "mintmark_operator_balance_ether",
    "Balance of the operator's account on a chain.",
    async (l1) => {
      const balance = await l1.operatorBalance?.();
      return balance === undefined ? undefined : Number(balance) / 1e18;
    },
  );
}

/**
 * Serves `GET /metrics` on a separate port, for the operator's network. `names` are its allowed
 * host names.
 */
export async function serveMetrics(
  metrics: Pick<Metrics, "registry" | "close">,
  host: string,
  port: number,
  names: readonly string[],
): Promise<AsyncDisposable & { readonly port: number }> {
  const app = fastifyApp({
    hosts: [host, ...names],
    requestTimeoutSeconds: 30,
    forceCloseConnections: true,
  });
  let scrapedAt: number | null = null;
  // HEAD would count as a scrape, and ask L1.
  app.get("/metrics", { exposeHeadRoute: false }, async (request, reply) => {
    // `mintmark doctor` reads this without a scrape.
    if (scrapedAt !== null)
      reply.header("mintmark-scraped-seconds-ago", Math.round((Date.now() - scrapedAt) / 1000));
    if (request.headers["user-agent"] !== "mintmark-doctor") scrapedAt = Date.now();
    reply.type(metrics.registry.contentType);
    return metrics.registry.metrics();
  });
  await app.listen({ host, port });
  return {
    port: (app.server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      metrics.close();
      await app.close();
    },
  };
}
