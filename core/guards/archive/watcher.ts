import { type Backoff, repeat } from "../../backoff.ts";
import { type VoidedDuplicate, type VoidingPortal, voidDuplicates } from "./duplicates.ts";
import { type FollowedChain, type FollowOptions, follow } from "./follow.ts";

/** Options of a {@link Watcher}. */
export interface WatcherOptions extends Omit<FollowOptions, "toBlock" | "signal"> {
  readonly l1: FollowedChain & VoidingPortal;
  /** Milliseconds between rounds; default 12,000, one block of Ethereum. */
  readonly intervalMs?: number;
  /** The work of a round after following L1. Returns the number of things done. Default: voids ERC-721 duplicates. */
  readonly work?: (signal?: AbortSignal) => Promise<number>;
  readonly onVoided?: (voided: VoidedDuplicate) => void;
  /** Called with the error of a failed round. The delay before the next round grows. */
  readonly onError?: (error: unknown) => void;
}

const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/**
 * Keeps an archive up to date with L1 and voids ERC-721 duplicates. Every committee member runs one; anyone else may.
 *
 * @example
 * await new Watcher({ archive, l1, fromBlock }).run(signal);
 */
export class Watcher {
  readonly #options: WatcherOptions;
  #lastError: unknown = null;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  /** The error of the last round; null when it succeeded. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** One round. Returns the result of its work. */
  async round(signal?: AbortSignal): Promise<number> {
    const { archive, l1, onVoided, work } = this.#options;
    await follow({ ...this.#options, ...(signal && { signal }) });
    if (work !== undefined) return work(signal);
    return voidDuplicates({ archive, portal: l1, ...(onVoided && { onVoided }), ...(signal && { signal }) });
  }

  /** Runs rounds until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = 12_000, onError = () => {} } = this.#options;
    const onRound = (error: unknown) => {
      this.#lastError = error;
      if (error !== null) onError(error);
    };
    return repeat((aborted) => this.round(aborted), { intervalMs, backoff: BACKOFF, onRound }, signal);
  }
}
