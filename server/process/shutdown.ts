import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";

/** How long a shutdown may take. */
export interface ShutdownOptions {
  /** How long to answer 503 before the socket closes, so that a load balancer can look away. Default 0. */
  readonly drainMs?: number;
  /** Connections that are still busy after this long are cut. Default 10,000. */
  readonly deadlineMs?: number;
}

/** Stops a server: no new work, what runs is finished, then every connection is closed. The engine stays open. */
export async function shutDown(app: FastifyInstance, options: ShutdownOptions = {}): Promise<void> {
  const { drainMs = 0, deadlineMs = 10_000 } = options;
  app.drain();
  if (drainMs > 0) await sleep(drainMs);
  const deadline = globalThis.setTimeout(() => app.server.closeAllConnections(), deadlineMs);
  try {
    await app.close();
  } finally {
    clearTimeout(deadline);
  }
}
