import { backoffDelay, pause, retryAfterMs } from "../../backoff.ts";
import { MintmarkError } from "../../errors.ts";
import { batchIdOf, type Mode } from "../../model.ts";

/** A source of batch data, such as a committee member or the operator. All data is checked. */
export interface BatchSource {
  /** For error messages. */
  readonly name: string;
  /** null when it does not have the batch. */
  batchData(mode: Mode, batchNumber: number, signal?: AbortSignal): Promise<Uint8Array | null>;
}

/** More than 2^20 vaults with the longest blobs, and more than one transaction of a rollup carries. */
const MAX_DATA_BYTES: Readonly<Record<Mode, number>> = { validium: 512 * 1024 * 1024, "zk-rollup": 4 * 1024 * 1024 };

/** Limits of requests to a source over HTTP. */
interface HttpBatchSourceOptions {
  /** Timeout of one response, in milliseconds. Default 60,000. */
  readonly timeoutMs?: number;
  /** Most retries after responses 429 and 503. Default 10. */
  readonly retries?: number;
  /** Longest wait that a service may ask for before a retry, in milliseconds. Default 60,000. */
  readonly maxWaitMs?: number;
}

const BACKOFF = { firstMs: 500, maxMs: 10_000 }; // The wait before a retry when the service does not state one

/**
 * A member's service or an engine's server. Both serve batch data to anyone under the same path, and limit the rate.
 *
 * @example
 * const sources = [new HttpBatchSource("https://member.example")];
 * const kit = await exportExitKit(await proveFromL1(vaultId, { l1, fromBlock, sources }), l1);
 */
export class HttpBatchSource implements BatchSource {
  readonly name: string;
  readonly #options: Required<HttpBatchSourceOptions>;

  constructor(url: string, { timeoutMs = 60_000, retries = 10, maxWaitMs = 60_000 }: HttpBatchSourceOptions = {}) {
    this.name = url.replace(/\/+$/, "");
    this.#options = { timeoutMs, retries, maxWaitMs };
  }

  async batchData(mode: Mode, batchNumber: number, signal?: AbortSignal): Promise<Uint8Array | null> {
    const { timeoutMs, retries, maxWaitMs } = this.#options;
    const url = `${this.name}/public/v1/batches/${batchIdOf(mode, batchNumber)}/data`;
    for (let attempt = 1; ; attempt++) {
      const late = AbortSignal.timeout(timeoutMs);
      const response = await fetch(url, { redirect: "error", signal: signal ? AbortSignal.any([late, signal]) : late });
      if (response.ok) return readBody(response, MAX_DATA_BYTES[mode]);
      await response.body?.cancel();
      if (response.status === 404) return null;
      const wait = retryAfterMs(response.headers.get("retry-after")) ?? backoffDelay(BACKOFF, attempt);
      const later = response.status === 429 || response.status === 503;
      if (!later || attempt > retries || wait > maxWaitMs)
        throw new MintmarkError("proof_not_ready", `${this.name} answered ${response.status}`);
      await pause(wait, signal);
    }
  }
}

/** The whole body of a response. Rejects as soon as it exceeds `most` bytes. */
export async function readBody(response: Response, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > most) throw new RangeError(`the response is longer than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
