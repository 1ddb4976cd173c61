import { setTimeout as sleep } from "node:timers/promises";
import { Connection, type Target } from "./connection.ts";

/**
 * Sends requests evenly at a rate, without waiting for earlier responses, and measures each from the time when it was
 * due. So a stall of the server counts for all waiting requests.
 *
 * @param rate - requests a second
 * @returns milliseconds a request, ascending
 */
export async function sendPaced(target: Target, rate: number, bodies: readonly Buffer[]): Promise<number[]> {
  using open = new DisposableStack();
  const idle: Connection[] = [];
  const post = async (body: Buffer, due: number) => {
    const connection = idle.pop() ?? open.use(new Connection(target));
    await connection.post(body);
    idle.push(connection);
    return performance.now() - due;
  };
  const pending: Promise<number>[] = [];
  const start = performance.now();
  for (const [i, body] of bodies.entries()) {
    const due = start + (i / rate) * 1000;
    while (performance.now() < due) await sleep(1);
    pending.push(post(body, due));
  }
  const times = await Promise.all(pending);
  return times.sort((a, b) => a - b);
}

/** A quantile of ascending values. */
export function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}
