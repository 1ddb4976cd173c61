import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";

/** Time limits of a shutdown. */
export interface ShutdownOptions {
  /**
   * Milliseconds of answering 503 before the socket closes, so a load balancer can react. Default
   * 0.
   */
  readonly drainMs?: number;
  /** Milliseconds after which busy connections are closed. Default 10,000. */
  readonly deadlineMs?: number;
}

/**
 * Stops a server: refuses new work, finishes running requests, then closes every connection. The
 * engine stays open.
 *
 * @example
 * process.once("SIGTERM", () => shutDown(app, { drainMs: 5_000 }).then(() => engine.close()));
 */
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

/**
 * Resolves with the first SIGINT or SIGTERM; a second one ends the process at once. Call it first,
 * because a container's init has no default action for signals.
 */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (signal: NodeJS.Signals) => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
  });
}

/**
 * Takes the stop signal from now on. It ends the process at once, because nothing is acknowledged
 * yet, until the returned function is called, which waits for it.
 */
export function stopSignalFromStart(): () => Promise<NodeJS.Signals> {
  const stopped = stopSignal();
  let hasStarted = false;
  void stopped.then(() => hasStarted || process.exit(0));
  return () => {
    hasStarted = true;
    return stopped;
  };
}
