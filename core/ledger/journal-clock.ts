import type { Clock } from "../ports.ts";

/** A clock that a step of the system's time leaves this far behind the journal is wrong. */
const MOST_BEHIND_MS = 60_000;

export interface JournalClockOptions {
  readonly clock: Clock;
  /** Milliseconds of any origin that only grow. */
  readonly monotonic: Clock;
  /** How far the clock may be ahead of the journal, in milliseconds. */
  readonly mostAheadMs: number;
}

/**
 * The system's clock, held against the time of the journal's newest entry at opening and the milliseconds that have passed since. One
 * wrong reading neither dates an entry far into the future nor makes anything expire.
 */
export class JournalClock {
  readonly #options: JournalClockOptions;
  readonly #newest: number;
  readonly #opened: number;

  /** @param newest - time of the journal's newest entry, ms since 1970 */
  constructor(options: JournalClockOptions, newest: number) {
    this.#options = options;
    this.#newest = newest;
    this.#opened = options.monotonic();
  }

  /** The time for a new entry and for deadlines, ms since 1970: the clock's, or the journal's own when the clock is too far ahead. */
  now(): number {
    return Math.floor(this.#tooFarAhead() ? this.#passed() : this.#options.clock());
  }

  /** The time by which keys expire, ms since 1970: as {@link now}, but a clock that is behind the journal revives none. */
  present(): number {
    return Math.max(this.now(), Math.floor(this.#passed()));
  }

  /** A time that has certainly been reached, ms since 1970: what was down before the opening does not count. */
  reached(): number {
    return Math.min(this.#options.clock(), this.#passed());
  }

  /**
   * What is wrong with the clock and what to do; null when it fits the journal.
   *
   * @param newest - time of the journal's newest entry now
   */
  fault(newest: number): string | null {
    const now = this.#options.clock();
    if (this.#tooFarAhead()) {
      return `the clock is ${apart(now - this.#passed())} ahead of the journal: set it right, or allow more if nothing ran for so long`;
    }
    if (newest - now > MOST_BEHIND_MS) {
      return `the clock is ${apart(newest - now)} behind the journal's newest entry: set it right`;
    }
    return null;
  }

  /** The time of the newest entry at opening, and what has passed since. */
  #passed(): number {
    return this.#newest + this.#options.monotonic() - this.#opened;
  }

  #tooFarAhead(): boolean {
    return this.#options.clock() - this.#passed() > this.#options.mostAheadMs;
  }
}

function apart(ms: number): string {
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} minutes` : `${Math.round(ms / 3_600_000)} hours`;
}
