import { randomBytes } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Actor, TenantLedger } from "../ledger/ledger.ts";
import {
  type List,
  listOf,
  type OrderedPage,
  type PageOptions,
  tablePage,
} from "../ledger/list.ts";
import { type Address, ROLES, type Role, type Uuid } from "../model.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import { decimalAmount } from "../protocol/quantized.ts";
import type { Entry } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import { readEntry } from "../store/journal.ts";
import type { MintJournalEntry } from "../store/mint-entry.ts";
import type { PersonRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireAddress, requireText, requireUuid } from "../validate.ts";
import { hashText, putNewKey, putRevoked, requireRight, SCOPES_OF } from "./api-keys.ts";
import {
  type Person,
  personView,
  type SignIns,
  secretOf,
  signInsOf,
  tellAccess,
  usable,
} from "./sign-ins.ts";

/** Most people of an application, or of the operator, who are not removed. */
const MAX_PEOPLE = 100;
/** Time to use a link: a week. */
const LINK_MS = 7 * 86_400_000;
export function peopleOf(context: EngineContext): People {
  /**
   * Changes a person who is not removed. The one who acts may change this person, or with `isOwn`
   * is this person.
   */
  const change = <T>(
    personId: Uuid,
    wait: WaitOptions | undefined,
    work: (ledger: TenantLedger, group: Group, person: PersonRecord) => T,
    isOwn = false,
  ): Promise<T> =>
    context.change((ledger, group) => {
      const person = ledger.tenants.people.named(personId, group);
      if (person === undefined || person.removedAt !== null)
        throw new MintmarkError("person_not_found");
      requireManager(
        ledger,
        group,
        context.actor,
        person.applicationIndex,
        isOwn ? person.personIndex : undefined,
      );
      return work(ledger, group, person);
    }, wait);
  return {
    invite: async ({ applicationId, role, name, address, personId }, wait) => {
      const invitation = {
        personId: personId === undefined ? uuidv7() : requireUuid("personId", personId),
        role: requireRole(applicationId === null, role),
        name: requireText("name", name, 100),
        address:
          address === undefined || address === null ? null : requireAddress("address", address),
      };
      return context.change((ledger, group) => {
        const application =
          applicationId === null ? null : ledger.tenants.application(applicationId, group);
        const applicationIndex = application?.applicationIndex ?? null;
        requireManager(ledger, group, context.actor, applicationIndex);
        if (ledger.tenants.people.named(invitation.personId, group))
          throw argumentError("personId", "is taken");
        const team = ledger.tenants.teamOf.records(applicationIndex, group);
        if (team.length >= MAX_PEOPLE) throw new MintmarkError("too_many_people");
        requireOwnWallet(team, invitation.address);
        const keyIndex = giveKey(ledger, group, applicationIndex, invitation);
        const personIndex = ledger.tenants.people.view(group).size;
        const invited = { personIndex, applicationIndex, keyIndex, ...invitation };
        const { time } = ledger.journal.record(group, { kind: "personInvited", ...invited });
        const record: PersonRecord = {
          ...invited,
          link: null,
          signIns: [],
          createdAt: time,
          signedInAt: null,
          removedAt: null,
        };
        if (invitation.address === null) return giveLink(ledger, group, record);
        return { person: putView(ledger, group, record), link: null };
      }, wait);
    },
    list: (applicationId, page = {}) =>
      listOf(context, "people", applicationId ?? "operator", page, (start, ledger) => {
        const index =
          applicationId === null
            ? null
            : ledger.tenants.application(applicationId, null).applicationIndex;
        const view = (record: PersonRecord) => personView(ledger, record, null);
        const numbers = ledger.tenants.peopleOf.numbers(index);
        return tablePage(ledger.tenants.people.durable, start, view, page.order, numbers);
      }),
    changeRole: (personId, role, wait) =>
      change(personId, wait, (ledger, group, person) => {
        const { personIndex, applicationIndex } = person;
        requireRole(applicationIndex === null, role);
        if (person.role === role) return personView(ledger, person, group);
        // A new key, because work under way keeps the rights of the key that it began with.
        takeKey(ledger, group, person);
        const keyIndex = giveKey(ledger, group, applicationIndex, { ...person, role });
        ledger.journal.record(group, { kind: "personChanged", personIndex, role, keyIndex });
        return putView(ledger, group, { ...person, role, keyIndex });
      }),
    remove: (personId, wait) =>
      change(personId, wait, (ledger, group, person) => {
        takeKey(ledger, group, person);
        const { time } = ledger.journal.record(group, {
          kind: "personRemoved",
          personIndex: person.personIndex,
        });
        const removed = { ...person, link: null, signIns: [], removedAt: time };
        const view = putView(ledger, group, removed);
        tellAccess(ledger, group, person);
        return view;
      }),
    link: (personId, wait) => change(personId, wait, giveLink),
    setAddress: async (personId, address, wait) => {
      const wallet = requireAddress("address", address);
      const set = (ledger: TenantLedger, group: Group, person: PersonRecord): Person => {
        const { personIndex, applicationIndex } = person;
        if (person.address === wallet) return personView(ledger, person, group);
        requireOwnWallet(ledger.tenants.teamOf.records(applicationIndex, group), wallet);
        ledger.journal.record(group, { kind: "personAddressed", personIndex, address: wallet });
        return putView(ledger, group, { ...person, address: wallet });
      };
      return change(personId, wait, set, true);
    },
    ...signInsOf(context),
    audit: (applicationId, page = {}) =>
      listOf(
        context,
        "audit",
        applicationId ?? "operator",
        page,
        async ({ after, limit }, ledger) => {
          const log =
            applicationId === null
              ? 0
              : ledger.tenants.application(applicationId, null).applicationIndex + 1;
          const count = ledger.tenants.auditCounts.durable.get(log)?.count ?? 0;
          // A position is the number of an entry in its log.
          const newest = Math.min(after ?? count, count) - 1;
          const numbers = Array.from({ length: Math.min(limit, newest + 1) }, (_, i) => newest - i);
          const records = await ledger.store.getMany(
            numbers.map((number) => keyOf.audit(log, number)),
          );
          const data: AuditEntry[] = [];
          for (const [i, record] of records.entries()) {
            if (record === undefined)
              throw new MintmarkError(
                "store_corrupt",
                `Act ${numbers[i]} of an audit log is missing.`,
              );
            data.push(await readAct(ledger, Number(record.readBigUInt64BE())));
          }
          return { data, next: numbers.at(-1) || null };
        },
      ),
  };
}

