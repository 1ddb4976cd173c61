import { setImmediate as nextPass } from "node:timers/promises";
import { MintmarkError } from "../errors.ts";
import { Group } from "./group.ts";
import type { Store } from "./ports.ts";

/** A transition that shares its write with others. */
export interface Transition<T> {
  readonly weight: number; // The change's share of a group's limit, such as its number of mints
  /**
   * Whether it waits instead while changes are refused, because it follows from changes that were
   * not.
   */
  readonly isOwed?: true;
  /**
   * The keys of the records that `apply` needs. Changes nothing; throws a `MintmarkError` to
   * refuse.
   */
  keys(): Buffer[];
  /**
   * Throws a `MintmarkError` only before any change. Earlier transitions' changes to `stored` are
   * in `group`.
   */
  apply(group: Group, stored: readonly (Buffer | undefined)[]): T;
}

/** A transition that runs alone. */
interface Alone<T> {
  readonly weight: number;
  readonly isOwed?: undefined;
  readonly body: (group: Group) => Promise<T>;
}

/** A change that is not durable yet. A class for the reason that `Put` is one. */
class Waiting {
  declare readonly transition: Transition<unknown> | Alone<unknown>;
  declare readonly resolve: (value: unknown) => void;
  declare readonly reject: (error: unknown) => void;
  // Marks it as started, so it can no longer be cancelled; null without a signal
  declare begin: (() => void) | null;
  declare outcome: unknown; // The caller's promise resolves with it once the change is applied.

  constructor(
    transition: Waiting["transition"],
    resolve: Waiting["resolve"],
    reject: Waiting["reject"],
  ) {
    this.transition = transition;
    this.resolve = resolve;
    this.reject = reject;
    this.begin = null;
    this.outcome = undefined;
  }
}

// Most weight of one group. Applying it takes longer than its write, so a larger one only delays.
const GROUP_WEIGHT = 1 << 13;
const LIGHT = 16; // Most weight of a transition that need not wait until heavier ones had groups
const OVERTAKEN = 1_024; // Most transitions that a light one overtakes
/**
 * Between the steps of a group of this weight, and after each such part of it, other work that
 * waits for the event loop gets a pass.
 */
const HEAVY = 1 << 11;

/** Takes changes. Both methods resolve once the change is durable. */
export type ChangeWriter = Pick<Writer, "run" | "alone">;

/**
 * The single writer. It applies transitions one by one in memory, puts many into one write, and
 * acknowledges each when that is durable. During a write it applies the next group, so after a
 * failed one it refuses everything.
 */
export class Writer {
  readonly #store: Store;
  /** Adds the records that a group writes once, however many transitions change them. */
  readonly #finish: (group: Group) => void;
  // Resolves when another group may be applied
  readonly #sealing: { readonly room: Promise<void> | null };
  #queue: Waiting[] = [];
  #running: Promise<void> | null = null;
  #failure: MintmarkError | null = null;
  #closed = false;
  #refusal: MintmarkError | null = null; // Why no change is taken now; null while they are
  readonly #ended = new AbortController();

  constructor(
    store: Store,
    finish: (group: Group) => void,
    sealing: { readonly room: Promise<void> | null },
  ) {
    this.#store = store;
    this.#finish = finish;
    this.#sealing = sealing;
    const { lost } = store;
    lost?.addEventListener("abort", () => this.#fail(lost.reason), { signal: this.#ended.signal });
  }

  /** Throws `store_failed` after a failed write, `engine_closed` after `close`. */
  ensureUsable(): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#closed) throw new MintmarkError("engine_closed");
  }

