import type { ServerResponse } from "node:http";
import { nextTick } from "node:process";
import { ServerError } from "./errors.ts";

/**
 * Shares the event loop among long work. Each piece of work waits for a turn, and each pass of the
 * loop gives one turn. So a small request waits for one piece at most. Callers with waiting pieces
 * take turns.
 */
export class EventLoopTurns {
  readonly #later: (give: () => void) => void;
  readonly #waiting = new Map<string, Set<() => void>>();
  /** The end of each caller's newest large work. */
  readonly #alone = new Map<string, Promise<unknown>>();

  /** @param later - calls its argument when the next turn is due; default: in the next pass */
  constructor(later: (give: () => void) => void = (give) => setImmediate(give)) {
    this.#later = later;
  }

  /**
   * Resolves at this caller's turn. Do the work before the next `await`, to stay in this pass of
   * the loop. Once the connection of `response` is closed, nobody needs the work: then the turn is
   * for the next one, and this rejects.
   */
  turn(caller: string, response?: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      if (response?.destroyed) return reject(endedEarly());
      if (this.#waiting.size === 0) this.#later(() => this.#give());
      const queue = this.#waiting.get(caller) ?? new Set();
      this.#waiting.set(caller, queue);
      const leave = () => {
        queue.delete(go);
        if (queue.size === 0 && this.#waiting.get(caller) === queue) this.#waiting.delete(caller);
        reject(endedEarly());
      };
      const go = () => {
        response?.off("close", leave);
        resolve();
      };
      queue.add(go);
      response?.once("close", leave);
    });
  }

  /** Runs a caller's large work after its earlier large work, so one at a time is in memory. */
  async alone<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const earlier = this.#alone.get(caller);
    const done = (earlier ?? Promise.resolve()).then(work);
    const over = Promise.allSettled([done]);
    this.#alone.set(caller, over);
    try {
      return await done;
    } finally {
      if (this.#alone.get(caller) === over) this.#alone.delete(caller);
    }
  }

  #give(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [caller, queue] = next;
    const [go] = queue;
    if (go !== undefined) queue.delete(go);
    // Puts the caller behind the others.
    this.#waiting.delete(caller);
    if (queue.size > 0) this.#waiting.set(caller, queue);
    if (this.#waiting.size > 0) this.#later(() => this.#give());
    go?.();
  }
}

/** A pass of this length did hardly anything else, so nobody waits. */
const SPARE_MS = 0.5;
/** Milliseconds after a turn until the next one is due, however busy the event loop is. */
const OTHERS_MS = 10;

/**
 * Gives turns when the event loop has hardly other work, and when the last one was a while ago. So
 * pieces of a millisecond take a tenth of a busy loop, and all that is left of another. Who asks
 * late, after its own wait for a disk, does not wait again.
 */
export function whenSpare(): (give: () => void) => void {
  let due = 0;
  return (give) => {
    const go = () => {
      due = Number.POSITIVE_INFINITY;
      give();
      // The turn's work is done in microtasks, and a tick from there comes after all of them.
      queueMicrotask(() =>
        nextTick(() => {
          due = performance.now() + OTHERS_MS;
        }),
      );
    };
    let since = performance.now();
    const look = () => {
      const now = performance.now();
      const took = now - since;
      since = now;
      if (took < SPARE_MS || now >= due) go();
      else setImmediate(look);
    };
    if (since >= due) queueMicrotask(go);
    else setImmediate(look);
  };
}

/** Answers nobody: the connection has ended. */
export function endedEarly(): ServerError {
  return new ServerError("malformed_request", "The connection ended early.");
}
