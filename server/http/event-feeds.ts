import { setImmediate } from "node:timers";
import type { ApplicationEvent, Engine } from "../../core/index.ts";
import { eventJson, Followers } from "../../core/internal.ts";

/** Most bytes of events that an application's feed keeps for each of its followers, and for all. */
const KEPT_BYTES = 16 * 1024;
const MOST_KEPT_BYTES = 16 * KEPT_BYTES;

/** Consecutive events as Server-Sent Events, and the sequence of the last. */
interface Frames {
  readonly last: number;
  readonly bytes: Buffer;
}

/**
 * The events of applications for all who follow them over HTTP. Each event is read and encoded once
 * for its application, and a follower gets all that is new in one write. Followers take turns with
 * pauses, so however many there are, their writes leave the event loop to requests.
 */
export class EventFeeds {
  readonly #events: Engine["events"];
  readonly #followers = new Followers<string>();
  readonly #feeds = new Map<string, EventFeed>();

  constructor({ events }: Pick<Engine, "events">) {
    this.#events = events;
  }

  /**
   * An application's events after a sequence, in order, without gap or duplicate. All that are
   * there come at once. Ends with the signal's reason, or with the log's failure.
   */
  async *follow(
    applicationId: string,
    after: number,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer, void, void> {
    const feed = this.#feedOf(applicationId);
    feed.followers += 1;
    try {
      for (let known = after; ; ) {
        signal.throwIfAborted();
        const frames = feed.after(known);
        if (frames === null) {
          for await (const read of this.#read(applicationId, known)) {
            yield read.bytes;
            known = read.last;
          }
          feed.begin(known);
        } else if (frames.last === known) await this.#followers.next(applicationId, signal);
        else {
          yield frames.bytes;
          known = frames.last;
        }
      }
    } finally {
      feed.followers -= 1;
      if (feed.followers === 0) this.#end(applicationId, feed);
    }
  }

  #feedOf(applicationId: string): EventFeed {
    const known = this.#feeds.get(applicationId);
    if (known !== undefined) return known;
    const feed = new EventFeed(
      (after, signal) => this.#events.stream(applicationId, { after, follow: true, signal }),
      () => {
        if (feed.failure !== null) this.#end(applicationId, feed);
        this.#followers.wake(applicationId);
      },
    );
    this.#feeds.set(applicationId, feed);
    return feed;
  }

  #end(applicationId: string, feed: EventFeed): void {
    feed.end();
    if (this.#feeds.get(applicationId) === feed) this.#feeds.delete(applicationId);
  }

  /** Reads the log after a sequence, for a follower that is behind its feed. */
  async *#read(applicationId: string, after: number): AsyncGenerator<Frames, void, void> {
    let frames: Buffer[] = [];
    let [bytes, last] = [0, after];
    for await (const event of this.#events.stream(applicationId, { after })) {
      const frame = frameOf(event);
      frames.push(frame);
      bytes += frame.length;
      last = event.sequence;
      if (bytes < KEPT_BYTES) continue;
      yield { last, bytes: Buffer.concat(frames) };
      [frames, bytes] = [[], 0];
    }
    if (bytes > 0) yield { last, bytes: Buffer.concat(frames) };
  }
}

/** The newest events of one application. It begins with a follower that has read the whole log. */
class EventFeed {
  followers = 0;
  /** Why no more events come; null while they do. */
  failure: { readonly error: unknown } | null = null;
  readonly #stream: (after: number, signal: AbortSignal) => AsyncIterable<ApplicationEvent>;
  readonly #changed: () => void;
  readonly #over = new AbortController();
  /** The frames of the events up to `#newest`, without a gap; null before it has begun. */
  #frames: Buffer[] | null = null;
  #bytes = 0;
  #newest = 0;
  /** The last answer, which followers at the same place share; others' places keep no memory. */
  #joined: Frames & { readonly after: number } = { after: 0, last: 0, bytes: Buffer.alloc(0) };

  constructor(
    stream: (after: number, signal: AbortSignal) => AsyncIterable<ApplicationEvent>,
    changed: () => void,
  ) {
    this.#stream = stream;
    this.#changed = changed;
  }

  /** The events after a sequence; null when only the log has them. Throws why the feed ended. */
  after(known: number): Frames | null {
    if (this.failure !== null) throw this.failure.error;
    if (this.#frames === null || known < this.#newest - this.#frames.length) return null;
    // A follower that has read the log can be ahead.
    if (known >= this.#newest) return { last: known, bytes: Buffer.alloc(0) };
    if (this.#joined.after !== known || this.#joined.last !== this.#newest) {
      const bytes = Buffer.concat(this.#frames.slice(known - this.#newest));
      this.#joined = { after: known, last: this.#newest, bytes };
    }
    return this.#joined;
  }

  /** Follows the log from a sequence on, unless it does already. */
  begin(after: number): void {
    if (this.#frames !== null) return;
    this.#frames = [];
    this.#newest = after;
    void this.#follow(this.#frames, after);
  }

  end(): void {
    this.#over.abort();
  }

  async #follow(frames: Buffer[], after: number): Promise<void> {
    let isTold = true;
    const tell = () => {
      isTold = true;
      this.#changed();
    };
    try {
      for await (const event of this.#stream(after, this.#over.signal)) {
        this.#add(frames, event);
        // Followers hear of all that was read together at once.
        if (isTold) setImmediate(tell);
        isTold = false;
      }
    } catch (error) {
      this.failure = { error };
      this.#changed();
    }
  }

  #add(frames: Buffer[], event: ApplicationEvent): void {
    const frame = frameOf(event);
    frames.push(frame);
    this.#newest = event.sequence;
    this.#bytes += frame.length;
    const most = Math.min(MOST_KEPT_BYTES, KEPT_BYTES * this.followers);
    while (this.#bytes > most) this.#bytes -= frames.shift()?.length ?? 0;
  }
}

/** Concurrent readers get the same event, whose frame is made once. */
const frames = new WeakMap<ApplicationEvent, Buffer>();

function frameOf(event: ApplicationEvent): Buffer {
  const known = frames.get(event);
  if (known !== undefined) return known;
  const data = JSON.stringify(eventJson(event));
  const frame = Buffer.from(`id: ${event.sequence}\ndata: ${data}\n\n`);
  frames.set(event, frame);
  return frame;
}
