import type { Clock } from "../ports.ts";

const MOST_BEHIND_MS = 60_000; // A clock that is further behind the journal than this is wrong

/**
 * The system's clock, checked against the journal and the time since the opening. So no wrong
 * reading does harm.
 */
export class JournalClock {
  readonly #clock: Clock;
  readonly #monotonic: Clock;
  readonly #mostAheadMs: number;
  /**
   * Milliseconds from the monotonic clock's origin to the journal's newest entry, at the opening.
   */
  #offset = 0;

  /**
   * @param monotonic - of any origin, in ms
   * @param mostAheadMs - how far the clock may be ahead of the journal
   */
  constructor(clock: Clock, monotonic: Clock, mostAheadMs: number) {
    this.#clock = clock;
    this.#monotonic = monotonic;
    this.#mostAheadMs = mostAheadMs;
  }

  /**
   * Checks the clock from here on against a journal whose newest entry has this time, ms since
   * 1970.
   */
  start(newest: number): void {
    this.#offset = newest - this.#monotonic();
  }

  /**
   * The time of new entries and deadlines, ms since 1970: the clock's, or the journal's when the
   * clock is too far ahead.
   */
  now(): number {
    const clock = this.#clock();
    const passed = this.#passed();
    return Math.floor(clock - passed > this.#mostAheadMs ? passed : clock);
  }

  /** Like {@link now}, but never behind the journal, so that no expired key revives. */
  present(): number {
    return Math.max(this.now(), Math.floor(this.#passed()));
  }

  /** A time that has certainly passed, ms since 1970. It ignores the time before the opening. */
  reached(): number {
    return Math.min(this.#clock(), this.#passed());
  }

  /**
   * The clock's fault and cure, given the journal's newest time; null when the clock fits the
   * journal.
   */
  fault(newest: number): string | null {
    const now = this.#clock();
    const ahead = now - this.#passed();
    if (ahead > this.#mostAheadMs)
      return `the clock is ${apart(ahead)} ahead of the journal: set it right, or allow more if nothing ran for so long`;
    if (newest - now > MOST_BEHIND_MS)
      return `the clock is ${apart(newest - now)} behind the journal's newest entry: set it right`;
    return null;
  }

  #passed(): number {
    return this.#monotonic() + this.#offset;
  }
}

function apart(ms: number): string {
  return ms < 7_200_000
    ? `${Math.round(ms / 60_000)} minutes`
    : `${Math.round(ms / 3_600_000)} hours`;
}
