import { hkdfSync } from "node:crypto";
import { once } from "node:events";
import type { FastifyInstance } from "fastify";
import type { LocalAccount } from "viem";
import type { ClusterNode, ClusterRole } from "../core/cluster/index.ts";
import { RemoteMember } from "../core/committee/index.ts";
import * as core from "../core/index.ts";
import { Stack } from "../core/internal.ts";
import { RemoteIssuer } from "../core/issuer/index.ts";
import { connectL1, readL1, signatureChecks } from "../core/l1/index.ts";
import { buildServer } from "./app.ts";
import { readJwks } from "./http/access/access-token.ts";
import { HeldBytes } from "./http/access/rate-account.ts";
import { BACKLOG } from "./http/connections.ts";
import { swept } from "./http/log.ts";
import { type Chain, chainOf, finalityOf, gasOf } from "./jobs/chain.ts";
import { logProgress } from "./jobs/progress-log.ts";
import { NotReady, type ReadinessCheck } from "./jobs/readiness.ts";
import { accountOf } from "./process/account.ts";
import { joinCluster, listenMeanwhile } from "./process/cluster.ts";
import { handleClusterError, serveInCluster } from "./process/forwarding.ts";
import { Metrics, serveMetrics } from "./process/metrics.ts";
import { serveOperator } from "./process/operator/socket.ts";
import { openOwnMember } from "./process/own-member.ts";
import { reach, soon, UNREACHED } from "./process/reach.ts";
import { ConfigError, startupError } from "./process/settings/config.ts";
import { nodeSecrets, secretParts } from "./process/settings/node-secrets.ts";
import type { Config } from "./process/settings/settings.ts";
import {
  mirrorChainOf,
  reserveSettling,
  SETTLES_BY_ITSELF,
  type Settling,
  startSettling,
  unsettledChecks,
} from "./process/settling.ts";
import { shutDown } from "./process/shutdown.ts";

// The process: settings from the environment, one engine, its connection to L1 if it has a chain
// and a key, one server, and an orderly end on SIGINT or SIGTERM.

/**
 * The settings, with the operator's and the receipts' accounts opened, and with the process's one
 * KZG thread.
 */
type Ready = Config & {
  readonly operator?: LocalAccount;
  readonly receiptSigner?: LocalAccount;
  readonly kzg: core.Kzg;
};

/** A period of a server in a cluster, as its leader or as a standby. */
interface Term {
  readonly node: ClusterNode;
  readonly engine: core.Engine;
  readonly role: ClusterRole["role"];
}

