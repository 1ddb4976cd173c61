import { MintmarkError } from "../errors.ts";
import type { User, Uuid } from "../model.ts";
import { decodeRecord } from "../store/layout.ts";
import type { UserIdRecord } from "../store/records.ts";
import { userIdRecord, userRecord } from "../store/records.ts";
import { userIdKey, userKey } from "../store/store-keys.ts";
import { requireUuid } from "../validate.ts";
import type { Ledger } from "./ledger.ts";

/** Users in the order of their indices. Throws `store_corrupt` when one is missing. */
export async function readUsers(
  ledger: Ledger,
  applicationIndex: number,
  userIndices: readonly number[],
): Promise<User[]> {
  const records = await ledger.store.getMany(userIndices.map((index) => userKey(applicationIndex, index)));
  return records.map((record, i) => {
    const name = `User ${userIndices[i]} of application ${applicationIndex}`;
    if (record === undefined) throw new MintmarkError("store_corrupt", `${name} is missing.`);
    return decodeRecord(userRecord, record, name);
  });
}

/** A user from the indices. Throws `application_not_found`, `user_not_found`. */
export async function findUser(
  ledger: Ledger,
  applicationId: Uuid,
  userId: Uuid,
): Promise<UserIdRecord & { readonly applicationIndex: number }> {
  const { applicationIndex } = ledger.application(applicationId);
  const record = await ledger.store.get(userIdKey(applicationIndex, requireUuid("userId", userId)));
  if (record === undefined) throw new MintmarkError("user_not_found");
  return { ...decodeRecord(userIdRecord, record, `User ${userId}`), applicationIndex };
}