function requireRole(isOperators: boolean, role: Role): Role {
  const allowed = isOperators ? ["operator"] : ROLES.filter((each) => each !== "operator");
  if (!allowed.includes(role)) throw argumentError("role", `must be ${allowed.join(", ")} here`);
  return role;
}

/**
 * Throws `role_missing` when a person acts who may not change this person, or people of this
 * application.
 */
function requireManager(
  ledger: TenantLedger,
  group: Group,
  actor: Actor | null,
  applicationIndex: number | null,
  self?: number,
): void {
  if (actor === null || actor.personIndex === null || actor.personIndex === self) return;
  const by = usable(ledger, ledger.tenants.people.view(group).get(actor.personIndex), group);
  if (by.role === "operator") return;
  requireRight(by.role, "people");
  if (by.applicationIndex !== applicationIndex) throw new MintmarkError("role_missing");
}

/** Throws when the wallet belongs to another person of the team. */
function requireOwnWallet(team: readonly PersonRecord[], address: Address | null): void {
  if (address !== null && team.some((each) => each.address === address))
    throw argumentError("address", "is the wallet of another person of the team");
}

/** Issues the key under which a person's own mints are recorded; null for the operator's people. */
function giveKey(
  ledger: TenantLedger,
  group: Group,
  applicationIndex: number | null,
  { role, name }: Pick<PersonRecord, "role" | "name">,
): number | null {
  if (applicationIndex === null) return null;
  const options = {
    scopes: SCOPES_OF[role],
    expiresAt: null,
    mintQuota: null,
    name,
    ofPerson: true,
  };
  const nobodys = hashText(randomBytes(32).toString("hex"));
  return putNewKey(ledger, group, applicationIndex, options, nobodys).keyIndex;
}