/** Resolves when the process must end, or when a term is over. */
async function serve(config: Ready, stopped: Promise<NodeJS.Signals>, term?: Term): Promise<void> {
  let listening = false;
  // Nothing is acknowledged before listening, so nothing is left to finish.
  void stopped.then(() => listening || process.exit(0));
  const isStandby = term?.role === "standby";
  // A standby only reads L1.
  const { chains, home, committer, operator, mirrors } = chainsOf(config, !isStandby);
  const l1 = home && (await soon(home.connect()));
  let started = home === undefined;
  // Ends last. A request that a node does not answer would keep the process for minutes.
  await using _end = {
    [Symbol.asyncDispose]: async () => void (started || term || setImmediate(() => process.exit())),
  };
  await using alone =
    term === undefined
      ? await core.openEngine({
          ...engineOptions(config, chains, l1?.settlement),
          store: config.MINTMARK_STORE,
        })
      : undefined;
  const engine = alone ?? (term as Term).engine;
  if (home && !isStandby) engine.operator.awaitComparison();
  using _reserved = operator && reserveSettling(engine, SETTLES_BY_ITSELF);
  const {
    MINTMARK_JWKS: jwks,
    MINTMARK_JWT_ISSUER: issuer,
    MINTMARK_JWT_AUDIENCE: audience,
  } = config;
  const identityProvider =
    jwks && issuer && audience ? { keys: await keySet(jwks), issuer, audience } : undefined;
  let settling: Settling | null = null;
  const checks = () => ({
    ...(isStandby ? {} : started ? (settling?.checks ?? unsettledChecks(engine)) : WAITING),
    ...(term && { cluster: async () => describeCluster(term.node) }),
  });
  const {
    MINTMARK_METRICS_HOST: metricsHost,
    MINTMARK_METRICS_PORT: metricsPort,
    MINTMARK_HOSTS: hosts,
  } = config;
  const memory = new HeldBytes(config.MINTMARK_MEMORY_MIB * MIB);
  const connections = new Map(
    chains.map(({ settlement, connect }) => [settlement.chainId, connect]),
  );
  const metrics =
    metricsPort === undefined
      ? undefined
      : new Metrics({ engine, memory, chains: connections, checks, cluster: term?.node });
  await using _metrics =
    metrics && (await serveMetrics(metrics, metricsHost, metricsPort ?? 0, hosts));
  const app = await buildServer({
    engine,
    log: { level: config.MINTMARK_LOG_LEVEL, secrets: secretsOf(config) },
    ...(metrics && { onAnswer: metrics.observe, onSwept: metrics.swept }),
    chains: connections,
    ...(config.MINTMARK_ORIGIN && { origin: config.MINTMARK_ORIGIN }),
    hosts: [...hosts, config.MINTMARK_HOST],
    ...(config.MINTMARK_EXPLORER_RPC && { explorerRpc: config.MINTMARK_EXPLORER_RPC }),
    newTokens:
      (config.MINTMARK_NEW_TOKENS ??
        (config.MINTMARK_ENVIRONMENT === "sandbox" ? "admins" : "operator")) === "admins",
    ownerRelayVaults: config.MINTMARK_OWNER_RELAY_VAULTS,
    fillsPerDay: config.MINTMARK_FILLS_PER_DAY,
    ...(identityProvider && { identityProvider }),
    rateLimits: {
      key: {
        units: config.MINTMARK_RATE_UNITS,
        windowSeconds: config.MINTMARK_RATE_WINDOW_SECONDS,
      },
    },
    memory,
    webhooks: {
      reach: config.MINTMARK_WEBHOOK_REACH,
      ...(metrics && { onAttempt: metrics.attempted }),
    },
    drops: `${config.MINTMARK_STORE}-drops`,
    keepIdempotencyHours: config.MINTMARK_IDEMPOTENCY_HOURS,
    requestTimeoutSeconds: config.MINTMARK_REQUEST_TIMEOUT_SECONDS,
    trustedProxies: config.MINTMARK_TRUSTED_PROXIES,
    checks,
    ...(term && {
      onlyReads: isStandby,
      errorHandler: handleClusterError,
      extend: (app: FastifyInstance) => serveInCluster(app, term.node, term.role),
    }),
    ...tokenSecretOf(config),
  });
  // A failure before it listens must end what it has begun.
  await using _app = { [Symbol.asyncDispose]: async () => void (listening || (await app.close())) };
  await using _progress = logProgress(engine, app.log, gasOf(connections), metrics?.spent);
  const originOf = () =>
    config.MINTMARK_ORIGIN?.origin ?? (listening ? app.listeningOrigin : undefined);
  await using _operator = await serveOperator(engine, config.MINTMARK_STORE, originOf);
  await using settlings = new Stack();
  const settle = async (
    operator: LocalAccount,
    l1: Awaited<ReturnType<typeof connectL1>>,
    signal: AbortSignal,
  ) => {
    const asking = { operator, settlement: engine.settlement };
    const { MINTMARK_SEAL_SECONDS: validium, MINTMARK_SEAL_SECONDS_ROLLUP: rollup = validium } =
      config;
    await using parts = new Stack();
    const own =
      config.MINTMARK_OWN_MEMBER === "yes"
        ? parts.use(
            await openOwnMember({
              engine,
              l1,
              account: operator,
              kzg: config.kzg,
              folder: `${config.MINTMARK_STORE}-member`,
              fromBlock: config.MINTMARK_FROM_BLOCK,
              onError: (error) =>
                app.log.error({ err: error }, "the own member cannot follow L1; trying again"),
            }),
          )
        : null;
    const others = config.MINTMARK_MEMBERS.map(
      (member) => new RemoteMember({ ...member, ...asking }),
    );
    const begun = await startSettling({
      engine,
      l1,
      operator: operator.address,
      ...(own === null
        ? { members: others, threshold: config.MINTMARK_THRESHOLD }
        : { members: [own.member], threshold: 1 }),
      issuers: config.MINTMARK_ISSUERS.map((issuer) => new RemoteIssuer({ ...issuer, ...asking })),
      consentMs: config.MINTMARK_CONSENT_SECONDS * 1000,
      rollupData: config.MINTMARK_ROLLUP_DATA,
      fromBlock: config.MINTMARK_FROM_BLOCK,
      sealing: { maxAgeMs: { validium: validium * 1000, "zk-rollup": rollup * 1000 } },
      intervalMs: config.MINTMARK_SETTLE_SECONDS * 1000,
      mostLag: BigInt(config.MINTMARK_MOST_LAG),
      leastBalance: config.MINTMARK_LEAST_BALANCE,
      onError: (error) => app.log.error({ err: error }, "settling failed; trying again"),
      mirrors,
      onMirrorError: (chainId, error) =>
        app.log.error({ err: error, chainId: `${chainId}` }, "a mirror failed; trying again"),
      onMemberFailure: (member, error) =>
        app.log.warn({ err: error, member }, "a committee member did not sign"),
      onIssuerRefusal: (issuer, batchId, error) =>
        app.log.warn(
          { issuer, batchId, reason: error instanceof Error ? error.message : String(error) },
          "an issuer did not consent",
        ),
    });
    parts.use(begun);
    // The server may have ended meanwhile.
    if (signal.aborted) return;
    settling = begun;
    settlings.use(parts.move());
  };
  const starting = new AbortController();
  await using _starting = { [Symbol.asyncDispose]: async () => starting.abort() };
  const start = async () => {
    if (home === undefined) return;
    const l1 = await home.connect();
    // The store was opened with the settings' version while L1 did not answer.
    const { engineVersion } = l1.settlement;
    if (engineVersion !== engine.settlement.engineVersion)
      throw new ConfigError(`MINTMARK_ENGINE_VERSION: the contract has version ${engineVersion}.`);
    // Compares at once, so the first mints are not refused.
    if (!isStandby) await compare(engine, l1);
    if (operator && committer) await settle(operator, await committer.connect(), starting.signal);
    started = true;
  };
  let isTold = false;
  const begun = reach(start, starting.signal, (error, message) => {
    isTold = true;
    app.log.warn({ err: error }, message);
  });
  await soon(begun);
  await app.listen({
    host: config.MINTMARK_HOST,
    port: config.MINTMARK_PORT,
    backlog: BACKLOG,
  });
  listening = true;
  // A node that keeps silent has not failed yet.
  if (!started && !isTold) app.log.warn(UNREACHED);
  const fault = engine.operator.clockFault();
  if (fault !== null) app.log.error({ fault }, "the clock does not fit the journal");
  const deadlineMs = config.MINTMARK_SHUTDOWN_SECONDS * 1000;
  try {
    const signal = await Promise.race([stopped, ended(engine), begun.then(() => stopped)]);
    if (signal === null && term !== undefined && !term.node.ended.aborted) {
      app.log.warn(
        { role: term.role },
        "another server leads the cluster from now on, or this one does",
      );
    } else if (signal === null) {
      process.exitCode = 1;
      app.log.fatal({ err: engine.ended.reason }, "the engine has stopped; the server ends");
      // A hanging disk must not delay the supervisor.
      setTimeout(() => process.exit(1), 2 * deadlineMs).unref();
    } else {
      app.log.info({ signal }, "shutting down");
    }
    await shutDown(app, {
      drainMs: signal === null ? 0 : config.MINTMARK_DRAIN_SECONDS * 1000,
      // A client that does not read its answer must not delay a takeover.
      deadlineMs:
        signal === null && term !== undefined ? Math.min(ROLE_CHANGE_MS, deadlineMs) : deadlineMs,
    });
  } catch (error) {
    // L1 is connected now, but differs from the settings.
    await shutDown(app, { deadlineMs });
    throw error;
  }
}

