import { MintmarkError } from "../errors.ts";
import { tell } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { readUsers } from "../ledger/user-records.ts";
import type { Uuid, VaultId, Withdrawal } from "../model.ts";
import type { WithdrawalEventType } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import type { ActivityRecord, WithdrawalRecord } from "../store/records.ts";
import {
  activityRecord,
  WITHDRAWAL_STATUSES,
  withdrawalIdRecord,
  withdrawalRecord,
} from "../store/records.ts";
import { keyOf, prefixOf, requestByKey } from "../store/store-keys.ts";
import { requireUuid } from "../validate.ts";
import { decodeActivity } from "./vaults.ts";

export function reserve(
  activity: ActivityRecord,
  { withdrawalId, quantity }: WithdrawalRecord,
  now: number,
) {
  const pending = [...activity.pending, withdrawalId];
  return { ...activity, reserved: activity.reserved + quantity, pending, updatedAt: now };
}

export function release(
  activity: ActivityRecord,
  { withdrawalId, quantity }: WithdrawalRecord,
  now: number,
) {
  const pending = activity.pending.filter((id) => id !== withdrawalId);
  return { ...activity, reserved: activity.reserved - quantity, pending, updatedAt: now };
}

/** Writes the withdrawn and reserved amounts of a user's vault. */
export function putActivity(
  ledger: Ledger,
  group: Group,
  { vaultId, userIndex }: Pick<WithdrawalRecord, "vaultId" | "userIndex">,
  activity: ActivityRecord,
): void {
  group.stage(keyOf.activity(vaultId), encodeRecord(activityRecord, activity));
  group.onDurable(() => ledger.readers.tokenSums.forget(userIndex));
}

export async function readActivity(
  ledger: Ledger,
  group: Group,
  vaultId: bigint,
): Promise<ActivityRecord> {
  return decodeActivity(await group.read(ledger.store, keyOf.activity(vaultId)));
}

/** Reads and writes the activity of a user's vault. */
export async function changeActivity(
  ledger: Ledger,
  group: Group,
  vault: Pick<WithdrawalRecord, "vaultId" | "userIndex">,
  change: Partial<ActivityRecord> & Pick<ActivityRecord, "updatedAt">,
): Promise<void> {
  putActivity(ledger, group, vault, {
    ...(await readActivity(ledger, group, vault.vaultId)),
    ...change,
  });
}

/** The activities of many vaults, in order. Readers give null for the group. */
export async function readActivities(
  ledger: Ledger,
  vaultIds: readonly VaultId[],
  group: Group | null,
) {
  const of = vaultIds.map(keyOf.activity);
  const records = await ledger.store.getMany(of);
  return of.map((key, i) =>
    decodeActivity(group === null ? records[i] : group.resolve(key, records[i])),
  );
}

/**
 * Writes a withdrawal and its indexes, and tells its application. A new one has null
 * `before`.
 */
export function putWithdrawal(
  ledger: Ledger,
  group: Group,
  record: WithdrawalRecord,
  before: WithdrawalRecord | null,
  type: WithdrawalEventType,
): WithdrawalRecord {
  if (before?.status !== record.status) {
    if (before !== null) group.remove(statusKey(before));
    group.put(statusKey(record), keyOf.journal(record.journalSequence).subarray(1));
  }
  if (isPending(record) !== (before !== null && isPending(before))) {
    const key = keyOf.pendingWithdrawal(record.chainId, record.journalSequence);
    if (isPending(record)) group.put(key, encodeRecord(withdrawalIdRecord, record.withdrawalId));
    else group.remove(key);
  }
  tell(ledger, group, record.applicationIndex, record.updatedAt, { type, ...record });
  group.stage(keyOf.withdrawal(record.withdrawalId), encodeRecord(withdrawalRecord, record));
  return record;
}

