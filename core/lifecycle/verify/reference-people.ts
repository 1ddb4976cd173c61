import type { Entry } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import { auditCountRecord, MAX_SESSIONS, type PersonRecord, personRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/** The part of the reference for people, their sessions and the audit logs. */
export class ReferencePeople {
  readonly #report: (problem: string) => void;
  readonly #people: PersonRecord[] = [];
  /** The journal sequences of the acts of each log. */
  readonly #logs = new Map<number, number[]>();

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** Applies an entry of this part; false for any other. */
  apply(entry: Entry, sequence: number, time: number): boolean {
    switch (entry.kind) {
      case "personInvited": {
        const { kind: _, ...facts } = entry;
        const fresh = { link: null, sessions: [], createdAt: time, signedInAt: null, removedAt: null };
        this.#people.push({ ...facts, ...fresh });
        return true;
      }
      case "personChanged":
        return this.#change(entry.personIndex, () => ({ role: entry.role, keyIndex: entry.keyIndex }));
      case "personRemoved":
        return this.#change(entry.personIndex, () => ({ link: null, sessions: [], removedAt: time }));
      case "personLinked": {
        const { linkHash, expiresAt } = entry;
        return this.#change(entry.personIndex, () => ({ link: { linkHash, expiresAt } }));
      }
      case "personAddressed":
        return this.#change(entry.personIndex, () => ({ address: entry.address }));
      case "sessionOpened": {
        const session = { sessionHash: entry.sessionHash, openedAt: time, expiresAt: entry.expiresAt };
        return this.#change(entry.personIndex, ({ sessions, link }) => ({
          sessions: [...sessions, session].slice(-MAX_SESSIONS),
          link: entry.byLink ? null : link,
          signedInAt: time,
        }));
      }
      case "sessionEnded":
        return this.#change(entry.personIndex, ({ sessions }) => ({
          sessions: sessions.filter(({ sessionHash }) => sessionHash !== entry.sessionHash),
        }));
      case "acted": {
        if (entry.count < 1 || entry.count >= sequence)
          this.#report(`entry ${sequence} names changes that are not there`);
        const log = entry.applicationIndex === null ? 0 : entry.applicationIndex + 1;
        const acts = this.#logs.get(log) ?? [];
        acts.push(sequence);
        this.#logs.set(log, acts);
        return true;
      }
      default:
        return false;
    }
  }

  finish(): Expected[] {
    return [
      ...this.#people.map((record, i) =>
        expectedRecord(keys.personKey(i), encodeRecord(personRecord, record), `person ${record.personId}`),
      ),
      ...[...this.#logs].flatMap(([log, acts]) => {
        const count = encodeRecord(auditCountRecord, { log, count: acts.length });
        return [
          expectedRecord(keys.auditCountKey(log), count, `the length of audit log ${log}`),
          ...acts.map((sequence, i) => {
            const act = keys.journalKey(sequence).subarray(1);
            return expectedRecord(keys.auditKey(log, i), act, `act ${i} of audit log ${log}`);
          }),
        ];
      }),
    ];
  }

  #change(personIndex: number, change: (person: PersonRecord) => Partial<PersonRecord>): true {
    const person = this.#people[personIndex];
    if (person === undefined) this.#report(`the journal changes a person ${personIndex} that it never created`);
    else this.#people[personIndex] = { ...person, ...change(person) };
    return true;
  }
}
