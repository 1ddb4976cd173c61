import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { argumentError, type Issue, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { TenantLedger } from "../ledger/ledger.ts";
import {
  type List,
  listOf,
  type OrderedPage,
  type PageEntries,
  type PageStart,
} from "../ledger/list.ts";
import type { CachedUser } from "../ledger/user-cache.ts";
import { findUser, readUsers } from "../ledger/user-records.ts";
import { type Address, MAX_REFERENCE, type User, type Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { ownerRecord, userIdRecord, userRecord } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { requireAddress, requireText, requireUuid } from "../validate.ts";

/** Most users created at once. */
export const MAX_NEW_USERS = 1_000;

type UserFacts = Pick<CachedUser, "userIndex" | "userId" | "ownerAddress">;

/** The key that finds a user by id, or by the address of its owner. */
export function recipientKey(applicationIndex: number, recipient: Uuid | Address): Buffer {
  return isOwner(recipient)
    ? keyOf.owner(recipient, applicationIndex)
    : keyOf.userId(applicationIndex, recipient);
}

/** The facts in the record under {@link recipientKey}. */
export function recipientOf(recipient: Uuid | Address, record: Buffer): UserFacts {
  const name = `User ${recipient}`;
  return isOwner(recipient)
    ? { ...decodeRecord(ownerRecord, record, name), ownerAddress: recipient }
    : { ...decodeRecord(userIdRecord, record, name), userId: recipient };
}

export function isOwner(recipient: Uuid | Address): recipient is Address {
  return recipient.startsWith("0x");
}

/**
 * Creates a user. The caller has checked that the id is free, and whether the owner has another
 * user.
 */
export function putUser(
  ledger: TenantLedger,
  group: Group,
  applicationIndex: number,
  { userId, ownerAddress, reference }: Omit<User, "createdAt">,
  isFirst: boolean,
): UserFacts {
  const { head } = ledger.journal;
  const { userCount: userIndex } = head.view(group);
  const { time: createdAt } = ledger.journal.record(group, {
    kind: "userCreated",
    applicationIndex,
    userIndex,
    userId,
    ownerAddress,
    reference,
  });
  head.put(group, { ...head.view(group), userCount: userIndex + 1 });
  group.stage(
    keyOf.userId(applicationIndex, userId),
    encodeRecord(userIdRecord, { userIndex, ownerAddress }),
  );
  const record = { userId, ownerAddress, createdAt, reference };
  group.put(keyOf.user(applicationIndex, userIndex), encodeRecord(userRecord, record));
  const owned = encodeRecord(ownerRecord, { userIndex, userId });
  if (isFirst) {
    group.stage(keyOf.owner(ownerAddress, applicationIndex), owned);
    group.onDurable(() => ledger.tenants.claimDeposits(ownerAddress));
  } else group.put(keyOf.ownerUser(ownerAddress, applicationIndex, userIndex), owned);
  if (reference !== null)
    group.put(keyOf.userReference(applicationIndex, reference, userIndex), Buffer.from([1]));
  const user = { userIndex, userId, ownerAddress };
  ledger.tenants.users.remember(applicationIndex, userId, user);
  if (isFirst) ledger.tenants.users.remember(applicationIndex, ownerAddress, user);
  return user;
}

/** A requested user; without an id, the owner's first user or a new one. */
interface AskedUser {
  readonly userId: Uuid | null;
  readonly ownerAddress: Address;
  readonly reference: string | null;
}

function askedUser({ userId, ownerAddress, reference }: NewUser): AskedUser {
  return {
    userId: userId === undefined ? null : requireUuid("userId", userId),
    ownerAddress: requireAddress("ownerAddress", ownerAddress),
    reference: reference == null ? null : requireText("reference", reference, MAX_REFERENCE),
  };
}

/**
 * Finds or creates users, all or none. Resolves with them in their order.
 *
 * @param refuse - called with the positions of users whose ids have other owners, and with the
 *   first one's owner; throws
 */
async function findOrCreate(
  { ledger, writer }: EngineContext,
  applicationId: Uuid,
  asked: readonly AskedUser[],
  refuse: (positions: readonly number[], owner: Address) => never,
  signal?: AbortSignal,
): Promise<User[]> {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const keysOf = ({ userId, ownerAddress }: AskedUser) => [
    keyOf.owner(ownerAddress, applicationIndex),
    ...(userId === null ? [] : [keyOf.userId(applicationIndex, userId)]),
  ];
  const named = asked.flatMap(keysOf);
  const indices = await writer.run<number[]>(
    {
      weight: asked.length,
      keys: () => named,
      apply(group, stored) {
        // `stored` stays as read. The users of this transition are in the group.
        const known = new Map(named.map((key, i) => [key.toString("latin1"), stored[i]]));
        const find = (recipient: Uuid | Address): UserFacts | null => {
          const key = recipientKey(applicationIndex, recipient);
          const record = group.resolve(key, known.get(key.toString("latin1")));
          return record === undefined ? null : recipientOf(recipient, record);
        };
        const owners = new Map<Uuid, Address>();
        const wrong = asked.flatMap(({ userId, ownerAddress }, i) => {
          if (userId === null) return [];
          const owner = find(userId)?.ownerAddress ?? owners.get(userId) ?? ownerAddress;
          owners.set(userId, owner);
          return owner === ownerAddress ? [] : [i];
        });
        const [first] = wrong;
        if (first !== undefined) refuse(wrong, owners.get(asked[first]?.userId ?? "") as Address);
        return asked.map(({ userId, ownerAddress, reference }) => {
          const first = find(ownerAddress);
          const found = userId === null ? first : find(userId);
          const made = { userId: userId ?? uuidv7(), ownerAddress, reference };
          return (found ?? putUser(ledger, group, applicationIndex, made, first === null))
            .userIndex;
        });
      },
    },
    signal,
  );
  return readUsers(ledger, applicationIndex, indices);
}

export async function createUser(
  context: EngineContext,
  applicationId: Uuid,
  user: NewUser,
  signal?: AbortSignal,
) {
  const asked = askedUser({ ...user, userId: user.userId ?? uuidv7() });
  const refuse = (_: readonly number[], owner: Address): never => {
    throw new MintmarkError("user_exists", `The user of this id has the owner address ${owner}.`);
  };
  const [created] = await findOrCreate(context, applicationId, [asked], refuse, signal);
  return created as User;
}

/** A page of the users of an owner, of a reference, or of all. */
async function userPage(
  ledger: TenantLedger,
  applicationId: Uuid,
  { ownerAddress, reference, order }: UserFilter,
  { after, limit }: PageStart,
): Promise<PageEntries<User>> {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  /** The key of a user in the index; without one, their prefix. */
  const keyAt = (...user: [] | [userIndex: number]): Buffer => {
    if (ownerAddress !== undefined)
      return prefixOf.ownerUser(ownerAddress, applicationIndex, ...user);
    if (reference !== undefined)
      return prefixOf.userReference(applicationIndex, reference, ...user);
    return prefixOf.user(applicationIndex, ...user);
  };
  const prefix = keyAt();
  const reverse = order === "desc";
  const start = after === null || reverse ? { gte: prefix } : { gt: keyAt(after) };
  const end = after === null || !reverse ? endOf(prefix) : keyAt(after);
  const indices: number[] = [];
  for await (const [key, record] of ledger.store.entries({
    ...start,
    lt: end,
    reverse,
    limit: limit + 1,
  })) {
    const isOwned = ownerAddress !== undefined;
    indices.push(
      isOwned
        ? decodeRecord(ownerRecord, record, "An owner").userIndex
        : key.readUInt32BE(key.length - 4),
    );
  }
  const page = indices.slice(0, limit);
  const users = await readUsers(ledger, applicationIndex, page);
  const data = users.filter((user) => reference === undefined || user.reference === reference);
  return { data, next: indices.length > limit ? (page.at(-1) ?? null) : null };
}

export function usersOf(context: EngineContext): Users {
  return {
    create: async (applicationId, user, wait) =>
      createUser(context, applicationId, user, wait?.signal),
    async createAll(applicationId, users, wait) {
      if (!Array.isArray(users) || users.length === 0 || users.length > MAX_NEW_USERS)
        throw argumentError("users", `must be a list of 1 to ${MAX_NEW_USERS} users`);
      const refuse = (positions: readonly number[]): never => {
        const detail = "a user of this id has another owner address";
        const issues = positions.map(
          (i): Issue => ({ pointer: `/users/${i}/userId`, code: "user_exists", detail }),
        );
        throw new MintmarkError("user_exists", undefined, { issues });
      };
      return findOrCreate(context, applicationId, users.map(askedUser), refuse, wait?.signal);
    },
    async get(applicationId, userId) {
      const { ledger } = context;
      const { applicationIndex, userIndex } = await findUser(ledger, applicationId, userId);
      return (await readUsers(ledger, applicationIndex, [userIndex]))[0] as User;
    },
    list(applicationId, filter = {}) {
      const { ownerAddress: owner, ...rest } = filter;
      const asked =
        owner === undefined
          ? rest
          : { ...rest, ownerAddress: requireAddress("ownerAddress", owner) };
      return listOf(context, "users", applicationId, asked, (start, ledger) =>
        userPage(ledger, applicationId, asked, start),
      );
    },
  };
}

/**
 * The users of an application: each has an id and the address of its owner.
 *
 * @example
 * const { userId } = await engine.users.create(applicationId, { ownerAddress });
 */
export interface Users {
  /** Idempotent for the same id and address. Rejects with `user_exists` for another address. */
  create(applicationId: Uuid, user: NewUser, wait?: WaitOptions): Promise<User>;
  /**
   * Creates at most 1,000 users, all or none, and resolves with them in their order. An entry
   * without an id is the first user of its owner address, created if there is none; so repeats
   * change nothing.
   */
  createAll(applicationId: Uuid, users: readonly NewUser[], wait?: WaitOptions): Promise<User[]>;
  /** Rejects with `user_not_found`. */
  get(applicationId: Uuid, userId: Uuid): Promise<User>;
  /** Oldest first, unless the filter says otherwise. */
  list(applicationId: Uuid, filter?: UserFilter): List<User>;
}

/** Input of {@link Users.create}. */
export interface NewUser {
  readonly userId?: Uuid | undefined;
  readonly ownerAddress: Address;
  /**
   * Your own name for the user, at most 64 characters without control characters. It need not be
   * unique.
   */
  readonly reference?: string | null | undefined;
}

/** The filter of a list of users. */
export interface UserFilter extends OrderedPage {
  readonly ownerAddress?: Address | undefined;
  readonly reference?: string | undefined;
}