/** Serves in the role that the cluster gives this server, term after term. */
async function serveCluster(config: Ready, stopped: Promise<NodeJS.Signals>): Promise<void> {
  const { home, chains } = chainsOf(config);
  const l1 = home && (await soon(home.connect()));
  const options = engineOptions(config, chains, l1?.settlement);
  // Ends last, as without a cluster.
  await using _end = {
    [Symbol.asyncDispose]: async () => void setTimeout(() => process.exit(), 1_000).unref(),
  };
  const log = { level: config.MINTMARK_LOG_LEVEL, secrets: secretsOf(config) };
  const joining = Promise.race([joinCluster(config, options, log), stopped]);
  const reason =
    "the journal has not answered since the start, or a server of an older version leads";
  const joined = await listenMeanwhile(joining, config, log, reason);
  if (typeof joined === "string") return;
  await using node = joined;
  let isOver = false;
  void stopped.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const role = Promise.race([node.next(), stopped]);
    const next = await listenMeanwhile(
      role,
      config,
      log,
      "this server's role in the cluster changes",
    );
    if (typeof next === "string") return;
    try {
      await serve(config, stopped, { node, ...next });
    } catch (error) {
      // Requests that were under way when the role changed have failed with that role's engine.
      if (!next.engine.ended.aborted) throw error;
    }
    if (node.ended.aborted) throw node.ended.reason;
  }
}

