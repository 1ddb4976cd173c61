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
 * Hands out batch data to clients. A client that never reads holds the data until its connection is
 * cut. So a batch is in memory once for all its clients, and beyond a limit no further batch is
 * read.
 */
export function outgoingBatches(find: FindBatch, mostBytes: number = MOST_BYTES) {
  const all = new Map<string, Outgoing>();
  /** Batches are read one by one, because reading shows their size. */
  let reading: Promise<unknown> = Promise.resolve();
  const forget = (name: string, outgoing: Outgoing) => {
    if (all.get(name) === outgoing) all.delete(name);
  };
  const begin = (name: string, mode: Mode, batchNumber: number, limit: number): Outgoing => {
    const data = reading.then(async () => {
      const held = [...all.values()].reduce((sum, { bytes }) => sum + bytes, 0);
      if (held >= limit)
        throw later(
          "rate_limited",
          RETRY_SECONDS,
          "Slow clients hold too much batch data in transfer.",
        );
      const found = await find(mode, batchNumber);
      outgoing.bytes = found.byteLength;
      return Buffer.from(found.buffer, found.byteOffset, found.byteLength);
    });
    reading = data.catch(() => {});
    const outgoing: Outgoing = { data, bytes: 0, readers: 0 };
    all.set(name, outgoing);
    // A failed read is not shared.
    data.catch(() => forget(name, outgoing));
    return outgoing;
  };
  /**
   * A batch's data, held until the response ends. Rejects as `find` does, and with `rate_limited`
   * beyond the limit.
   */
  return async (
    mode: Mode,
    batchNumber: number,
    answer: Writable,
    isPublic = false,
  ): Promise<Buffer> => {
    const name = `${mode}-${batchNumber}`;
    const outgoing =
      all.get(name) ?? begin(name, mode, batchNumber, isPublic ? mostBytes / 2 : mostBytes);
    outgoing.readers += 1;
    finished(answer, () => {
      outgoing.readers -= 1;
      if (outgoing.readers === 0) forget(name, outgoing);
    });
    return outgoing.data;
  };
}
