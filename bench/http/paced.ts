import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { poster, type Target } from "./connection.ts";

/**
 * Sends requests evenly at a rate, without waiting for earlier responses, and measures each from the time when it was
 * due. So a stall of the server counts for all waiting requests.
 *
 * @param rate - requests a second
 * @returns milliseconds a request, ascending
 */
export async function sendPaced(target: Target, rate: number, bodies: readonly Buffer[]): Promise<number[]> {
  using connections = new DisposableStack();
  const post = poster(target, connections);
  const pending: Promise<number>[] = [];
  const start = performance.now();
  for (const [i, body] of bodies.entries()) {
    const due = start + (i / rate) * 1000;
    while (performance.now() < due) await sleep(1);
    pending.push(post(body).then(() => performance.now() - due));
  }
  const times = await Promise.all(pending);
  return times.sort((a, b) => a - b);
}

/**
 * Appends evenly to a file, and has all that is due on disk before it goes on, as the store does with requests.
 *
 * @param rate - appends a second
 * @param bytes - of one append
 * @returns milliseconds from the time when an append was due until it was on disk, ascending
 */
export async function appendPaced(folder: string, rate: number, seconds: number, bytes: number): Promise<number[]> {
  await using file = await open(join(folder, "appended"), "wx");
  const times: number[] = [];
  const count = Math.ceil(rate * seconds);
  const start = performance.now();
  while (times.length < count) {
    const due = Math.min(count, Math.floor(((performance.now() - start) / 1000) * rate) + 1) - times.length;
    if (due === 0) await sleep(1);
    else {
      await file.appendFile(Buffer.alloc(due * bytes, 0xa5));
      await file.datasync();
      const now = performance.now() - start;
      for (let i = 0; i < due; i++) times.push(now - (times.length / rate) * 1000);
    }
  }
  return times.sort((a, b) => a - b);
}

/** A quantile of ascending values. */
export function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}