function statusKey({ applicationIndex, status, sequence }: WithdrawalRecord): Buffer {
  return requestByKey(
    prefixOf.statusWithdrawal(applicationIndex, WITHDRAWAL_STATUSES.indexOf(status)),
    sequence,
  );
}

/** A withdrawal as readers see it. Throws `store_corrupt` when it is missing. */
export async function readWithdrawal(
  ledger: Ledger,
  withdrawalId: Uuid,
): Promise<WithdrawalRecord> {
  return decodeWithdrawal(withdrawalId, await ledger.store.get(keyOf.withdrawal(withdrawalId)));
}

export function decodeWithdrawal(withdrawalId: Uuid, stored: Buffer | undefined): WithdrawalRecord {
  if (stored === undefined)
    throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
  return decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
}

/** The withdrawals that wait for vaults with these activities, as readers see them. */
export async function pendingOf(
  ledger: Ledger,
  activities: readonly ActivityRecord[],
): Promise<WithdrawalRecord[]> {
  const ids = activities.flatMap(({ pending }) => pending);
  const records = await Promise.all(ids.map((id) => readWithdrawal(ledger, id)));
  return records.filter(isPending);
}

/** A withdrawal in the writer's view. Throws `withdrawal_not_found`. */
export async function latestWithdrawal(
  ledger: Ledger,
  group: Group,
  withdrawalId: Uuid,
): Promise<WithdrawalRecord> {
  const record = await group.read(
    ledger.store,
    keyOf.withdrawal(requireUuid("withdrawalId", withdrawalId)),
  );
  if (record === undefined) throw new MintmarkError("withdrawal_not_found");
  return decodeRecord(withdrawalRecord, record, `Withdrawal ${withdrawalId}`);
}

export async function withdrawalView(
  ledger: Ledger,
  record: WithdrawalRecord,
): Promise<Withdrawal> {
  const [user] = await readUsers(ledger, record.applicationIndex, [record.userIndex]);
  const { withdrawalId, chainId, vaultId, quantity, recipient, withdrawnBefore, deadline, status } =
    record;
  const { l1TxHash, l1BlockNumber, failure, createdAt, updatedAt } = record;
  const userId = user?.userId ?? "";
  const message = {
    withdrawalId,
    userId,
    chainId,
    vaultId,
    quantity,
    recipient,
    withdrawnBefore,
    deadline,
  };
  return { ...message, status, l1TxHash, l1BlockNumber, failure, createdAt, updatedAt };
}

/** Journals that a pending withdrawal fails. Ends it, as {@link putFailed} does. */
export function failWithdrawal(
  ledger: Ledger,
  group: Group,
  known: WithdrawalRecord,
  activity: ActivityRecord,
  failure: string,
) {
  const { withdrawalId } = known;
  const { time } = ledger.journal.record(group, {
    kind: "withdrawalFailed",
    withdrawalId,
    failure,
  });
  return putFailed(ledger, group, known, activity, failure, time);
}

/** Ends a pending withdrawal and frees its reserve. Returns both as they are then. */
export function putFailed(
  ledger: Ledger,
  group: Group,
  known: WithdrawalRecord,
  activity: ActivityRecord,
  failure: string,
  time: number,
) {
  const failed: WithdrawalRecord = {
    ...known,
    status: "failed",
    failure,
    failedAt: time,
    updatedAt: time,
  };
  const freed = release(activity, known, time);
  putActivity(ledger, group, known, freed);
  putWithdrawal(ledger, group, failed, known, "withdrawal.failed");
  return { failed, freed };
}

/** Whether a withdrawal waits although L1 has refused its signature. Its owner can sign anew. */
export function isSignatureRefused(withdrawal: Pick<Withdrawal, "status" | "failure">): boolean {
  return isPending(withdrawal) && /\bSignatureInvalid\(/.test(withdrawal.failure ?? "");
}

export function isPending({ status }: Pick<Withdrawal, "status">): boolean {
  return status === "accepted" || status === "submitted";
}
