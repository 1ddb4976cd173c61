import { randomBytes, timingSafeEqual } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Actor, Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, tablePage } from "../ledger/list.ts";
import { type Address, type Hash, type Principal, ROLES, type Role, type Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import { MAX_SESSIONS, type MemberRecord } from "../store/records.ts";
import { requireAddress, requireText, requireUuid } from "../validate.ts";
import { putNewKey, putRevoked, secretHashOf } from "./api-keys.ts";
import { type AuditEntry, auditLog } from "./audit.ts";
import { type Right, requireRight, rightsOf, SCOPES_OF } from "./roles.ts";

/** Most members of an application, or of the operator, who are not removed. */
const MAX_MEMBERS = 100;
/** Time to use a link: a week. */
const LINK_MS = 7 * 86_400_000;
/** Lifetime of a session: half a day. */
const SESSION_MS = 12 * 3_600_000;

/**
 * The secret of a link or of a session: the member's id and 32 random bytes, in hex. Only SHA-256 of the random part is
 * stored; it is random, so no slower hash is needed.
 */
const SECRET = /^([0-9a-f]{32})([0-9a-f]{64})$/;
/** Compared with for an unknown secret, so that the answer takes as long. */
const NOBODY = randomBytes(32);

export function peopleOf(context: EngineContext): People {
  const change = <T>(work: (ledger: Ledger, group: Group) => Promise<T> | T, wait?: WaitOptions): Promise<T> => {
    const { ledger } = context;
    return ledger.writer.alone(async (group) => work(ledger, group), wait?.signal);
  };
  return {
    invite: async ({ applicationId, role, name, address, memberId }, wait) => {
      const facts = {
        memberId: memberId === undefined ? uuidv7() : requireUuid("memberId", memberId),
        role: requireRole(applicationId, role),
        name: requireText("name", name, 100),
        address: address === undefined || address === null ? null : requireAddress("address", address),
      };
      return change((ledger, group) => {
        const application = applicationId === null ? null : ledger.latestApplication(applicationId);
        const applicationIndex = application?.applicationIndex ?? null;
        requireManager(ledger, applicationIndex);
        if (ledger.memberIndices.has(facts.memberId)) {
          throw new MintmarkError("validation_failed", "memberId is taken");
        }
        const team = teamOf(ledger, applicationIndex);
        if (team.length >= MAX_MEMBERS) throw new MintmarkError("too_many_members");
        requireOwnWallet(team, facts.address);
        const keyIndex = giveKey(ledger, group, applicationIndex, facts);
        const memberIndex = ledger.members.latestCount;
        const invited = { memberIndex, applicationIndex, keyIndex, ...facts };
        const { time } = ledger.record(group, { kind: "memberInvited", ...invited });
        const fresh = { link: null, sessions: [], createdAt: time, signedInAt: null, removedAt: null };
        const record: MemberRecord = { ...invited, ...fresh };
        if (facts.address === null) return giveLink(ledger, group, record);
        ledger.putMember(group, record);
        return { member: memberView(ledger, record), link: null };
      }, wait);
    },
    list: (applicationId, page = {}) =>
      listOf(context, "members", applicationId ?? "operator", page, (start) => {
        const { ledger } = context;
        const index = applicationId === null ? null : ledger.application(applicationId).applicationIndex;
        return tablePage(ledger.members, start, (record) =>
          record.applicationIndex === index ? memberView(ledger, record) : null,
        );
      }),
    changeRole: (memberId, role, wait) =>
      change((ledger, group) => {
        const member = requireMember(ledger, memberId);
        const { memberIndex, applicationIndex } = member;
        requireManager(ledger, applicationIndex);
        const application = applicationIndex === null ? null : ledger.applications.latest(applicationIndex);
        requireRole(application?.applicationId ?? null, role);
        if (member.role === role) return memberView(ledger, member);
        // A new key, because work under way keeps the rights of the key that it began with.
        takeKey(ledger, group, member);
        const keyIndex = giveKey(ledger, group, applicationIndex, { ...member, role });
        ledger.record(group, { kind: "memberChanged", memberIndex, role, keyIndex });
        return putView(ledger, group, { ...member, role, keyIndex });
      }, wait),
    remove: (memberId, wait) =>
      change((ledger, group) => {
        const member = requireMember(ledger, memberId);
        requireManager(ledger, member.applicationIndex);
        takeKey(ledger, group, member);
        const { time } = ledger.record(group, { kind: "memberRemoved", memberIndex: member.memberIndex });
        tellAccess(ledger, group, member);
        return putView(ledger, group, { ...member, link: null, sessions: [], removedAt: time });
      }, wait),
    link: (memberId, wait) =>
      change((ledger, group) => {
        const member = requireMember(ledger, memberId);
        requireManager(ledger, member.applicationIndex);
        return giveLink(ledger, group, member);
      }, wait),
    setAddress: (memberId, address, wait) => {
      const wallet = requireAddress("address", address);
      return change((ledger, group) => {
        const member = requireMember(ledger, memberId);
        const { memberIndex, applicationIndex } = member;
        requireManager(ledger, applicationIndex, memberIndex);
        if (member.address === wallet) return memberView(ledger, member);
        requireOwnWallet(teamOf(ledger, applicationIndex), wallet);
        ledger.record(group, { kind: "memberAddressed", memberIndex, address: wallet });
        return putView(ledger, group, { ...member, address: wallet });
      }, wait);
    },
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
    audit: (applicationId, page = {}) => auditLog(context, applicationId, page),
  };
}

function requireRole(applicationId: Uuid | null, role: Role): Role {
  const allowed = applicationId === null ? ["operator"] : ROLES.filter((each) => each !== "operator");
  if (!allowed.includes(role)) {
    throw new MintmarkError("validation_failed", `role must be ${allowed.join(", ")} here`);
  }
  return role;
}

/** Throws `role_missing` when a member acts who may not change this member, or members of this application. */
function requireManager(ledger: Ledger, applicationIndex: number | null, self?: number): void {
  const actor = ledger.actors.getStore();
  if (actor === undefined || actor.memberIndex === null || actor.memberIndex === self) return;
  const by = usable(ledger, ledger.members.latest(actor.memberIndex));
  if (by.role === "operator") return;
  requireRight(by.role, "members");
  if (by.applicationIndex !== applicationIndex) throw new MintmarkError("role_missing");
}

function requireMember(ledger: Ledger, memberId: Uuid): MemberRecord {
  const member = ledger.members.latest(ledger.memberIndices.get(String(memberId).toLowerCase()) ?? -1);
  if (member === undefined || member.removedAt !== null) throw new MintmarkError("member_not_found");
  return member;
}

/** The members of an application, or for null the operator's, who are not removed. */
function teamOf(ledger: Ledger, applicationIndex: number | null): MemberRecord[] {
  return [...ledger.members.latestValues()].filter(
    (each) => each.applicationIndex === applicationIndex && each.removedAt === null,
  );
}

/** Throws when the wallet belongs to another member of the team. */
function requireOwnWallet(team: readonly MemberRecord[], address: Address | null): void {
  if (address !== null && team.some((each) => each.address === address)) {
    throw new MintmarkError("validation_failed", "A member with this wallet exists already.");
  }
}

/** Issues the key under which a member's own mints are recorded; null for the operator's members. */
function giveKey(
  ledger: Ledger,
  group: Group,
  applicationIndex: number | null,
  { role, name }: Pick<MemberRecord, "role" | "name">,
): number | null {
  if (applicationIndex === null) return null;
  const options = { scopes: SCOPES_OF[role], expiresAt: null, mintQuota: null, name, ofMember: true };
  return putNewKey(ledger, group, applicationIndex, options, randomBytes(32).toString("hex")).keyIndex;
}

function takeKey(ledger: Ledger, group: Group, { keyIndex }: MemberRecord): void {
  const key = keyIndex === null ? undefined : ledger.keys.latest(keyIndex);
  if (key !== undefined) putRevoked(ledger, group, key);
}

/** Ends open streams of ended sessions, when that is durable. */
function tellAccess(ledger: Ledger, group: Group, { applicationIndex }: MemberRecord): void {
  const application = applicationIndex === null ? undefined : ledger.applications.latest(applicationIndex);
  group.onDurable(() => ledger.emit("access", { applicationId: application?.applicationId ?? null }));
}

function giveLink(ledger: Ledger, group: Group, member: MemberRecord): Invitation {
  const secret = randomBytes(32).toString("hex");
  const link = { linkHash: hashText(secret), expiresAt: ledger.now() + LINK_MS };
  ledger.record(group, { kind: "memberLinked", memberIndex: member.memberIndex, ...link });
  return { member: putView(ledger, group, { ...member, link }), link: secretOf(member.memberId, secret) };
}

function putView(ledger: Ledger, group: Group, record: MemberRecord): Member {
  ledger.putMember(group, record);
  return memberView(ledger, record);
}

function hashText(secret: string): Hash {
  return `0x${secretHashOf(secret).toString("hex")}`;
}

function secretOf(memberId: Uuid, secret: string): string {
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

/** The member whose link this is. Throws `credentials_invalid`, also for a used one, or `credentials_expired`. */
function byLink(ledger: Ledger, link: string): number {
  const [found, hash] = readSecret(ledger, link);
  const member = found === undefined ? undefined : ledger.members.latest(found.memberIndex);
  if (!matches(hash, member?.link?.linkHash) || !member?.link) {
    throw new MintmarkError("credentials_invalid", "This link was used, replaced or mistyped. Ask for a new one.");
  }
  if (member.link.expiresAt <= ledger.journalClock.present()) {
    throw new MintmarkError("credentials_expired", "This link has expired. Ask for a new one.");
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
function usable(ledger: Ledger, member: MemberRecord | undefined): MemberRecord {
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

function memberView(ledger: Ledger, record: MemberRecord): Member {
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

/** Input of {@link People.invite}. */
export interface NewMember {
  /** null: of the operator. */
  readonly applicationId: Uuid | null;
  /** `operator` for the operator's members, another one for an application's. */
  readonly role: Role;
  /** 1 to 100 characters. */
  readonly name: string;
  /** The wallet that signs in. Without one the member gets a link. */
  readonly address?: Address | null | undefined;
  readonly memberId?: Uuid | undefined;
}

/** A member, with the secret of the link that signs it in once. */
export interface Invitation {
  readonly member: Member;
  /** 96 hex digits. Not stored: shown once. null for a member with a wallet. */
  readonly link: string | null;
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

/**
 * The people of applications and of the operator: members, their sessions, and the log of what they did.
 *
 * @example
 * const { link } = await engine.people.invite({ applicationId, role: "admin", name: "Ada" });
 * const { token } = await engine.people.signIn({ link });
 * const session = await engine.people.session(token);
 * await engine.people.act(session, "assets", () => engine.assets.enable(applicationId, assetId));
 */
export interface People {
  /** Adds a member. Rejects with `application_not_found`, `too_many_members`, `role_missing`. */
  invite(member: NewMember, wait?: WaitOptions): Promise<Invitation>;
  /** The members of an application, or for null the operator's; oldest first, with removed ones. */
  list(applicationId: Uuid | null, page?: PageOptions): List<Member>;
  /** Rejects with `member_not_found`, `role_missing`. */
  changeRole(memberId: Uuid, role: Role, wait?: WaitOptions): Promise<Member>;
  /** Ends the member's sessions and rights for ever. Rejects with `member_not_found`, `role_missing`. */
  remove(memberId: Uuid, wait?: WaitOptions): Promise<Member>;
  /** A new link, which signs the member in once within a week. Rejects with `member_not_found`, `role_missing`. */
  link(memberId: Uuid, wait?: WaitOptions): Promise<Invitation>;
  /** Sets the wallet that signs the member in. The caller has checked that it is the member's. */
  setAddress(memberId: Uuid, address: Address, wait?: WaitOptions): Promise<Member>;
  /**
   * Opens a session of 12 hours by a link, or for a wallet whose signature the caller has checked. A link works once.
   * Rejects with `credentials_invalid`, `credentials_expired`, `application_suspended`.
   */
  signIn(proof: { readonly link: string } | WalletProof, wait?: WaitOptions): Promise<OpenedSession>;
  /** The session of a token. Rejects with `credentials_invalid`, `credentials_expired`, `application_suspended`. */
  session(token: string): Promise<Session>;
  /** Ends a session; rejects like {@link People.session}. */
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
  /** Who did what in an application, or for null for the operator; newest first, the last 10,000 acts. */
  audit(applicationId: Uuid | null, page?: PageOptions): List<AuditEntry>;
}
