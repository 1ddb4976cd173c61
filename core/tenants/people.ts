import { randomBytes } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type OrderedPage, type PageOptions, tablePage } from "../ledger/list.ts";
import { type Address, ROLES, type Role, type Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import type { MemberRecord } from "../store/records.ts";
import { requireAddress, requireText, requireUuid } from "../validate.ts";
import { putNewKey, putRevoked } from "./api-keys.ts";
import { type AuditEntry, auditLog } from "./audit.ts";
import { requireRight, SCOPES_OF } from "./roles.ts";
import {
  changeOf,
  hashText,
  type Member,
  memberView,
  type Sessions,
  secretOf,
  sessionsOf,
  tellAccess,
  usable,
} from "./sessions.ts";

/** Most members of an application, or of the operator, who are not removed. */
const MAX_MEMBERS = 100;
/** Time to use a link: a week. */
const LINK_MS = 7 * 86_400_000;
export function peopleOf(context: EngineContext): People {
  const change = changeOf(context);
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
        const view = (record: MemberRecord) => (record.applicationIndex === index ? memberView(ledger, record) : null);
        return tablePage(ledger.members, start, view, page.order);
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
    ...sessionsOf(context),
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

/**
 * The people of applications and of the operator: members, their sessions, and the log of what they did.
 *
 * @example
 * const { link } = await engine.people.invite({ applicationId, role: "admin", name: "Ada" });
 * const { token } = await engine.people.signIn({ link: link as string }); // null for a member with a wallet
 * const session = await engine.people.session(token);
 * await engine.people.act(session, "assets", () => engine.assets.enable(applicationId, assetId));
 */
export interface People extends Sessions {
  /** Adds a member. Rejects with `application_not_found`, `too_many_members`, `role_missing`. */
  invite(member: NewMember, wait?: WaitOptions): Promise<Invitation>;
  /** The members of an application, or for null the operator's; oldest first, with removed ones. */
  list(applicationId: Uuid | null, page?: OrderedPage): List<Member>;
  /** Rejects with `member_not_found`, `role_missing`. */
  changeRole(memberId: Uuid, role: Role, wait?: WaitOptions): Promise<Member>;
  /** Ends the member's sessions and rights for ever. Rejects with `member_not_found`, `role_missing`. */
  remove(memberId: Uuid, wait?: WaitOptions): Promise<Member>;
  /** A new link, which signs the member in once within a week. Rejects with `member_not_found`, `role_missing`. */
  link(memberId: Uuid, wait?: WaitOptions): Promise<Invitation>;
  /** Sets the wallet that signs the member in. The caller has checked that it is the member's. */
  setAddress(memberId: Uuid, address: Address, wait?: WaitOptions): Promise<Member>;
  /** Who did what in an application, or for null for the operator; newest first, the last 10,000 acts. */
  audit(applicationId: Uuid | null, page?: PageOptions): List<AuditEntry>;
}
