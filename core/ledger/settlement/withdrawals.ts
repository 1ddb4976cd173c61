import { MintmarkError } from "../../errors.ts";
import type { Hash, Uuid, Withdrawal } from "../../model.ts";
import { MAX_UINT64, requireBigint } from "../../protocol/bounds.ts";
import type { WithdrawalEventType } from "../../store/event-record.ts";
import type { Group } from "../../store/group.ts";
import { decodeRecord, encodeRecord } from "../../store/layout.ts";
import {
  type ActivityRecord,
  activityRecord,
  type WithdrawalRecord,
  withdrawalIdRecord,
  withdrawalRecord,
} from "../../store/records.ts";
import { activityKey, pendingWithdrawalKey, withdrawalKey } from "../../store/store-keys.ts";
import { tell, withdrawalEvent } from "../events/event-log.ts";
import type { Ledger } from "../ledger.ts";
import { readUsers } from "../tenants/users.ts";
import { requireHash, requireText, requireUuid } from "../validate.ts";
import { decodeActivity } from "../vaults/vaults.ts";

export function reserve(
  activity: ActivityRecord,
  { withdrawalId, quantity }: WithdrawalRecord,
  now: number,
): ActivityRecord {
  const pending = [...activity.pending, withdrawalId];
  return { ...activity, reserved: activity.reserved + quantity, pending, updatedAt: now };
}

export function release(
  activity: ActivityRecord,
  { withdrawalId, quantity }: WithdrawalRecord,
  now: number,
): ActivityRecord {
  const pending = activity.pending.filter((id) => id !== withdrawalId);
  return { ...activity, reserved: activity.reserved - quantity, pending, updatedAt: now };
}

/** Writes what has been withdrawn and is reserved of a user's vault. */
export function putActivity(
  ledger: Ledger,
  group: Group,
  { vaultId, userIndex }: Pick<WithdrawalRecord, "vaultId" | "userIndex">,
  activity: ActivityRecord,
): void {
  group.stage(activityKey(vaultId), encodeRecord(activityRecord, activity));
  group.onDurable(() => ledger.tokenSums.forget(userIndex));
}

export async function readActivity(ledger: Ledger, group: Group, vaultId: bigint): Promise<ActivityRecord> {
  return decodeActivity(await group.read(ledger.store, activityKey(vaultId)));
}

/** Writes a withdrawal as it now is, and tells its application and listeners. */
export function putWithdrawal(ledger: Ledger, group: Group, record: WithdrawalRecord, type: WithdrawalEventType): void {
  tell(ledger, group, record.applicationIndex, record.updatedAt, withdrawalEvent(type, record));
  group.stage(withdrawalKey(record.withdrawalId), encodeRecord(withdrawalRecord, record));
  group.onDurable(() => {
    const application = ledger.applications.get(record.applicationIndex);
    if (application === undefined) return;
    const { applicationId } = application;
    // The user's id is the one thing that the record does not hold; whoever listens gets it a read later.
    ledger.emit("withdrawal", async () => ({ applicationId, withdrawal: await withdrawalView(ledger, record) }));
  });
}

export function setPending(group: Group, record: WithdrawalRecord): void {
  group.put(
    pendingWithdrawalKey(record.chainId, record.journalSequence),
    encodeRecord(withdrawalIdRecord, record.withdrawalId),
  );
}

export function clearPending(group: Group, record: WithdrawalRecord): void {
  group.remove(pendingWithdrawalKey(record.chainId, record.journalSequence));
}

/** A withdrawal as the writer has it. Throws `withdrawal_not_found`. */
export async function latestWithdrawal(ledger: Ledger, group: Group, withdrawalId: Uuid): Promise<WithdrawalRecord> {
  const record = await group.read(ledger.store, withdrawalKey(requireUuid("withdrawalId", withdrawalId)));
  if (record === undefined) throw new MintmarkError("withdrawal_not_found");
  return decodeRecord(withdrawalRecord, record, `Withdrawal ${withdrawalId}`);
}

export async function readWithdrawal(ledger: Ledger, applicationId: Uuid, withdrawalId: Uuid): Promise<Withdrawal> {
  const { applicationIndex } = ledger.application(applicationId);
  const stored = await ledger.store.get(withdrawalKey(requireUuid("withdrawalId", withdrawalId)));
  const record = stored === undefined ? null : decodeRecord(withdrawalRecord, stored, `Withdrawal ${withdrawalId}`);
  if (record?.applicationIndex !== applicationIndex) throw new MintmarkError("withdrawal_not_found");
  return withdrawalView(ledger, record);
}

