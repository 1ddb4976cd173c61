import { backoffDelay, pause, retryAfterMs } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import type { Mode } from "../model.ts";

/** Somebody who may have the data of batches: a committee member, or the operator. Nothing it says is believed unchecked. */
export interface BatchSource {
  /** For messages. */
  readonly name: string;
  /** null when it does not have the batch. */
  batchData(mode: Mode, batchNumber: number, signal?: AbortSignal): Promise<Uint8Array | null>;
}

/** No batch of 2^20 vaults with the longest blobs is larger. */
const MAX_DATA_BYTES = 512 * 1024 * 1024;

/** How a source over HTTP is asked. */
export interface HttpBatchSourceOptions {
  /** Longest time for one answer to arrive, in milliseconds. Default 60,000. */
  readonly timeoutMs?: number;
  /** Most repetitions of a request that the service took none of, for now (429, 503). Default 10. */
  readonly retries?: number;
  /** Longest wait that a service may ask for before a repetition, in milliseconds. Default 60,000. */
  readonly maxWaitMs?: number;
}

/** Before a repetition when the service does not say how long to wait. */
const BACKOFF = { firstMs: 500, maxMs: 10_000 };

/** A member's service or an engine's server: both serve batch data to anyone, under the same path, and limit how much at once. */
export class HttpBatchSource implements BatchSource {
  readonly name: string;
  readonly #options: Required<HttpBatchSourceOptions>;

  constructor(url: string, { timeoutMs = 60_000, retries = 10, maxWaitMs = 60_000 }: HttpBatchSourceOptions = {}) {
    this.name = url.replace(/\/+$/, "");
    this.#options = { timeoutMs, retries, maxWaitMs };
  }

  async batchData(mode: Mode, batchNumber: number, signal?: AbortSignal): Promise<Uint8Array | null> {
    const { retries, maxWaitMs } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const response = await this.#ask(`/public/v1/batches/${mode}-${batchNumber}/data`, signal);
      if (response.ok) return readBody(response, MAX_DATA_BYTES);
      await response.body?.cancel();
      if (response.status === 404) return null;
      const wait = retryAfterMs(response.headers.get("retry-after")) ?? backoffDelay(BACKOFF, attempt);
      const later = response.status === 429 || response.status === 503;
      if (!later || attempt > retries || wait > maxWaitMs) {
        throw new MintmarkError("proof_not_ready", `${this.name} answered ${response.status}`);
      }
      await pause(wait, signal);
    }
  }

  #ask(path: string, signal: AbortSignal | undefined): Promise<Response> {
    const late = AbortSignal.timeout(this.#options.timeoutMs);
    return fetch(this.name + path, { redirect: "error", signal: signal ? AbortSignal.any([late, signal]) : late });
  }
}

/** A response's whole body; rejects as soon as it is longer than `most` bytes. */
export async function readBody(response: Response, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > most) throw new RangeError(`the answer is longer than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
