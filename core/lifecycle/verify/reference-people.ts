import type { Entry } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import { auditCountRecord, MAX_SESSIONS, type MemberRecord, memberRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/** The part of the reference for members, their sessions and the audit logs. */
export class ReferencePeople {
  readonly #report: (problem: string) => void;
  readonly #members: MemberRecord[] = [];
  /** The journal sequences of the acts of each log. */
  readonly #logs = new Map<number, number[]>();

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** Applies an entry of this part; false for any other. */
  apply(entry: Entry, sequence: number, time: number): boolean {
    switch (entry.kind) {
      case "memberInvited": {
        const { kind: _, ...facts } = entry;
        const fresh = { link: null, sessions: [], createdAt: time, signedInAt: null, removedAt: null };
        this.#members.push({ ...facts, ...fresh });
        return true;
      }
      case "memberChanged":
        return this.#change(entry.memberIndex, () => ({ role: entry.role, keyIndex: entry.keyIndex }));
      case "memberRemoved":
        return this.#change(entry.memberIndex, () => ({ link: null, sessions: [], removedAt: time }));
      case "memberLinked": {
        const { linkHash, expiresAt } = entry;
        return this.#change(entry.memberIndex, () => ({ link: { linkHash, expiresAt } }));
      }
      case "memberAddressed":
        return this.#change(entry.memberIndex, () => ({ address: entry.address }));
      case "sessionOpened": {
        const session = { sessionHash: entry.sessionHash, openedAt: time, expiresAt: entry.expiresAt };
        return this.#change(entry.memberIndex, ({ sessions, link }) => ({
          sessions: [...sessions, session].slice(-MAX_SESSIONS),
          link: entry.byLink ? null : link,
          signedInAt: time,
        }));
      }
      case "sessionEnded":
        return this.#change(entry.memberIndex, ({ sessions }) => ({
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
      ...this.#members.map((record, i) =>
        expectedRecord(keys.memberKey(i), encodeRecord(memberRecord, record), `member ${record.memberId}`),
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

  #change(memberIndex: number, change: (member: MemberRecord) => Partial<MemberRecord>): true {
    const member = this.#members[memberIndex];
    if (member === undefined) this.#report(`the journal changes a member ${memberIndex} that it never created`);
    else this.#members[memberIndex] = { ...member, ...change(member) };
    return true;
  }
}