  /** Aborted once the writer takes no more, with the error of {@link ensureUsable}. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /**
   * Queues a transition; resolves once durable. An aborted signal removes it from the queue, never
   * from a group.
   */
  run<T>(transition: Transition<T> | Alone<T>, signal?: AbortSignal): Promise<T> {
    try {
      this.#ended.signal.throwIfAborted();
      if (this.#refusal !== null && transition.isOwed !== true) throw this.#refusal;
      signal?.throwIfAborted();
    } catch (error) {
      return Promise.reject(error);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const waiting = new Waiting(transition, resolve as Waiting["resolve"], reject);
    if (signal !== undefined) this.#cancelOn(signal, waiting);
    this.#queue.push(waiting);
    this.#running ??= this.#drain();
    return promise;
  }

  /**
   * Queues a transition that reads the store as it goes. It runs alone, after everything before it
   * is durable.
   */
  alone<T>(body: (group: Group) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.run<T>({ weight: 1, body }, signal);
  }

  /**
   * Refuses what waits in the queue, and every change from now on, until it is called with null.
   */
  refuse(reason: MintmarkError | null): void {
    this.#refusal = reason;
    if (reason === null) return;
    for (const waiting of this.#queue.splice(0)) {
      if (waiting.transition.isOwed === true) this.#queue.push(waiting);
      else {
        waiting.begin?.();
        waiting.reject(reason);
      }
    }
  }

  /** Finishes the queue and accepts no more. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#ended.abort(new MintmarkError("engine_closed"));
    while (this.#running !== null) await this.#running;
  }

  /** Only a queued transition can be cancelled. */
  #cancelOn(signal: AbortSignal, waiting: Waiting): void {
    const cancel = (): void => {
      const at = this.#queue.indexOf(waiting);
      if (at < 0) return;
      this.#queue.splice(at, 1);
      waiting.reject(signal.reason);
    };
    waiting.begin = () => signal.removeEventListener("abort", cancel);
    signal.addEventListener("abort", cancel);
  }

  async #drain(): Promise<void> {
    // All transitions queued in this turn of the event loop join the first group.
    await null;
    let previous: Group | null = null;
    let written: Promise<void> = Promise.resolve();
    while (this.#failure === null) {
      if (this.#queue.length === 0) {
        await written;
        // Later arrivals start the next group. From here on there is no await, so none is missed.
        if (this.#queue.length === 0) break;
      }
      await this.#sealing.room;
      const { taken, heavy } = this.#take();
      // Reading the request came before the first group, and the write of a group before the next.
      if (heavy) await nextPass();
      if (taken[0] !== undefined && "body" in taken[0].transition) {
        await written;
        previous = null;
      }
      if (this.#failure !== null) {
        for (const waiting of taken) waiting.reject(this.#failure);
        break;
      }
      const group: Group = new Group(previous);
      const applied = await this.#apply(group, taken, heavy);
      if (heavy) await nextPass();
      await written;
      written = this.#write(group, applied);
      previous = group;
    }
    if (this.#failure !== null) {
      await written;
      for (const waiting of this.#queue.splice(0)) waiting.reject(this.#failure);
    }
    this.#running = null;
  }

  /**
   * The next transitions that can share a write: one that runs alone, or as many others as the
   * limit allows. A light one shares the next write, though heavy ones before it must wait.
   */
  #take(): { readonly taken: Waiting[]; readonly heavy: boolean } {
    const taken: Waiting[] = [];
    const left: Waiting[] = [];
    let weight = 0;
    let at = 0;
    for (; at < this.#queue.length; at++) {
      const waiting = this.#queue[at]!;
      const { transition } = waiting;
      const isAlone = "body" in transition;
      if (taken.length > 0 && (isAlone || weight >= GROUP_WEIGHT)) break;
      if (left.length >= OVERTAKEN) break;
      const fits = taken.length === 0 || weight + transition.weight <= GROUP_WEIGHT;
      if (!fits || (left.length > 0 && transition.weight > LIGHT)) left.push(waiting);
      else {
        weight += transition.weight;
        taken.push(waiting);
        waiting.begin?.();
      }
      if (isAlone) {
        at++;
        break;
      }
    }
    this.#queue.splice(0, at, ...left);
    return { taken, heavy: weight >= HEAVY };
  }

  async #apply(group: Group, taken: readonly Waiting[], heavy: boolean): Promise<Waiting[]> {
    const applied: Waiting[] = [];
    try {
      const keys: Buffer[] = [];
      /** Where the keys of each end; -1 for one that refused at once. */
      const ends: number[] = [];
      for (const { transition, reject } of taken) {
        try {
          if ("keys" in transition) for (const key of transition.keys()) keys.push(key);
          ends.push(keys.length);
        } catch (error) {
          if (!isRefusal(error)) throw error;
          reject(error);
          ends.push(-1);
        }
      }
      const stored = keys.length === 0 ? NONE : await this.#store.getMany(keys);
      if (heavy) await nextPass();
      let at = 0;
      let weight = 0;
      for (const [i, waiting] of taken.entries()) {
        if (weight >= HEAVY) {
          await nextPass();
          weight = 0;
        }
        weight += waiting.transition.weight;
        const end = ends[i]!;
        if (end < 0) continue;
        const own = end === at ? NONE : stored.slice(at, end);
        at = end;
        const operations = group.operations.length;
        try {
          const { transition } = waiting;
          waiting.outcome =
            "body" in transition ? await transition.body(group) : transition.apply(group, own);
          applied.push(waiting);
        } catch (error) {
          if (!isRefusal(error) || group.operations.length !== operations) throw error;
          waiting.reject(error);
        }
      }
      if (applied.length > 0) this.#finish(group);
    } catch (error) {
      this.#fail(error);
      for (const waiting of taken) waiting.reject(this.#failure);
      return [];
    }
    return applied;
  }

  async #write(group: Group, applied: Waiting[]): Promise<void> {
    if (applied.length === 0) return;
    try {
      if (this.#failure !== null) throw this.#failure;
      if (group.operations.length > 0) await this.#store.write(group.operations);
    } catch (error) {
      this.#fail(error);
      for (const waiting of applied) waiting.reject(this.#failure);
      return;
    }
    group.published();
    for (const { resolve, outcome } of applied) resolve(outcome);
  }

  #fail(cause: unknown): void {
    this.#failure ??=
      cause instanceof MintmarkError
        ? cause
        : new MintmarkError("store_failed", undefined, { cause });
    this.#ended.abort(this.#failure);
  }
}

const NONE: readonly (Buffer | undefined)[] = [];

/** Whether a transition refused; any other error leaves the state in doubt. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof MintmarkError &&
    error.code !== "store_failed" &&
    error.code !== "store_corrupt"
  );
}
