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
const TIMEOUT_MS = 60_000;

/** A member's service or an engine's server: both serve batch data to anyone, under the same path. */
export class HttpBatchSource implements BatchSource {
  readonly name: string;
  readonly #timeoutMs: number;

  constructor(url: string, timeoutMs = TIMEOUT_MS) {
    this.name = url.replace(/\/+$/, "");
    this.#timeoutMs = timeoutMs;
  }

  async batchData(mode: Mode, batchNumber: number, signal?: AbortSignal): Promise<Uint8Array | null> {
    const late = AbortSignal.timeout(this.#timeoutMs);
    const response = await fetch(`${this.name}/public/v1/batches/${mode}-${batchNumber}/data`, {
      redirect: "error",
      signal: signal ? AbortSignal.any([late, signal]) : late,
    });
    if (response.status === 404) {
      await response.body?.cancel();
      return null;
    }
    const body = await readBody(response, MAX_DATA_BYTES);
    if (!response.ok) throw new MintmarkError("proof_not_ready", `${this.name} answered ${response.status}`);
    return body;
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
