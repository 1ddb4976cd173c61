import { type Backoff, repeat } from "../backoff.ts";
import { type VoidedDuplicate, type VoidingPortal, voidDuplicates } from "./duplicates.ts";
import { type FollowedChain, type FollowOptions, follow } from "./follow.ts";

/** What a watcher follows and does. */
export interface WatcherOptions extends Omit<FollowOptions, "toBlock" | "signal"> {
  readonly l1: FollowedChain & VoidingPortal;
  /** Milliseconds between rounds; default 12 000, a block of Ethereum. */
  readonly intervalMs?: number;
  /** What a round does once the archive is in step; it returns how much there was to do. Default: voids ERC-721 duplicates. */
  readonly work?: (signal?: AbortSignal) => Promise<number>;
  readonly onVoided?: (voided: VoidedDuplicate) => void;
  /** Told what went wrong in a round; the next one tries again, later and later. */
  readonly onError?: (error: unknown) => void;
}

const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/**
 * Keeps an archive in step with L1 and voids ERC-721 duplicates. What every committee member does; anyone else may
 * do it too.
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

  /** What went wrong in the last round; null when it went well. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** One pass. Returns what its work returns. */
  async round(signal?: AbortSignal): Promise<number> {
    const { archive, l1, onVoided, work } = this.#options;
    await follow({ ...this.#options, ...(signal && { signal }) });
    if (work !== undefined) return work(signal);
    return voidDuplicates({ archive, portal: l1, ...(onVoided && { onVoided }), ...(signal && { signal }) });
  }

  /** Rounds until the signal aborts; then resolves. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = 12_000, onError = () => {} } = this.#options;
    const onRound = (error: unknown) => {
      this.#lastError = error;
      if (error !== null) onError(error);
    };
    return repeat((aborted) => this.round(aborted), { intervalMs, backoff: BACKOFF, onRound }, signal);
  }
}
