import { type Backoff, repeat } from "../backoff.ts";

/** How rounds follow one another. */
export interface RoundsOptions {
  /** Milliseconds between rounds; default 2 000. */
  readonly intervalMs?: number;
  /** Told what went wrong in a round; the next one tries again, later and later. */
  readonly onError?: (error: unknown) => void;
}

const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/** Work that is done in rounds, each of which asks anew where things stand. */
export abstract class Rounds<T> {
  readonly #options: RoundsOptions;
  #lastError: unknown = null;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** One pass of everything there is to do. */
  abstract round(signal?: AbortSignal): Promise<T>;

  /** What went wrong in the last round of {@link run}; null when it went well. For readiness checks. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** Rounds until the signal aborts; then resolves. A failing round is told to `onError` and repeated with back-off. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = 2_000, onError = () => {} } = this.#options;
    const onRound = (error: unknown) => {
      this.#lastError = error;
      if (error !== null) onError(error);
    };
    return repeat((aborted) => this.round(aborted), { intervalMs, backoff: BACKOFF, onRound }, signal);
  }
}

/** Steps of a round that do not hold one another up: each is tried, though others fail. */
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