function takeKey(ledger: TenantLedger, group: Group, { keyIndex }: PersonRecord): void {
  const key = keyIndex === null ? undefined : ledger.tenants.keys.view(group).get(keyIndex);
  if (key !== undefined) putRevoked(ledger, group, key);
}

function giveLink(ledger: TenantLedger, group: Group, person: PersonRecord): Invitation {
  const secret = randomBytes(32).toString("hex");
  const link = { linkHash: hashText(secret), expiresAt: ledger.journal.now(group) + LINK_MS };
  ledger.journal.record(group, { kind: "personLinked", personIndex: person.personIndex, ...link });
  return {
    person: putView(ledger, group, { ...person, link }),
    link: secretOf(person.personId, secret),
  };
}

function putView(ledger: TenantLedger, group: Group, record: PersonRecord): Person {
  ledger.tenants.people.set(group, record);
  return personView(ledger, record, group);
}

/** Input of {@link People.invite}. */
export interface NewPerson {
  /** null: of the operator. */
  readonly applicationId: Uuid | null;
  /** `operator` for the operator's people, another one for an application's. */
  readonly role: Role;
  /** 1 to 100 characters. */
  readonly name: string;
  /** The wallet that signs in. Without one the person gets a link. */
  readonly address?: Address | null | undefined;
  readonly personId?: Uuid | undefined;
}

/** A person, with the secret of the link that signs it in once. */
export interface Invitation {
  readonly person: Person;
  /** 96 hex digits. Not stored: shown once. null for a person with a wallet. */
  readonly link: string | null;
}

/**
 * The people of applications and of the operator: people, their sign-ins, and the log of what they
 * did.
 *
 * @example
 * const { link } = await engine.people.invite({ applicationId, role: "admin", name: "Ada" }); const
 * { token } = await engine.people.signIn({ link: link as string }); // null for a person with a
 * wallet const acting = await engine.actingAs(await engine.people.signedIn(token), "assets"); await
 * acting.assets.enable(applicationId, assetId);
 */
export interface People extends SignIns {
  /** Adds a person. Rejects with `application_not_found`, `too_many_people`, `role_missing`. */
  invite(person: NewPerson, wait?: WaitOptions): Promise<Invitation>;
  /** The people of an application, or for null the operator's; oldest first, with removed ones. */
  list(applicationId: Uuid | null, page?: OrderedPage): List<Person>;
  /** Rejects with `person_not_found`, `role_missing`. */
  changeRole(personId: Uuid, role: Role, wait?: WaitOptions): Promise<Person>;
  /**
   * Ends the person's sign-ins and rights for ever. Rejects with `person_not_found`,
   * `role_missing`.
   */
  remove(personId: Uuid, wait?: WaitOptions): Promise<Person>;
  /**
   * A new link, which signs the person in once within a week. Rejects with `person_not_found`,
   * `role_missing`.
   */
  link(personId: Uuid, wait?: WaitOptions): Promise<Invitation>;
  /** Sets the wallet that signs the person in. The caller has checked that it is the person's. */
  setAddress(personId: Uuid, address: Address, wait?: WaitOptions): Promise<Person>;
  /**
   * Changes and who made them, of an application, or for null of the operator; newest first, the
   * last 10,000.
   */
  audit(applicationId: Uuid | null, page?: PageOptions): List<AuditEntry>;
}

/** One change, with the one who made it. */
export interface AuditEntry {
  /** The sequence of the change in the journal. */
  readonly sequence: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** null: the operator's command line. */
  readonly personId: Uuid | null;
  readonly personName: string | null;
  /** The kind of the change in the journal, such as `keyIssued`. */
  readonly action: string;
  /** How many such changes it made at once. */
  readonly count: number;
  /**
   * The id of the changed thing: a key, an asset, a user, a webhook, a person, a mint, a
   * withdrawal, a (first) link.
   */
  readonly subject: string | null;
  /** The subject's name, or what changed; null for none. */
  readonly detail: string | null;
}

