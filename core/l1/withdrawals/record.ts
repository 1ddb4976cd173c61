import type { WaitOptions } from "../../abort.ts";
import { MintmarkError } from "../../errors.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Hash, Uuid, Withdrawal } from "../../model.ts";
import { MAX_UINT64, requireBigint } from "../../protocol/bounds.ts";
import type { WithdrawalEventType } from "../../store/event-record.ts";
import type { Group } from "../../store/group.ts";
import type { WithdrawalRecord } from "../../store/records.ts";
import { requireHash, requireText } from "../../validate.ts";
import {
  isPending,
  latestWithdrawal,
  putFailed,
  putWithdrawal,
  readActivity,
  withdrawalView,
} from "../../vaults/activity.ts";

export async function recordWithdrawalSubmitted(
  ledger: Ledger,
  withdrawalId: Uuid,
  txHash: Hash,
  wait?: WaitOptions,
): Promise<Withdrawal> {
  const l1TxHash = requireHash("txHash", txHash);
  return changePending(ledger, withdrawalId, "withdrawal.submitted", wait?.signal, (known, group) => {
    if (known.l1TxHash === l1TxHash) return known;
    const { withdrawalId, submittedAt } = known;
    const { time } = ledger.record(group, { kind: "withdrawalSubmitted", withdrawalId, txHash: l1TxHash });
    return { ...known, status: "submitted", l1TxHash, submittedAt: submittedAt ?? time, updatedAt: time };
  });
}

export async function recordWithdrawalAttempt(
  ledger: Ledger,
  withdrawalId: Uuid,
  failure: string,
  wait?: WaitOptions,
): Promise<Withdrawal> {
  const reason = requireText("failure", failure, 2000);
  return changePending(ledger, withdrawalId, "withdrawal.attempt_refused", wait?.signal, (known, group) => {
    if (known.failure === reason) return known;
    const { withdrawalId } = known;
    const { time } = ledger.record(group, { kind: "withdrawalAttempted", withdrawalId, failure: reason });
    return { ...known, failure: reason, updatedAt: time };
  });
}

export async function recordWithdrawalFailed(
  ledger: Ledger,
  withdrawalId: Uuid,
  failure: string,
  l1Time: bigint,
  wait?: WaitOptions,
): Promise<Withdrawal> {
  const reason = requireText("failure", failure, 2000);
  requireBigint("l1Time", l1Time, 0n, MAX_UINT64);
  const record = await ledger.writer.alone(async (group) => {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    if (!isPending(known)) return known;
    const activity = await readActivity(ledger, group, known.vaultId);
    const usable = known.deadline >= l1Time && activity.withdrawn <= known.withdrawnBefore;
    if (usable) throw new MintmarkError("withdrawal_pending", "The authorization can still be used on L1.");
    const facts = { withdrawalId: known.withdrawalId, failure: reason };
    const { time } = ledger.record(group, { kind: "withdrawalFailed", ...facts });
    return putFailed(ledger, group, known, activity, reason, time);
  }, wait?.signal);
  return withdrawalView(ledger, record);
}

/** Changes a pending withdrawal. Any other one stays as it is. */
async function changePending(
  ledger: Ledger,
  withdrawalId: Uuid,
  type: WithdrawalEventType,
  signal: AbortSignal | undefined,
  change: (known: WithdrawalRecord, group: Group) => WithdrawalRecord,
): Promise<Withdrawal> {
  const record = await ledger.writer.alone(async (group) => {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    const changed = isPending(known) ? change(known, group) : known;
    if (changed !== known) putWithdrawal(ledger, group, changed, known, type);
    return changed;
  }, signal);
  return withdrawalView(ledger, record);
}
