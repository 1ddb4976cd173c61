import type { Entry } from "../store/entries.ts";
import { type Group, TwoViews } from "../store/group.ts";
import { encodeEntry } from "../store/journal.ts";
import { emptyOf } from "../store/layout.ts";
import * as records from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { JournalClock } from "./journal-clock.ts";

export interface RecordedEntry {
  readonly sequence: number;
  readonly time: number;
}

/** The end of the journal, where entries are appended. */
export class JournalHead {
  readonly clock: JournalClock;
  readonly head = new TwoViews(emptyOf(records.headRecord));

  constructor(clock: JournalClock) {
    this.clock = clock;
  }

  /**
   * The time of the next entry: the clock's if it fits the journal, and never before the newest
   * entry's.
   */
  now(group: Group): number {
    const now = this.clock.now();
    const { time } = this.head.view(group);
    return now > time ? now : time;
  }

  /** Appends an entry to the journal. The caller writes the derived records in the same group. */
  record(group: Group, entry: Entry): RecordedEntry {
    const time = this.now(group);
    return this.append(group, time, encodeEntry(time, entry));
  }

  append(group: Group, time: number, record: Buffer): RecordedEntry {
    const head = this.head.view(group);
    const sequence = head.journalLength;
    group.put(keyOf.journal(sequence), record);
    this.head.put(group, { ...head, journalLength: sequence + 1, time });
    return { sequence, time };
  }
}
