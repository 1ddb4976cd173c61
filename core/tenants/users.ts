import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import { findUser, readUsers } from "../ledger/users.ts";
import type { Address, User, Uuid } from "../model.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { type UserRecord, userIdRecord, userRecord } from "../store/records.ts";
import { endOf, userIdKey, userKey, usersOf as userKeysOf } from "../store/store-keys.ts";
import { requireAddress, requireUuid } from "../validate.ts";

/**
 * Registers a user and its owner address; again with the same address changes nothing.
 * Throws `validation_failed`, `application_not_found`, `user_exists`.
 */
export async function createUser(
  ledger: Ledger,
  applicationId: Uuid,
  user: { readonly userId?: Uuid; readonly ownerAddress: Address },
  signal?: AbortSignal,
): Promise<User> {
  const ownerAddress = requireAddress("ownerAddress", user.ownerAddress);
  const userId = user.userId === undefined ? uuidv7() : requireUuid("userId", user.userId);
  const { applicationIndex } = ledger.application(applicationId);
  const idKey = userIdKey(applicationIndex, userId);
  const created = await ledger.writer.run<User | null>(
    {
      weight: 1,
      keys: () => [idKey],
      apply(group, [stored]) {
        const known = group.resolve(idKey, stored);
        if (known !== undefined) {
          const { ownerAddress: owner } = decodeRecord(userIdRecord, known, `User ${userId}`);
          if (owner !== ownerAddress) throw new MintmarkError("user_exists");
          return null;
        }
        const userIndex = ledger.head.userCount;
        const facts = { applicationIndex, userIndex, userId, ownerAddress };
        const { time } = ledger.record(group, { kind: "userCreated", ...facts });
        ledger.head = { ...ledger.head, userCount: userIndex + 1 };
        const record: UserRecord = { userId, ownerAddress, createdAt: time };
        group.stage(idKey, encodeRecord(userIdRecord, { userIndex, ownerAddress }));
        group.put(userKey(applicationIndex, userIndex), encodeRecord(userRecord, record));
        ledger.users.set(applicationIndex, userId, { userIndex, ownerAddress });
        return record;
      },
    },
    signal,
  );
  return created ?? (await readUser(ledger, applicationId, userId));
}

async function readUser(ledger: Ledger, applicationId: Uuid, userId: Uuid): Promise<User> {
  const { applicationIndex, userIndex } = await findUser(ledger, applicationId, userId);
  const [user] = await readUsers(ledger, applicationIndex, [userIndex]);
  if (user === undefined) throw new MintmarkError("user_not_found");
  return user;
}

export function usersOf(context: EngineContext): Users {
  return {
    create: async (applicationId, user, wait) => createUser(context.ledger, applicationId, user, wait?.signal),
    get: async (applicationId, userId) => readUser(context.ledger, applicationId, userId),
    list: (applicationId, page = {}) =>
      listOf(context, "users", applicationId, page, async ({ after, limit }) => {
        const { ledger } = context;
        const { applicationIndex } = ledger.application(applicationId);
        const prefix = userKeysOf(applicationIndex);
        const start = after === null ? { gte: prefix } : { gt: userKey(applicationIndex, after) };
        const data: User[] = [];
        let last = 0;
        for await (const [key, record] of ledger.store.entries({ ...start, lt: endOf(prefix), limit: limit + 1 })) {
          if (data.length === limit) return { data, next: last };
          last = key.readUInt32BE(5);
          data.push(decodeRecord(userRecord, record, `User ${last} of application ${applicationIndex}`));
        }
        return { data, next: null };
      }),
  };
}

/**
 * The users of an application: each has an id and the address of its owner.
 *
 * @example
 * const { userId } = await engine.users.create(applicationId, { ownerAddress });
 */
export interface Users {
  /** Idempotent for the same id and address; another address for a known id is `user_exists`. */
  create(
    applicationId: Uuid,
    user: { readonly userId?: Uuid; readonly ownerAddress: Address },
    wait?: WaitOptions,
  ): Promise<User>;
  /** Rejects with `user_not_found`. */
  get(applicationId: Uuid, userId: Uuid): Promise<User>;
  /** Oldest first. */
  list(applicationId: Uuid, page?: PageOptions): List<User>;
}
