import { finished, type Writable } from "node:stream";
import type { Mode } from "../../../core/index.ts";
import { later } from "../errors.ts";

/** Most bytes of different batches in transfer; without a key, half of them. */
const MOST_BYTES = 256 * 1024 * 1024;
const RETRY_SECONDS = 10;

/** Reads a batch's data; rejects when there is none. */
type FindBatch = (mode: Mode, batchNumber: number) => Promise<Uint8Array>;

interface Outgoing {
  readonly data: Promise<Buffer>;
  bytes: number;
  readers: number;
}

/**
 * Batch data in transfer to clients. A client that never reads holds the data until its connection is cut. So a batch
 * is in memory once for all its clients, and beyond a limit no further batch is read.
 */
export class OutgoingBatches {
  readonly #find: FindBatch;
  readonly #mostBytes: number;
  readonly #outgoing = new Map<string, Outgoing>();
  /** Batches are read one by one, because reading shows their size. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(find: FindBatch, mostBytes: number = MOST_BYTES) {
    this.#find = find;
    this.#mostBytes = mostBytes;
  }

  /** A batch's data, held until the response ends. Rejects as `find` does, and with `rate_limited` beyond the limit. */
  async data(mode: Mode, batchNumber: number, answer: Writable, isPublic = false): Promise<Buffer> {
    const name = `${mode}-${batchNumber}`;
    const outgoing =
      this.#outgoing.get(name) ??
      this.#begin(name, mode, batchNumber, isPublic ? this.#mostBytes / 2 : this.#mostBytes);
    outgoing.readers += 1;
    finished(answer, () => {
      outgoing.readers -= 1;
      if (outgoing.readers === 0) this.#forget(name, outgoing);
    });
    return outgoing.data;
  }

  #begin(name: string, mode: Mode, batchNumber: number, mostBytes: number): Outgoing {
    const data = this.#reading.then(() => this.#read(outgoing, mode, batchNumber, mostBytes));
    this.#reading = data.catch(() => {});
    const outgoing: Outgoing = { data, bytes: 0, readers: 0 };
    this.#outgoing.set(name, outgoing);
    // A failed read is not shared.
    data.catch(() => this.#forget(name, outgoing));
    return outgoing;
  }

  #forget(name: string, outgoing: Outgoing): void {
    if (this.#outgoing.get(name) === outgoing) this.#outgoing.delete(name);
  }

  async #read(outgoing: Outgoing, mode: Mode, batchNumber: number, mostBytes: number): Promise<Buffer> {
    const held = [...this.#outgoing.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    if (held >= mostBytes)
      throw later("rate_limited", RETRY_SECONDS, "Slow clients hold too much batch data in transfer.");
    const data = await this.#find(mode, batchNumber);
    outgoing.bytes = data.byteLength;
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }
}
