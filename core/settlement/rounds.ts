import { type Backoff, repeat } from "../backoff.ts";

/** How passes follow one another. */
export interface RoundsOptions {
  /** Milliseconds between two passes of one kind of work; default 2 000. */
  readonly intervalMs?: number;
  /** Told what went wrong in a pass; the next one tries again, later and later. */
  readonly onError?: (error: unknown) => void;
}

const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/** One pass of one kind of work: asks anew where things stand, and does a bounded part of what there is to do. */
export type Pass = (signal?: AbortSignal) => Promise<unknown>;

/** Kinds of work, by name. {@link run} gives each a loop of its own, so that none holds up another; {@link round} does one pass of each in turn. */
export abstract class Rounds<T, Name extends string> {
  readonly #options: RoundsOptions;
  readonly #lastErrors = new Map<Name, unknown>();

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  protected abstract readonly passes: Readonly<Record<Name, Pass>>;

  /** One pass of everything there is to do, in order. Not to be called while {@link run} goes on. */
  abstract round(signal?: AbortSignal): Promise<T>;

  /** What went wrong in the last pass of each kind under {@link run}; null for one that went well. For readiness checks. */
  get lastErrors(): Readonly<Record<Name, unknown>> {
    const names = Object.keys(this.passes) as Name[];
    return Object.fromEntries(names.map((name) => [name, this.#lastErrors.get(name) ?? null])) as Record<Name, unknown>;
  }

  /** The first of {@link lastErrors}; null when every kind of work went well. */
  get lastError(): unknown {
    return Object.values(this.lastErrors).find((error) => error !== null) ?? null;
  }

  /** Passes until the signal aborts; then resolves once all have ended. A failing pass is told to `onError` and repeated with back-off. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = 2_000, onError = () => {} } = this.#options;
    const loops = (Object.entries(this.passes) as [Name, Pass][]).map(([name, pass]) => {
      const onRound = (error: unknown) => {
        this.#lastErrors.set(name, error);
        if (error !== null) onError(error);
      };
      return repeat(pass, { intervalMs, backoff: BACKOFF, onRound }, signal);
    });
    await Promise.all(loops);
  }
}

/** Steps that do not hold one another up: each is tried, though others fail. */
export class Attempts {
  readonly #signal: AbortSignal | undefined;
  readonly #failures: unknown[] = [];

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  /** What the step counts; 0 when it fails. Rejects only when the round is aborted. */
  async of(step: () => Promise<number>): Promise<number> {
    try {
      return await step();
    } catch (error) {
      this.#signal?.throwIfAborted();
      this.#failures.push(error);
      return 0;
    }
  }

  /** Throws what has failed, all of it. */
  end(): void {
    if (this.#failures.length > 1) throw new AggregateError(this.#failures, this.#failures.map(messageOf).join("; "));
    if (this.#failures.length === 1) throw this.#failures[0];
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