/** Throws `NotReady` while this server cannot do its part. */
function describeCluster(node: ClusterNode): string {
  if (node.fault !== null) throw new NotReady(node.fault);
  if (node.isLeader) return "leads";
  // During a takeover it answers reads, and changes wait. A proxy must not take it out for that.
  return `stands by, ${node.leader === null ? "no server leads" : `${node.lag} writes behind ${node.leader.name}`}`;
}

function engineOptions(
  config: Ready,
  chains: readonly Chain[],
  settlement: core.Settlement | undefined,
) {
  return {
    environment: config.MINTMARK_ENVIRONMENT,
    settlement: settlement ?? {
      chainId: config.MINTMARK_CHAIN_ID,
      contract: config.MINTMARK_CONTRACT,
      engineVersion: config.MINTMARK_ENGINE_VERSION,
    },
    limits: {
      batchVaults: {
        validium: config.MINTMARK_SEAL_VAULTS,
        "zk-rollup": config.MINTMARK_SEAL_VAULTS_ROLLUP,
      },
      rollupBytes: config.MINTMARK_SEAL_BYTES_ROLLUP,
      uncommittedVaults: config.operator === undefined ? null : config.MINTMARK_MOST_UNCOMMITTED,
    },
    kzg: config.kzg,
    clockAheadMs: config.MINTMARK_CLOCK_AHEAD_HOURS * 3_600_000,
    ...(config.receiptSigner && { receiptSigner: config.receiptSigner }),
    ...(chains.length > 0 && { verifySignature: signatureChecks(chains) }),
  };
}

/** Resolves when the engine has ended; before its closing, because the store failed. */
async function ended({ ended }: core.Engine): Promise<null> {
  if (!ended.aborted) await once(ended, "abort");
  return null;
}

const MIB = 1024 * 1024;
/** Time for running requests when a server's role in the cluster changes. */
const ROLE_CHANGE_MS = 1_000;

/** No log may hold these. */
function secretsOf(config: Config): string[] {
  const { MINTMARK_JOURNAL: journal } = config;
  const bytes = [config.MINTMARK_TOKEN_SECRET, ...config.MINTMARK_JOURNAL_KEYS];
  const hex = bytes.map((key) => key && Buffer.from(key).toString("hex"));
  const keys = [
    config.MINTMARK_OPERATOR_KEY,
    config.MINTMARK_RECEIPT_KEY,
    journal && new URL(journal).password,
    ...hex,
  ];
  const signers = [config.MINTMARK_OPERATOR_SIGNER, config.MINTMARK_RECEIPT_SIGNER];
  return [
    ...keys.filter((text) => text !== undefined).filter(({ length }) => length >= 8),
    ...nodeSecrets(config),
    ...signers.flatMap((signer) => secretParts(signer?.url)),
  ];
}

