import { auditCountRecord, MAX_SESSIONS, type PersonRecord, personRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { factsOf, type Handlers, Kept, Part } from "./reference-records.ts";

/** The part of the reference for people, their sessions and the audit logs. */
export class ReferencePeople extends Part {
  readonly #people = new Kept(this.out, "person", keys.personKey, personRecord);
  /** The number of acts of each log. */
  readonly #logs = new Map<number, number>();

  readonly on = {
    personInvited: (entry) => {
      const fresh = { link: null, sessions: [], createdAt: this.out.time, signedInAt: null, removedAt: null };
      this.#people.set(this.#people.size, { ...factsOf(entry), ...fresh });
    },
    personChanged: ({ personIndex, role, keyIndex }) => this.#people.change(personIndex, { role, keyIndex }),
    personRemoved: ({ personIndex }) =>
      this.#people.change(personIndex, { link: null, sessions: [], removedAt: this.out.time }),
    personLinked: ({ personIndex, linkHash, expiresAt }) =>
      this.#people.change(personIndex, { link: { linkHash, expiresAt } }),
    personAddressed: ({ personIndex, address }) => this.#people.change(personIndex, { address }),
    sessionOpened: ({ personIndex, sessionHash, byLink, expiresAt }) => {
      const { sessions = [], link = null } = this.#people.get(personIndex) ?? {};
      const opened = [...sessions, { sessionHash, openedAt: this.out.time, expiresAt }].slice(-MAX_SESSIONS);
      const change = { sessions: opened, link: byLink ? null : link, signedInAt: this.out.time };
      this.#people.change(personIndex, change);
    },
    sessionEnded: ({ personIndex, sessionHash: ended }) => {
      const { sessions = [] }: Partial<PersonRecord> = this.#people.get(personIndex) ?? {};
      this.#people.change(personIndex, { sessions: sessions.filter(({ sessionHash }) => sessionHash !== ended) });
    },
    acted: ({ applicationIndex, count }) => {
      const { sequence } = this.out;
      if (count < 1 || count >= sequence) this.out.report(`entry ${sequence} names changes that are not there`);
      const log = applicationIndex === null ? 0 : applicationIndex + 1;
      const acts = this.#logs.get(log) ?? 0;
      this.out.index(keys.auditKey(log, acts), `act ${acts} of audit log ${log}`);
      this.#logs.set(log, acts + 1);
    },
  } satisfies Handlers;

  finish(): void {
    this.#people.finish();
    for (const [log, count] of this.#logs)
      this.out.put(keys.auditCountKey(log), auditCountRecord, { log, count }, `the length of audit log ${log}`);
  }
}
