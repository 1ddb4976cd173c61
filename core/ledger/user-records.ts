import { MintmarkError } from "../errors.ts";
import type { Uuid } from "../model.ts";
import { decodeRecord } from "../store/layout.ts";
import { userIdRecord, userRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireUuid } from "../validate.ts";
import type { TenantLedger } from "./ledger.ts";

/** Users in the order of their indices. Throws `store_corrupt` when one is missing. */
export async function readUsers(
  ledger: TenantLedger,
  applicationIndex: number,
  userIndices: readonly number[],
) {
  return (await readOwnUsers(ledger, applicationIndex, userIndices)).map((user, i) => {
    if (user !== undefined) return user;
    const detail = `User ${userIndices[i]} of application ${applicationIndex} is missing.`;
    throw new MintmarkError("store_corrupt", detail);
  });
}

/**
 * Users by index. One of another application is undefined: an adopted list takes its vault, too.
 */
export async function readOwnUsers(
  ledger: TenantLedger,
  applicationIndex: number,
  userIndices: readonly number[],
) {
  const records = await ledger.store.getMany(
    userIndices.map((index) => keyOf.user(applicationIndex, index)),
  );
  return records.map((record, i) =>
    record === undefined ? undefined : decodeRecord(userRecord, record, `User ${userIndices[i]}`),
  );
}

/** A user from the indices. Throws `application_not_found`, `user_not_found`. */
export async function findUser(ledger: TenantLedger, applicationId: Uuid, userId: Uuid) {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const record = await ledger.store.get(
    keyOf.userId(applicationIndex, requireUuid("userId", userId)),
  );
  if (record === undefined) throw new MintmarkError("user_not_found");
  return { ...decodeRecord(userIdRecord, record, `User ${userId}`), applicationIndex };
}