/**
 * The chains of these settings, the settlement chain first, checked against the store on
 * connection. Without the operator's key they are only read.
 */
function chainsOf(config: Ready, isOperated = true) {
  const { MINTMARK_RPC_URL: rpc, kzg } = config;
  if (rpc === undefined) return { chains: [], mirrors: [] };
  const operator = isOperated ? config.operator : undefined;
  const settlement = { chainId: config.MINTMARK_CHAIN_ID, contract: config.MINTMARK_CONTRACT };
  const options = { rpc, ...settlement, finality: finalityOf(config.MINTMARK_CONFIRMATIONS) };
  const replacing = { replaceAfterMs: config.MINTMARK_REPLACE_SECONDS * 1000 };
  const fees = {
    ...replacing,
    maxFeePerGas: config.MINTMARK_MAX_FEE_PER_GAS,
    maxFeePerBlobGas: config.MINTMARK_MAX_FEE_PER_BLOB_GAS,
  };
  const committer =
    operator &&
    chainOf(settlement, () => connectL1({ ...options, ...fees, kzg, account: operator }));
  const home = committer ?? chainOf(settlement, () => readL1(options));
  // The state's own committee signs for mirrors without one.
  const own = { members: config.MINTMARK_MEMBERS, threshold: config.MINTMARK_THRESHOLD };
  const mirrors = operator
    ? config.MINTMARK_MIRRORS.map((mirror) =>
        mirrorChainOf({ ...own, ...mirror }, operator, replacing),
      )
    : [];
  return { chains: [home, ...mirrors], home, committer, operator, mirrors };
}

const WAITING: Readonly<Record<string, ReadinessCheck>> = {
  settlement: async () => {
    throw new NotReady(
      "L1 has not answered since the start, so mints are refused; the server tries again",
    );
  },
};

/** The engine reports the result to everyone who mints. */
async function compare(engine: core.Engine, l1: Pick<core.L1Reader, "state">): Promise<void> {
  try {
    await engine.operator.compareState(await l1.state());
  } catch (error) {
    if (!(error instanceof core.MintmarkError) || error.code !== "history_diverged") throw error;
  }
}

/**
 * Servers of a cluster accept each other's tokens: without a secret they derive one from the
 * journal's key.
 */
function tokenSecretOf({ MINTMARK_TOKEN_SECRET: given, MINTMARK_JOURNAL_KEYS: [key] }: Config) {
  if (given !== undefined) return { tokenSecret: given };
  return (
    key && {
      tokenSecret: new Uint8Array(hkdfSync("sha256", key, "", "mintmark access tokens", 32)),
    }
  );
}

async function keySet(place: string) {
  try {
    return await readJwks(place);
  } catch {
    throw new ConfigError(
      "MINTMARK_JWKS: Give an https address, or a file that holds a JSON Web Key Set.",
    );
  }
}

function accountIn(
  config: Config,
  party: "OPERATOR" | "RECEIPT",
): Promise<LocalAccount | undefined> {
  return accountOf({
    key: config[`MINTMARK_${party}_KEY`],
    keystore: config[`MINTMARK_${party}_KEYSTORE`],
    passwordFile: config[`MINTMARK_${party}_PASSWORD_FILE`],
    signer: config[`MINTMARK_${party}_SIGNER`],
  });
}

/**
 * One server on one store, until SIGINT or SIGTERM. Errors go to standard error, without secrets.
 */
export async function run(config: Config, stopped: Promise<NodeJS.Signals>): Promise<void> {
  try {
    const operator = await accountIn(config, "OPERATOR");
    const receiptSigner = await accountIn(config, "RECEIPT");
    const kzg = new core.KzgThread();
    await using _kzg = { [Symbol.asyncDispose]: () => kzg.close() };
    const ready = {
      ...config,
      kzg,
      ...(operator && { operator }),
      ...(receiptSigner && { receiptSigner }),
    };
    await (config.MINTMARK_JOURNAL === undefined ? serve : serveCluster)(ready, stopped);
  } catch (error) {
    console.error(swept(startupError(error), secretsOf(config)));
    process.exitCode = 1;
  }
}
