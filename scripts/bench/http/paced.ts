import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Target } from "./saturate.ts";

/**
 * Sends requests evenly at a rate, whether earlier ones are answered or not, and takes each one's time from the moment when it was due: a
 * server that stalls is charged with all who waited. autocannon's own `overallRate` sends a second's requests in one burst.
 *
 * @param rate - requests a second
 * @returns milliseconds a request, ascending
 */
export async function sendPaced(target: Target, rate: number, bodies: readonly Buffer[]): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const pending: Promise<number>[] = [];
  const start = performance.now();
  for (const [i, body] of bodies.entries()) {
    const due = start + (i / rate) * 1000;
    while (performance.now() < due) await sleep(1);
    pending.push(post(target, agent, body).then(() => performance.now() - due));
  }
  const times = await Promise.all(pending);
  agent.destroy();
  return times.sort((a, b) => a - b);
}

function post({ port, apiKey }: Target, agent: Agent, body: Buffer): Promise<void> {
  return new Promise((answered, failed) => {
    const headers = { "content-type": "application/json", "content-length": body.length, "x-api-key": apiKey };
    const sent = request({ port, agent, method: "POST", path: "/api/v1/mint", headers }, (response) => {
      if (response.statusCode !== 200) failed(new Error(`a mint was answered with ${response.statusCode}`));
      response.on("error", failed).on("end", answered).resume();
    });
    sent.on("error", failed).end(body);
  });
}

/** The value below which a share of them lies; of ascending values. */
export function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;
}
