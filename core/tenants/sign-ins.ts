import { randomBytes } from "node:crypto";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Actor, TenantLedger } from "../ledger/ledger.ts";
import type { Address, Principal, Role, Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import { MAX_SIGN_INS, type PersonRecord } from "../store/records.ts";
import { requireAddress } from "../validate.ts";
import { hashText, isSecret, type Right, requireRight, rightsOf, SCOPES_OF } from "./api-keys.ts";

/** Lifetime of a sign-in: half a day. */
const SIGN_IN_MS = 12 * 3_600_000;

/**
 * The secret of a link or of a sign-in: the person's id and 32 random bytes, in hex. Only SHA-256
 * of the random part is stored; it is random, so no slower hash is needed.
 */
const SECRET = /^([0-9a-f]{32})([0-9a-f]{64})$/;

export function signInsOf(context: EngineContext): SignIns {
  /** The person who changes its own sign-ins. */
  const actingAs = (personIndex: number) => {
    const { applicationIndex = null } =
      context.ledger.tenants.people.durable.get(personIndex) ?? {};
    return context.actingAs({ personIndex, applicationIndex, require: () => {} });
  };
  return {
    signIn: async (proof, wait) => {
      const { ledger } = context;
      const found = "link" in proof ? [byLink(ledger, proof.link, null)] : byAddress(ledger, proof);
      const [personIndex = -1] = found;
      const secret = randomBytes(32).toString("hex");
      const tokenHash = hashText(secret);
      const opened = await actingAs(personIndex).change((_, group) => {
        // The link may have been used, and the person removed, since it was found.
        const again = "link" in proof ? byLink(ledger, proof.link, group) : personIndex;
        const person = usable(ledger, ledger.tenants.people.view(group).get(again), group);
        const expiresAt = ledger.journal.now(group) + SIGN_IN_MS;
        const signIn = { personIndex, tokenHash, byLink: "link" in proof, expiresAt };
        const { time: openedAt } = ledger.journal.record(group, {
          kind: "personSignedIn",
          ...signIn,
        });
        const signIns = [...person.signIns, { tokenHash, openedAt, expiresAt }].slice(
          -MAX_SIGN_INS,
        );
        const link = "link" in proof ? null : person.link;
        const signedIn = { ...person, signIns, link, signedInAt: openedAt };
        ledger.tenants.people.set(group, signedIn);
        return signInView(ledger, signedIn, expiresAt, group);
      }, wait);
      const { durable: people } = ledger.tenants.people;
      const others = found
        .slice(1)
        .map((index) => personView(ledger, people.get(index) as PersonRecord, null));
      return { ...opened, token: secretOf(opened.person.personId, secret), others };
    },
    signedIn: async (token) => {
      const { ledger } = context;
      const { person, expiresAt } = findSignIn(ledger, token);
      return signInView(ledger, person, expiresAt, null);
    },
    signOut: async (token, wait) => {
      const { ledger } = context;
      const { person: found, tokenHash } = findSignIn(ledger, token);
      const { personIndex } = found;
      await actingAs(personIndex).change((_, group) => {
        const person = ledger.tenants.people.view(group).get(personIndex);
        const signIns = person?.signIns.filter((each) => each.tokenHash !== tokenHash) ?? [];
        if (person === undefined || signIns.length === person.signIns.length) return;
        ledger.journal.record(group, { kind: "personSignedOut", personIndex, tokenHash });
        ledger.tenants.people.set(group, { ...person, signIns });
        tellAccess(ledger, group, person);
      }, wait);
    },
    principal: async ({ person: { personId } }, applicationId) => {
      const { ledger } = context;
      const person = usable(ledger, ledger.tenants.people.named(personId, null), null);
      const own =
        person.applicationIndex === null
          ? null
          : ledger.tenants.applications.durable.get(person.applicationIndex);
      const key =
        person.keyIndex === null ? undefined : ledger.tenants.keys.durable.get(person.keyIndex);
      if (own && key) {
        if (applicationId !== undefined && applicationId !== own.applicationId)
          throw new MintmarkError("role_missing", "You are not a person of this application.");
        return { applicationId: own.applicationId, keyId: key.keyId, scopes: key.scopes };
      }
      if (applicationId === undefined)
        throw new MintmarkError(
          "role_missing",
          "Name an application: the operator's people belong to none.",
        );
      const named = ledger.tenants.application(applicationId, null);
      return { applicationId: named.applicationId, keyId: personId, scopes: SCOPES_OF.operator };
    },
  };
}

/**
 * A signed-in person as the actor of changes. Throws `role_missing`, `credentials_invalid`,
 * `application_not_found`.
 */
export function actorOf(
  ledger: TenantLedger,
  signIn: SignIn,
  right: Right,
  applicationId?: Uuid,
): Actor {
  const personIndex = ledger.tenants.people.named(signIn.person.personId, null)?.personIndex ?? -1;
  const named =
    applicationId === undefined
      ? null
      : ledger.tenants.application(applicationId, null).applicationIndex;
  const require = (group: Group | null): PersonRecord => {
    const person = usable(ledger, ledger.tenants.people.view(group).get(personIndex), group);
    requireRight(person.role, right);
    if (person.applicationIndex !== null && named !== null && person.applicationIndex !== named)
      throw new MintmarkError("role_missing", "You are not a person of this application.");
    return person;
  };
  const applicationIndex = require(null).applicationIndex ?? named;
  return { personIndex, applicationIndex, require: (group) => void require(group) };
}

/**
 * Ends open streams of ended sign-ins, when that is durable. Called once the person is set: whoever
 * hears of it asks at once what the person may do.
 */
export function tellAccess(
  ledger: TenantLedger,
  group: Group,
  { applicationIndex }: PersonRecord,
): void {
  const application =
    applicationIndex === null
      ? undefined
      : ledger.tenants.applications.view(group).get(applicationIndex);
  group.onDurable(() =>
    ledger.services.emit("access", { applicationId: application?.applicationId ?? null }),
  );
}

export function secretOf(personId: Uuid, secret: string): string {
  return personId.replaceAll("-", "") + secret;
}

/** The person and the random part of a secret. */
function readSecret(
  ledger: TenantLedger,
  secret: string,
): readonly [PersonRecord | undefined, string] {
  const [, id = "", random = ""] = (typeof secret === "string" && SECRET.exec(secret)) || [];
  const personId = id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  return [ledger.tenants.people.named(personId, null), random];
}

/** Says how to make a new link. A used link still names its person. */
function newLink(person: PersonRecord | undefined): string {
  const command = person === undefined ? "invite" : `link ${person.personId}`;
  const typed = `npx mintmark people ${command} --store <folder>`;
  return `Ask for a new one: an admin makes it on the page Team, or the operator runs \`${typed}\`.`;
}

/**
 * The person whose link this is. Throws `credentials_invalid`, also for a used one, or
 * `credentials_expired`.
 */
function byLink(ledger: TenantLedger, link: string, group: Group | null): number {
  const [found, random] = readSecret(ledger, link);
  const person =
    found === undefined ? undefined : ledger.tenants.people.view(group).get(found.personIndex);
  if (!isSecret(random, person?.link?.linkHash) || !person?.link)
    throw new MintmarkError(
      "credentials_invalid",
      `This link was used, replaced or mistyped. ${newLink(person)}`,
    );
  if (person.link.expiresAt <= ledger.journal.clock.present())
    throw new MintmarkError("credentials_expired", `This link has expired. ${newLink(person)}`);
  return person.personIndex;
}

/**
 * The usable people with this wallet, the last to sign in first: anybody can be invited by an
 * address, so an invitation must not lead its owner away from the team that it knows. Throws
 * `credentials_invalid` for none, `application_suspended` where all are of suspended applications.
 */
function byAddress(
  ledger: TenantLedger,
  { address, applicationId }: WalletProof,
): readonly number[] {
  const wallet = requireAddress("address", address);
  const named = applicationId
    ? ledger.tenants.application(applicationId, null).applicationIndex
    : applicationId;
  const people = ledger.tenants.peopleByWallet
    .records(wallet, null)
    .filter(
      (person) =>
        person.address === wallet && (named === undefined || person.applicationIndex === named),
    );
  const [first] = people;
  if (first === undefined)
    throw new MintmarkError(
      "credentials_invalid",
      "No person signs in with this wallet. Ask for an invitation.",
    );
  const usual = people.filter((person) => !isSuspended(ledger, person, null));
  if (usual.length === 0) throw new MintmarkError("application_suspended");
  return usual
    .sort((a, b) => (b.signedInAt ?? 0) - (a.signedInAt ?? 0))
    .map(({ personIndex }) => personIndex);
}

function findSignIn(ledger: TenantLedger, token: string) {
  const [person, random] = readSecret(ledger, token);
  const signIn = (person?.signIns ?? []).find(({ tokenHash }) => isSecret(random, tokenHash));
  if (person === undefined || signIn === undefined) {
    isSecret(random, undefined);
    throw new MintmarkError("credentials_invalid", "You are signed out. Sign in again.");
  }
  if (signIn.expiresAt <= ledger.journal.clock.present())
    throw new MintmarkError("credentials_expired", "Your sign-in has expired. Sign in again.");
  return { person: usable(ledger, person, null), ...signIn };
}

/**
 * Throws `credentials_invalid` for a removed person, `application_suspended` for one of a suspended
 * application.
 */
export function usable(
  ledger: TenantLedger,
  person: PersonRecord | undefined,
  group: Group | null,
): PersonRecord {
  if (person === undefined || person.removedAt !== null)
    throw new MintmarkError("credentials_invalid", "You are no longer a person.");
  if (isSuspended(ledger, person, group)) throw new MintmarkError("application_suspended");
  return person;
}

function isSuspended(
  ledger: TenantLedger,
  { applicationIndex }: PersonRecord,
  group: Group | null,
): boolean {
  return (
    applicationIndex !== null &&
    ledger.tenants.applications.view(group).get(applicationIndex)?.suspended === true
  );
}

export function personView(
  ledger: TenantLedger,
  record: PersonRecord,
  group: Group | null,
): Person {
  const {
    personId,
    applicationIndex,
    role,
    name,
    address,
    keyIndex,
    createdAt,
    signedInAt,
    removedAt,
  } = record;
  const application =
    applicationIndex === null
      ? null
      : ledger.tenants.applications.view(group).get(applicationIndex);
  const key = keyIndex === null ? null : ledger.tenants.keys.view(group).get(keyIndex);
  const applicationId = application?.applicationId ?? null;
  const applicationName = application?.name ?? null;
  return {
    personId,
    applicationId,
    applicationName,
    role,
    name,
    address,
    keyId: key?.keyId ?? null,
    linkExpiresAt: record.link?.expiresAt ?? null,
    createdAt,
    signedInAt,
    removedAt,
  };
}

function signInView(
  ledger: TenantLedger,
  record: PersonRecord,
  expiresAt: number,
  group: Group | null,
): SignIn {
  return { person: personView(ledger, record, group), rights: rightsOf(record.role), expiresAt };
}

/** A person who works for an application, or for the operator. */
export interface Person {
  readonly personId: Uuid;
  /** null: of the operator. */
  readonly applicationId: Uuid | null;
  readonly applicationName: string | null;
  readonly role: Role;
  readonly name: string;
  /** The wallet that signs in; null while there is none. */
  readonly address: Address | null;
  /**
   * The key of the person's own mints and withdrawals, which no program can use; null for the
   * operator's people.
   */
  readonly keyId: string | null;
  /** When the unused link expires, milliseconds since 1970; null without one. */
  readonly linkExpiresAt: number | null;
  readonly createdAt: number;
  /** The last sign-in; null for none. */
  readonly signedInAt: number | null;
  readonly removedAt: number | null;
}

/** A wallet whose signature the caller has checked. */
export interface WalletProof {
  readonly address: Address;
  /** null: the operator. Default: the team to which the wallet signed in last. */
  readonly applicationId?: Uuid | null | undefined;
}

/** A signed-in person. */
export interface SignIn {
  readonly person: Person;
  readonly rights: readonly Right[];
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A new sign-in with its secret. */
export interface NewSignIn extends SignIn {
  /** 96 hex digits. Not stored: shown once. */
  readonly token: string;
  /**
   * This wallet's memberships in other teams, which `applicationId` chooses at the next sign-in;
   * none for a link.
   */
  readonly others: readonly Person[];
}

/** How people sign in. */
export interface SignIns {
  /**
   * Opens a sign-in of 12 hours by a link, or for a wallet whose signature the caller has checked.
   * A link works once. Rejects with `credentials_invalid`, `credentials_expired`,
   * `application_suspended`.
   */
  signIn(proof: { readonly link: string } | WalletProof, wait?: WaitOptions): Promise<NewSignIn>;
  /**
   * The sign-in of a token. Rejects with `credentials_invalid`, `credentials_expired`,
   * `application_suspended`.
   */
  signedIn(token: string): Promise<SignIn>;
  /** Ends a sign-in; rejects like {@link SignIns.signedIn}. */
  signOut(token: string, wait?: WaitOptions): Promise<void>;
  /**
   * The caller of mints and reads. The operator's people name an application, and only read it.
   * Rejects with `role_missing`, `application_not_found`, `credentials_invalid`.
   */
  principal(signIn: SignIn, applicationId?: Uuid): Promise<Principal>;
}
