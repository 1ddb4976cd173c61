import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import type { ApplicationEvent } from "../../../core/index.ts";
import { eventJson } from "../../../core/internal.ts";
import { ServerError } from "../errors.ts";

/** The open streams of each key, up to a limit. */
export class StreamSlots {
  readonly perKey: number;
  readonly #open = new Map<string, number>();

  constructor(perKey: number) {
    this.perKey = perKey;
  }

  /** Takes a slot of the key; returns the function that releases it. Throws `too_many_streams`. */
  take(keyId: string): () => void {
    const open = this.#open.get(keyId) ?? 0;
    if (open >= this.perKey) throw new ServerError("too_many_streams");
    this.#open.set(keyId, open + 1);
    return () => {
      const left = (this.#open.get(keyId) ?? 1) - 1;
      if (left > 0) this.#open.set(keyId, left);
      else this.#open.delete(keyId);
    };
  }
}

interface EventStreamOptions {
  /** Opens the events; an abort of the signal ends them. */
  readonly open: (signal: AbortSignal) => AsyncIterable<ApplicationEvent>;
  /** Rejects once the caller may no longer read. Called at every heartbeat, and on each `onAccess`. */
  readonly allowed: () => Promise<unknown>;
  /** Calls back when the caller's rights may have changed; returns the unsubscribe function. */
  readonly onAccess: (changed: () => void) => () => void;
  readonly heartbeatMs: number;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
  /** Called when the stream has ended, for any reason. */
  readonly closed: () => void;
}

/** Time after which a client reconnects. */
const RETRY_MS = 2000;

/**
 * Events as Server-Sent Events (WHATWG HTML, 9.2): `id` is the sequence, `data` the event as one line of JSON. Writes
 * no faster than the client reads; comments keep the connection alive. Ends when the client leaves, the server stops,
 * or the caller may no longer read; the client's next request gets the reason. Throws the errors of `open`.
 */
export function eventStream({ open, allowed, onAccess, heartbeatMs, stopping, closed }: EventStreamOptions): Readable {
  const stream = new PassThrough({ encoding: "utf8" });
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const events = open(ended.signal);
  const check = (): void => void allowed().catch(end);
  const heartbeat = setInterval(() => {
    check();
    if (!stream.writableNeedDrain) stream.write(":\n\n");
  }, heartbeatMs);
  const deaf = onAccess(check);
  stopping.addEventListener("abort", end);
  if (stopping.aborted) end();
  stream.once("close", end);
  ended.signal.addEventListener("abort", () => {
    clearInterval(heartbeat);
    deaf();
    stopping.removeEventListener("abort", end);
    closed();
  });
  stream.write(`retry: ${RETRY_MS}\n\n`);
  void write(events, stream, ended.signal)
    .catch((error) => {
      // Its own end is no failure. Any other, such as a damaged record, cuts the response off.
      if (!ended.signal.aborted) stream.destroy(error);
    })
    .finally(() => {
      end();
      stream.end();
    });
  return stream;
}

/** Concurrent readers get the same event, whose text is made once. */
const frames = new WeakMap<ApplicationEvent, string>();

function frameOf(event: ApplicationEvent): string {
  const known = frames.get(event);
  if (known !== undefined) return known;
  const frame = `id: ${event.sequence}\ndata: ${JSON.stringify(eventJson(event))}\n\n`;
  frames.set(event, frame);
  return frame;
}

async function write(events: AsyncIterable<ApplicationEvent>, stream: PassThrough, signal: AbortSignal): Promise<void> {
  for await (const event of events) {
    if (!stream.write(frameOf(event))) await once(stream, "drain", { signal });
  }
}