/** A withdrawal as its application sees it. */
export async function withdrawalView(ledger: Ledger, record: WithdrawalRecord): Promise<Withdrawal> {
  const [user] = await readUsers(ledger, record.applicationIndex, [record.userIndex]);
  const { withdrawalId, chainId, vaultId, quantity, recipient, withdrawnBefore, deadline, status } = record;
  const { l1TxHash, l1BlockNumber, failure, createdAt, updatedAt } = record;
  const message = {
    withdrawalId,
    userId: user?.userId ?? "",
    chainId,
    vaultId,
    quantity,
    recipient,
    withdrawnBefore,
    deadline,
  };
  return { ...message, status, l1TxHash, l1BlockNumber, failure, createdAt, updatedAt };
}

/** A transaction that carries the withdrawal is on its way. */
export async function recordWithdrawalSubmitted(
  ledger: Ledger,
  withdrawalId: Uuid,
  txHash: Hash,
  signal?: AbortSignal,
): Promise<Withdrawal> {
  const l1TxHash = requireHash("txHash", txHash);
  return changePending(
    ledger,
    withdrawalId,
    "withdrawal.submitted",
    (record, group) => {
      if (record.l1TxHash === l1TxHash) return record;
      const { time } = ledger.record(group, {
        kind: "withdrawalSubmitted",
        withdrawalId: record.withdrawalId,
        txHash: l1TxHash,
      });
      return { ...record, status: "submitted", l1TxHash, submittedAt: record.submittedAt ?? time, updatedAt: time };
    },
    signal,
  );
}

/** L1 refused an attempt; the reservation stays. */
export async function recordWithdrawalAttempt(
  ledger: Ledger,
  withdrawalId: Uuid,
  failure: string,
  signal?: AbortSignal,
): Promise<Withdrawal> {
  const reason = requireText("failure", failure, 2000);
  return changePending(
    ledger,
    withdrawalId,
    "withdrawal.attempt_refused",
    (record, group) => attempted(ledger, group, record, reason),
    signal,
  );
}

function attempted(ledger: Ledger, group: Group, record: WithdrawalRecord, failure: string): WithdrawalRecord {
  if (record.failure === failure) return record;
  const { time } = ledger.record(group, { kind: "withdrawalAttempted", withdrawalId: record.withdrawalId, failure });
  return { ...record, failure, updatedAt: time };
}

/** Gives up a withdrawal whose authorization can no longer be used, and releases what it reserved. */
export async function recordWithdrawalFailed(
  ledger: Ledger,
  withdrawalId: Uuid,
  failure: string,
  l1Time: bigint,
  signal?: AbortSignal,
): Promise<Withdrawal> {
  const reason = requireText("failure", failure, 2000);
  requireBigint("l1Time", l1Time, 0n, MAX_UINT64);
  const record = await ledger.writer.alone(async (group) => {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    if (!isPending(known)) return known;
    const activity = await readActivity(ledger, group, known.vaultId);
    const usable = known.deadline >= l1Time && activity.withdrawn <= known.withdrawnBefore;
    if (usable) throw new MintmarkError("withdrawal_pending", "The authorization can still be used on L1.");
    const { time } = ledger.record(group, {
      kind: "withdrawalFailed",
      withdrawalId: known.withdrawalId,
      failure: reason,
    });
    return putFailed(ledger, group, known, activity, reason, time);
  }, signal);
  return withdrawalView(ledger, record);
}

/** Ends a pending withdrawal and releases what it reserved. */
export function putFailed(
  ledger: Ledger,
  group: Group,
  known: WithdrawalRecord,
  activity: ActivityRecord,
  failure: string,
  time: number,
): WithdrawalRecord {
  const failed: WithdrawalRecord = { ...known, status: "failed", failure, failedAt: time, updatedAt: time };
  clearPending(group, known);
  putWithdrawal(ledger, group, failed, "withdrawal.failed");
  putActivity(ledger, group, known, release(activity, known, time));
  return failed;
}

export function isPending({ status }: WithdrawalRecord): boolean {
  return status === "accepted" || status === "submitted";
}

/** Changes a withdrawal that is still pending; one that is no longer stays as it is. */
async function changePending(
  ledger: Ledger,
  withdrawalId: Uuid,
  type: WithdrawalEventType,
  change: (record: WithdrawalRecord, group: Group) => WithdrawalRecord,
  signal?: AbortSignal,
): Promise<Withdrawal> {
  const record = await ledger.writer.alone(async (group) => {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    const changed = isPending(known) ? change(known, group) : known;
    if (changed !== known) putWithdrawal(ledger, group, changed, type);
    return changed;
  }, signal);
  return withdrawalView(ledger, record);
}
