import { randomBytes, timingSafeEqual } from "node:crypto";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Actor, Ledger } from "../ledger/ledger.ts";
import type { Address, Hash, Principal, Role, Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import { MAX_SESSIONS, type MemberRecord } from "../store/records.ts";
import { requireAddress } from "../validate.ts";
import { secretHashOf } from "./api-keys.ts";
import { type Right, requireRight, rightsOf, SCOPES_OF } from "./roles.ts";

/** Lifetime of a session: half a day. */
const SESSION_MS = 12 * 3_600_000;

/**
 * The secret of a link or of a session: the member's id and 32 random bytes, in hex. Only SHA-256 of the random part is
 * stored; it is random, so no slower hash is needed.
 */
const SECRET = /^([0-9a-f]{32})([0-9a-f]{64})$/;
/** Compared with for an unknown secret, so that the answer takes as long. */
const NOBODY = randomBytes(32);

/** Runs work alone in the writer. */
export function changeOf(context: EngineContext) {
  return <T>(work: (ledger: Ledger, group: Group) => Promise<T> | T, wait?: WaitOptions): Promise<T> => {
    const { ledger } = context;
    return ledger.writer.alone(async (group) => work(ledger, group), wait?.signal);
  };
}

export function sessionsOf(context: EngineContext): Sessions {
  const change = changeOf(context);
  return {
    signIn: async (proof, wait) => {
      const { ledger } = context;
      const found = "link" in proof ? [byLink(ledger, proof.link)] : byAddress(ledger, proof);
      const [memberIndex = -1] = found;
      const secret = randomBytes(32).toString("hex");
      const sessionHash = hashText(secret);
      const byOneself = { memberIndex, applicationIndex: applicationOf(ledger, memberIndex), require: () => {} };
      const opened = await ledger.actors.run(byOneself, () =>
        change((_, group) => {
          // The link may have been used, and the member removed, since it was found.
          const again = "link" in proof ? byLink(ledger, proof.link) : memberIndex;
          const member = usable(ledger, ledger.members.latest(again));
          const expiresAt = ledger.now() + SESSION_MS;
          const session = { memberIndex, sessionHash, byLink: "link" in proof, expiresAt };
          const { time: openedAt } = ledger.record(group, { kind: "sessionOpened", ...session });
          const sessions = [...member.sessions, { sessionHash, openedAt, expiresAt }].slice(-MAX_SESSIONS);
          const link = "link" in proof ? null : member.link;
          const signedIn = { ...member, sessions, link, signedInAt: openedAt };
          ledger.putMember(group, signedIn);
          return sessionView(ledger, signedIn, expiresAt);
        }, wait),
      );
      const others = found.slice(1).map((index) => memberView(ledger, ledger.members.get(index) as MemberRecord));
      return { ...opened, token: secretOf(opened.member.memberId, secret), others };
    },
    session: async (token) => {
      const { ledger } = context;
      const { member, expiresAt } = findSession(ledger, token);
      return sessionView(ledger, member, expiresAt);
    },
    signOut: async (token, wait) => {
      const { ledger } = context;
      const { member: found, sessionHash } = findSession(ledger, token);
      const { memberIndex, applicationIndex } = found;
      await ledger.actors.run({ memberIndex, applicationIndex, require: () => {} }, () =>
        change((_, group) => {
          const member = ledger.members.latest(memberIndex);
          const sessions = member?.sessions.filter((each) => each.sessionHash !== sessionHash) ?? [];
          if (member === undefined || sessions.length === member.sessions.length) return;
          ledger.record(group, { kind: "sessionEnded", memberIndex, sessionHash });
          tellAccess(ledger, group, member);
          ledger.putMember(group, { ...member, sessions });
        }, wait),
      );
    },
    principal: async ({ member: { memberId } }, applicationId) => {
      const { ledger } = context;
      const member = usable(ledger, ledger.members.get(ledger.memberIndices.get(memberId) ?? -1));
      const own = member.applicationIndex === null ? null : ledger.applications.get(member.applicationIndex);
      const key = member.keyIndex === null ? undefined : ledger.keys.get(member.keyIndex);
      if (own && key) {
        if (applicationId !== undefined && applicationId !== own.applicationId) {
          throw new MintmarkError("role_missing", "You are not a member of this application.");
        }
        return { applicationId: own.applicationId, keyId: key.keyId, scopes: key.scopes };
      }
      if (applicationId === undefined) {
        throw new MintmarkError("role_missing", "Name an application: the operator's members belong to none.");
      }
      const named = ledger.application(applicationId);
      return { applicationId: named.applicationId, keyId: memberId, scopes: SCOPES_OF.operator };
    },
    act: async (session, right, work, applicationId) => {
      const { ledger } = context;
      const memberIndex = ledger.memberIndices.get(session.member.memberId) ?? -1;
      const named = applicationId === undefined ? null : ledger.application(applicationId).applicationIndex;
      const require = (): MemberRecord => {
        const member = usable(ledger, ledger.members.latest(memberIndex));
        requireRight(member.role, right);
        if (member.applicationIndex !== null && named !== null && member.applicationIndex !== named) {
          throw new MintmarkError("role_missing", "You are not a member of this application.");
        }
        return member;
      };
      const applicationIndex = require().applicationIndex ?? named;
      const actor: Actor = { memberIndex, applicationIndex, require: () => void require() };
      return ledger.actors.run(actor, work);
    },
    actFromCommandLine: async (work) =>
      context.ledger.actors.run({ memberIndex: null, applicationIndex: null, require: () => {} }, work),
  };
}

/** Ends open streams of ended sessions, when that is durable. */
export function tellAccess(ledger: Ledger, group: Group, { applicationIndex }: MemberRecord): void {
  const application = applicationIndex === null ? undefined : ledger.applications.latest(applicationIndex);
  group.onDurable(() => ledger.emit("access", { applicationId: application?.applicationId ?? null }));
}

export function hashText(secret: string): Hash {
  return `0x${secretHashOf(secret).toString("hex")}`;
}

export function secretOf(memberId: Uuid, secret: string): string {
  return memberId.replaceAll("-", "") + secret;
}

/** The member and the hash of a secret's random part. */
function readSecret(ledger: Ledger, secret: string): readonly [MemberRecord | undefined, Buffer] {
  const [, id = "", random = ""] = (typeof secret === "string" && SECRET.exec(secret)) || [];
  const memberId = id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  return [ledger.members.get(ledger.memberIndices.get(memberId) ?? -1), secretHashOf(random)];
}

const matches = (hash: Buffer, stored: Hash | undefined): boolean =>
  timingSafeEqual(hash, stored === undefined ? NOBODY : Buffer.from(stored.slice(2), "hex"));

/** Says how to make a new link. A used link still names its member. */
function newLink(member: MemberRecord | undefined): string {
  const command = member === undefined ? "invite" : `link ${member.memberId}`;
  return `Ask for a new one: an admin makes it on the page Team, or the operator by: mintmark members ${command}`;
}

/** The member whose link this is. Throws `credentials_invalid`, also for a used one, or `credentials_expired`. */
function byLink(ledger: Ledger, link: string): number {
  const [found, hash] = readSecret(ledger, link);
  const member = found === undefined ? undefined : ledger.members.latest(found.memberIndex);
  if (!matches(hash, member?.link?.linkHash) || !member?.link) {
    throw new MintmarkError("credentials_invalid", `This link was used, replaced or mistyped. ${newLink(member)}`);
  }
  if (member.link.expiresAt <= ledger.journalClock.present()) {
    throw new MintmarkError("credentials_expired", `This link has expired. ${newLink(member)}`);
  }
  return member.memberIndex;
}

/**
 * The usable members with this wallet, the last to sign in first: anybody can be invited by an address, so an
 * invitation must not lead its owner away from the team that it knows. Throws `credentials_invalid` for none,
 * `application_suspended` where all are of suspended applications.
 */
function byAddress(ledger: Ledger, { address, applicationId }: WalletProof): readonly number[] {
  const wallet = requireAddress("address", address);
  const named = applicationId ? ledger.application(applicationId).applicationIndex : applicationId;
  const members = [...ledger.members.values()].filter(
    (member) =>
      member.address === wallet &&
      member.removedAt === null &&
      (named === undefined || member.applicationIndex === named),
  );
  const [first] = members;
  if (first === undefined)
    throw new MintmarkError("credentials_invalid", "No member signs in with this wallet. Ask for an invitation.");
  const usual = members.filter((member) => !isSuspended(ledger, member));
  if (usual.length === 0) throw new MintmarkError("application_suspended");
  return usual.sort((a, b) => (b.signedInAt ?? 0) - (a.signedInAt ?? 0)).map(({ memberIndex }) => memberIndex);
}

function findSession(ledger: Ledger, token: string) {
  const [member, hash] = readSecret(ledger, token);
  const session = (member?.sessions ?? []).find(({ sessionHash }) => matches(hash, sessionHash));
  if (member === undefined || session === undefined) {
    matches(hash, undefined);
    throw new MintmarkError("credentials_invalid", "You are signed out. Sign in again.");
  }
  if (session.expiresAt <= ledger.journalClock.present()) {
    throw new MintmarkError("credentials_expired", "Your session has expired. Sign in again.");
  }
  return { member: usable(ledger, member), ...session };
}

/** Throws `credentials_invalid` for a removed member, `application_suspended` for one of a suspended application. */
export function usable(ledger: Ledger, member: MemberRecord | undefined): MemberRecord {
  if (member === undefined || member.removedAt !== null) {
    throw new MintmarkError("credentials_invalid", "You are no longer a member.");
  }
  if (isSuspended(ledger, member)) throw new MintmarkError("application_suspended");
  return member;
}

function isSuspended(ledger: Ledger, { applicationIndex }: MemberRecord): boolean {
  return applicationIndex !== null && ledger.applications.latest(applicationIndex)?.suspended === true;
}

function applicationOf(ledger: Ledger, memberIndex: number): number | null {
  return ledger.members.latest(memberIndex)?.applicationIndex ?? null;
}

export function memberView(ledger: Ledger, record: MemberRecord): Member {
  const { memberId, applicationIndex, role, name, address, keyIndex, createdAt, signedInAt, removedAt } = record;
  const application = applicationIndex === null ? null : ledger.applications.latest(applicationIndex);
  const key = keyIndex === null ? null : ledger.keys.latest(keyIndex);
  const applicationId = application?.applicationId ?? null;
  const applicationName = application?.name ?? null;
  const linkExpiresAt = record.link?.expiresAt ?? null;
  const times = { linkExpiresAt, createdAt, signedInAt, removedAt };
  return { memberId, applicationId, applicationName, role, name, address, keyId: key?.keyId ?? null, ...times };
}

function sessionView(ledger: Ledger, record: MemberRecord, expiresAt: number): Session {
  return { member: memberView(ledger, record), rights: rightsOf(record.role), expiresAt };
}

/** A person who works for an application, or for the operator. */
export interface Member {
  readonly memberId: Uuid;
  /** null: of the operator. */
  readonly applicationId: Uuid | null;
  readonly applicationName: string | null;
  readonly role: Role;
  readonly name: string;
  /** The wallet that signs in; null while there is none. */
  readonly address: Address | null;
  /** The key of the member's own mints and withdrawals, which no program can use; null for the operator's members. */
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

/** A signed-in member. */
export interface Session {
  readonly member: Member;
  readonly rights: readonly Right[];
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A new session with its secret. */
export interface OpenedSession extends Session {
  /** 96 hex digits. Not stored: shown once. */
  readonly token: string;
  /** The same wallet's members of other teams, which `applicationId` chooses at the next sign-in; none for a link. */
  readonly others: readonly Member[];
}

/** How members sign in, and act. */
export interface Sessions {
  /**
   * Opens a session of 12 hours by a link, or for a wallet whose signature the caller has checked. A link works once.
   * Rejects with `credentials_invalid`, `credentials_expired`, `application_suspended`.
   */
  signIn(proof: { readonly link: string } | WalletProof, wait?: WaitOptions): Promise<OpenedSession>;
  /** The session of a token. Rejects with `credentials_invalid`, `credentials_expired`, `application_suspended`. */
  session(token: string): Promise<Session>;
  /** Ends a session; rejects like {@link Sessions.session}. */
  signOut(token: string, wait?: WaitOptions): Promise<void>;
  /**
   * The caller of mints and reads. The operator's members name an application, and only read it. Rejects with
   * `role_missing`, `application_not_found`, `credentials_invalid`.
   */
  principal(session: Session, applicationId?: Uuid): Promise<Principal>;
  /**
   * Runs `work` in the name of a member. The engine checks the right now, and again in the writer before each change
   * that `work` asks for, and writes each change with the member's name to the audit log of `applicationId`, by default
   * the member's own. Rejects with `role_missing`, `credentials_invalid`, and as `work` does.
   */
  act<T>(session: Session, right: Right, work: () => Promise<T>, applicationId?: Uuid): Promise<T>;
  /** Runs `work` and writes its changes to the operator's audit log. */
  actFromCommandLine<T>(work: () => Promise<T>): Promise<T>;
}