async function readAct(ledger: TenantLedger, sequence: number): Promise<AuditEntry> {
  const { entry: act } = await readEntry(ledger.store, sequence);
  if (act.kind !== "acted")
    throw new MintmarkError("store_corrupt", `Journal entry ${sequence} is no act.`);
  const { entry, time } = await readChange(ledger, sequence, act.count);
  const person =
    act.personIndex === null ? undefined : ledger.tenants.people.durable.get(act.personIndex);
  return {
    sequence: sequence - 1,
    time,
    personId: person?.personId ?? null,
    personName: person?.name ?? null,
    action: entry.kind,
    count: countOf(entry, act.count),
    ...subjectOf(ledger, entry),
  };
}

/** The tokens that a mint made, such as `12.5 PTS` or `Swords #17, and 2 more`. */
function mintText(
  ledger: TenantLedger,
  { mints: [first, ...others] }: MintJournalEntry,
): string | null {
  if (first === undefined) return null;
  const { standard, mintingBlobScheme, name, symbol, ...units } = ledger.tenants.assetAt(
    first.assetIndex,
  );
  const token =
    first.mintingBlob === "0x"
      ? symbol
      : `${name} #${tokenIdOf(standard, mintingBlobScheme, first.mintingBlob)}`;
  const text = standard === "erc721" ? token : `${decimalAmount(first.amount, units)} ${token}`;
  return others.length === 0 ? text : `${text}, and ${others.length} more`;
}

/**
 * Entries that can follow the one which names a change: an invitation's link, the metadata of a
 * mint.
 */
const FOLLOWING: ReadonlySet<string> = new Set(["personLinked", "metadataSet"]);

/** The entry that names a change of several: the last one that is more than a follower. */
async function readChange(ledger: TenantLedger, sequence: number, count: number) {
  const last = await readEntry(ledger.store, sequence - 1);
  let named = last;
  for (let i = 2; FOLLOWING.has(named.entry.kind) && i <= count; i++)
    named = await readEntry(ledger.store, sequence - i);
  return FOLLOWING.has(named.entry.kind) ? last : named;
}

function countOf(entry: Entry | MintJournalEntry, count: number): number {
  if (entry.kind === "mint") return entry.mints.length;
  if (entry.kind === "claimsCreated") return entry.claims.length;
  if (entry.kind === "metadataSet") return entry.tokens.length;
  if (entry.kind === "metadataFrozen") return entry.tokenIds.length;
  return entry.kind === "userCreated" ? count : 1;
}

type Subject = Pick<AuditEntry, "subject" | "detail">;

function subjectOf(ledger: TenantLedger, entry: Entry | MintJournalEntry): Subject {
  const named = (subject: string | undefined, detail: string | null = null) => ({
    subject: subject ?? null,
    detail,
  });
  if (entry.kind === "mint") return named(entry.mintId, mintText(ledger, entry));
  if (entry.kind === "claimsCreated") return named(entry.claims[0]?.link);
  if (entry.kind === "claimCancelled") return named(entry.link);
  if ("personIndex" in entry && entry.personIndex !== null) {
    const person = ledger.tenants.people.durable.get(entry.personIndex);
    const role = "role" in entry ? `: ${entry.role}` : "";
    return named(person?.personId, `${person?.name ?? ""}${role}`);
  }
  if ("webhookIndex" in entry) {
    const webhook = ledger.tenants.webhooks.durable.get(entry.webhookIndex);
    // Some receivers put a secret into the path.
    return named(webhook?.webhookId, webhook && new URL(webhook.url).origin);
  }
  if ("keyIndex" in entry && entry.keyIndex !== null) {
    const key = ledger.tenants.keys.durable.get(entry.keyIndex);
    return named(key?.keyId, key?.name);
  }
  if ("assetIndex" in entry || "assetId" in entry) {
    const { assets } = ledger.tenants;
    const asset =
      "assetIndex" in entry
        ? assets.durable.get(entry.assetIndex)
        : assets.named(entry.assetId, null);
    return named(asset?.assetId, asset?.name);
  }
  if ("userId" in entry) return named(entry.userId, entry.reference);
  if ("withdrawalId" in entry) return named(entry.withdrawalId);
  if ("applicationIndex" in entry && entry.applicationIndex !== null) {
    const application = ledger.tenants.applications.durable.get(entry.applicationIndex);
    return named(application?.applicationId, application?.name);
  }
  return named(undefined);
}
