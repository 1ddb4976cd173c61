import { setTimeout as sleep } from "node:timers/promises";
import { MintmarkError } from "../../core/index.ts";
import { ServerError } from "../http/errors.ts";
import { fastifyApp } from "../http/fastify-app.ts";
import type { LogOptions } from "../http/log.ts";
import { sayHealthy } from "../routes/service.ts";
import type { Config } from "./settings/settings.ts";

/** A server that finds its role within this time listens only once. */
const PATIENCE_MS = 3_000;

/**
 * Listens while a server waits for its role in a cluster. `/healthz` answers, so that no supervisor restarts a server
 * that waits for PostgreSQL. `/readyz` gives the reason, and everything else is 503 `journal_unavailable`. Resolves as
 * `work` does, when the port is free again.
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
  const app = fastifyApp({ log, hosts: [...hosts, host], requestTimeoutSeconds: 30, forceCloseConnections: true });
  app.addHook("onRequest", async (request) => {
    const [path] = request.url.split("?", 1);
    if (path === "/healthz") return;
    if (path !== "/readyz") throw new MintmarkError("journal_unavailable");
    const issues = [{ pointer: "/checks/cluster", code: "not_ready" as const, detail: reason }];
    throw new ServerError("not_ready", undefined, { issues });
  });
  app.get("/healthz", sayHealthy);
  try {
    await app.listen({ host, port });
    app.log.warn({ reason }, "the server has no role in the cluster yet");
    return await work;
  } finally {
    await app.close();
  }
}
