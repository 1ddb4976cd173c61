import { type Backoff, repeat } from "../backoff.ts";
import { messageOf } from "../errors.ts";
import type { Clock } from "../ports.ts";

export interface RoundsOptions {
  /** Milliseconds between two passes of one kind of work; default 2 000. */
  readonly intervalMs?: number;
  /** Called with a pass's error. The next pass tries again after a longer pause. */
  readonly onError?: (error: unknown) => void;
  /** Monotonic milliseconds for retries; default the process's own. */
  readonly clock?: Clock;
}

const MOST_LEFT_OUT = 10;
const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/** One pass of one kind of work: reads the current state, and does a bounded part of the work. */
export type Pass = (signal?: AbortSignal) => Promise<unknown>;

/**
 * Kinds of work by name. {@link run} gives each its own loop, so none delays another. {@link round}
 * runs one pass of each in turn.
 */
export abstract class Rounds<T, Name extends string, Options extends RoundsOptions> {
  protected readonly options: Options;
  readonly #lastErrors = new Map<Name, unknown>();

  constructor(options: Options) {
    this.options = options;
  }

  protected abstract readonly passes: Readonly<Record<Name, Pass>>;

  /**
   * A word for everything that a pass depends on. {@link run} leaves a pass out while its word is
   * unchanged, so that nothing is asked of a node that has no new block; but not for {@link
   * MOST_LEFT_OUT} intervals, because some work waits for a time.
   */
  protected readonly words: Partial<Readonly<Record<Name, () => Promise<string>>>> = {};

  /** One pass of all work, in order. Do not call it during {@link run}. */
  abstract round(signal?: AbortSignal): Promise<T>;

  /**
   * The error of the last pass of each kind under {@link run}; null after a good pass. For
   * readiness checks.
   */
  get lastErrors(): Readonly<Record<Name, unknown>> {
    const names = Object.keys(this.passes) as Name[];
    return Object.fromEntries(
      names.map((name) => [name, this.#lastErrors.get(name) ?? null]),
    ) as Record<Name, unknown>;
  }

  /** The first of {@link lastErrors}; null when all kinds of work are fine. */
  get lastError(): unknown {
    return Object.values(this.lastErrors).find((error) => error !== null) ?? null;
  }

  /**
   * Runs passes until the signal aborts, and resolves when all have ended. A failing pass goes to
   * `onError` and is repeated with back-off.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = 2_000, onError = () => {} } = this.options;
    const loops = (Object.entries(this.passes) as [Name, Pass][]).map(([name, pass]) => {
      const onRound = (error: unknown) => {
        this.#lastErrors.set(name, error);
        if (error !== null) onError(error);
      };
      const word = this.words[name];
      const needed =
        word === undefined ? pass : whenChanged(pass, word, intervalMs * MOST_LEFT_OUT);
      return repeat(needed, { intervalMs, backoff: BACKOFF, onRound }, signal);
    });
    await Promise.all(loops);
  }
}

/** Repeats a good pass only when the word has changed, or after so many milliseconds. */
function whenChanged(pass: Pass, wordOf: () => Promise<string>, afterMs: number): Pass {
  let last: { readonly word: string; readonly at: number } | null = null;
  return async (signal) => {
    const now = { word: await wordOf(), at: performance.now() };
    if (last?.word === now.word && now.at - last.at < afterMs) return;
    last = null;
    await pass(signal);
    last = now;
  };
}

/** Independent steps: each is tried even if others fail. */
export class Attempts {
  readonly #signal: AbortSignal | undefined;
  readonly #failures: unknown[] = [];

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** The step's count; 0 when it fails. Rejects only when the round is aborted. */
  async of(step: () => Promise<number>): Promise<number> {
    try {
      return await step();
    } catch (error) {
      this.#signal?.throwIfAborted();
      this.#failures.push(error);
      return 0;
    }
  }

  /** Throws all errors so far. */
  end(): void {
    const all = this.#failures;
    if (all.length > 1) throw new AggregateError(all, all.map(messageOf).join("; "));
    if (all.length === 1) throw all[0];
  }
}
