import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { ClusterNode, type ClusterOptions, PostgresJournal } from "../../core/cluster/index.ts";
import { MintmarkError } from "../../core/index.ts";
import { type Backoff, backoffDelay, pause } from "../../core/internal.ts";
import { BACKLOG } from "../http/connections.ts";
import { ServerError } from "../http/errors.ts";
import { fastifyApp } from "../http/fastify-app.ts";
import { type LogOptions, swept } from "../http/log.ts";
import { sayHealthy } from "../routes/service.ts";
import type { Config, storeSettings } from "./settings/settings.ts";

/** The journal of the settings; undefined for a server that works alone. */
export async function openJournal(
  settings: z.output<typeof storeSettings>,
): Promise<PostgresJournal | undefined> {
  const {
    MINTMARK_JOURNAL: url,
    MINTMARK_JOURNAL_KEYS: keys,
    MINTMARK_CHAIN_ID: chainId,
  } = settings;
  if (url === undefined) return undefined;
  // One journal for each settlement contract, named by chain and the contract's first digits.
  const shard = `${chainId}-${settings.MINTMARK_CONTRACT.slice(2, 18).toLowerCase()}`;
  return PostgresJournal.open({ url, shard, keys, single: settings.MINTMARK_JOURNAL_COPIES === 1 });
}

type JoinOptions = Omit<
  ClusterOptions,
  "store" | "journal" | "server" | "leaseMs" | "journalBytes"
>;

const AGAIN: Backoff = { firstMs: 250, maxMs: 2_000 };

/**
 * Joins the cluster of the settings. Tries again while PostgreSQL is away, as after a power cut
 * that took all machines. A wrong setting does not mend itself, so it throws.
 */
export async function joinCluster(
  config: Config,
  options: JoinOptions,
  { secrets = [] }: LogOptions,
) {
  const {
    MINTMARK_SERVER_NAME: name,
    MINTMARK_SERVER_URL: url,
    MINTMARK_HOST: host,
    MINTMARK_PORT: port,
  } = config;
  for (let attempt = 1; ; attempt++) {
    try {
      const journal = (await openJournal(config)) as PostgresJournal;
      return await ClusterNode.join({
        ...options,
        store: config.MINTMARK_STORE,
        journal,
        server: {
          name: name ?? `${hostname()}-${process.pid}`,
          url: new URL(url ?? `http://${host}:${port}`).origin,
        },
        leaseMs: config.MINTMARK_LEASE_SECONDS * 1_000,
        journalBytes: config.MINTMARK_JOURNAL_MIB * 1024 * 1024,
      });
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "journal_unavailable") throw error;
      console.error(swept(`${error.message}\nThe server tries again.`, secrets));
      await pause(backoffDelay(AGAIN, attempt));
    }
  }
}

/** A server that finds its role within this time listens only once. */
const PATIENCE_MS = 3_000;

/**
 * Listens while a server waits for its role in a cluster. `/healthz` answers, so that no supervisor
 * restarts a server that waits for PostgreSQL. `/readyz` gives the reason, and everything else is
 * 503 `journal_unavailable`. Resolves as `work` does, when the port is free again.
 *
 * @param reason - in words that anyone may read
 */
export async function listenMeanwhile<T>(
  work: Promise<T>,
  { MINTMARK_HOST: host, MINTMARK_PORT: port, MINTMARK_HOSTS: hosts }: Config,
  log: LogOptions,
  reason: string,
): Promise<T> {
  const settled = Promise.allSettled([work]);
  if (await Promise.race([settled, sleep(PATIENCE_MS, false, { ref: false })])) return work;
  const app = fastifyApp({
    log,
    hosts: [...hosts, host],
    requestTimeoutSeconds: 30,
    forceCloseConnections: true,
  });
  app.addHook("onRequest", async (request) => {
    const [path] = request.url.split("?", 1);
    if (path === "/healthz") return;
    if (path !== "/readyz") throw new MintmarkError("journal_unavailable");
    const issues = [{ pointer: "/checks/cluster", code: "not_ready" as const, detail: reason }];
    throw new ServerError("not_ready", undefined, { issues });
  });
  app.get("/healthz", sayHealthy);
  try {
    await app.listen({ host, port, backlog: BACKLOG });
    app.log.warn({ reason }, "the server has no role in the cluster yet");
    return await work;
  } finally {
    await app.close();
  }
}
