import type { Clock } from "../ports.ts";

const MOST_BEHIND_MS = 60_000; // A clock that is further behind the journal than this is wrong

export interface JournalClockOptions {
  readonly clock: Clock;
  readonly monotonic: Clock | undefined; // A monotonic clock of any origin, in ms; the process's own if undefined
  readonly mostAheadMs: number; // How far the clock may be ahead of the journal, in ms
}

/** The system's clock, checked against the journal and the time since the opening. So no wrong reading does harm. */
export class JournalClock {
  readonly #options: JournalClockOptions;
  readonly #newest: number;
  readonly #opened: number;

  /** @param newest - time of the journal's newest entry, ms since 1970 */
  constructor(options: JournalClockOptions, newest: number) {
    this.#options = options;
    this.#newest = newest;
    this.#opened = options.monotonic?.() ?? performance.now();
  }

  /** For new entries and deadlines, ms since 1970: the clock's, or the journal's when the clock is too far ahead. */
  now(): number {
    const clock = this.#options.clock();
    const passed = this.#passed();
    return Math.floor(clock - passed > this.#options.mostAheadMs ? passed : clock);
  }

  /** Like {@link now}, but never behind the journal, so that no expired key revives. */
  present(): number {
    return Math.max(this.now(), Math.floor(this.#passed()));
  }

  /** A time that has certainly passed, ms since 1970. It ignores the time before the opening. */
  reached(): number {
    return Math.min(this.#options.clock(), this.#passed());
  }

  /** The clock's fault and cure, given the journal's newest time; null when the clock fits the journal. */
  fault(newest: number): string | null {
    const now = this.#options.clock();
    const ahead = now - this.#passed();
    if (ahead > this.#options.mostAheadMs)
      return `the clock is ${apart(ahead)} ahead of the journal: set it right, or allow more if nothing ran for so long`;
    if (newest - now > MOST_BEHIND_MS)
      return `the clock is ${apart(newest - now)} behind the journal's newest entry: set it right`;
    return null;
  }

  #passed(): number {
    const { monotonic } = this.#options;
    return this.#newest + (monotonic === undefined ? performance.now() : monotonic()) - this.#opened;
  }
}

function apart(ms: number): string {
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} minutes` : `${Math.round(ms / 3_600_000)} hours`;
}
