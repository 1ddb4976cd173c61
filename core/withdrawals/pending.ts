import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hash, Standard, Uuid, Withdrawal } from "../model.ts";
import type { BatchHeader, WithdrawalAuthorization } from "../ports.ts";
import { exitHeader } from "../progress/exit-proofs.ts";
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord } from "../store/layout.ts";
import {
  type WithdrawalRecord,
  withdrawalIdRecord,
  withdrawalListRecord,
} from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { requireHash, requireText } from "../validate.ts";
import * as vaults from "../vaults/activity.ts";
import { placeOf, readVault } from "../vaults/vaults.ts";

export async function* pendingWithdrawals(
  ledger: Ledger,
  chainId: bigint,
  { after = -1 }: PendingOptions = {},
) {
  const newer = {
    gte: keyOf.pendingWithdrawal(chainId, after + 1),
    lt: endOf(prefixOf.pendingWithdrawal(chainId)),
  };
  for await (const [, stored] of ledger.store.entries(newer)) {
    const pending = await pendingWithdrawal(
      ledger,
      decodeRecord(withdrawalIdRecord, stored, "A pending withdrawal"),
    );
    // The list comes from a snapshot, so the withdrawal may have settled since.
    if (pending !== null) yield pending;
  }
}

/** A pending withdrawal as it is now; null when it has settled or failed. */
export async function pendingWithdrawal(
  ledger: Ledger,
  withdrawalId: Uuid,
): Promise<PendingWithdrawal | null> {
  const record = await vaults.readWithdrawal(ledger, withdrawalId);
  if (!vaults.isPending(record)) return null;
  const place = placeOf(record.vaultId);
  const { assetIndex } = await readVault(ledger, place);
  return {
    withdrawal: await vaults.withdrawalView(ledger, record),
    sequence: record.journalSequence,
    standard: ledger.tenants.assetAt(assetIndex).standard,
    digest: record.digest,
    authorization: await authorizationOf(ledger, record),
    header: await exitHeader(ledger, record.chainId, place),
  };
}

async function authorizationOf(
  ledger: Ledger,
  { digest, deadline }: WithdrawalRecord,
): Promise<WithdrawalAuthorization> {
  const stored = await ledger.store.get(keyOf.withdrawalList(digest));
  if (stored === undefined)
    throw new MintmarkError("store_corrupt", `The list of digest ${digest} is missing.`);
  const { signature, vaults } = decodeRecord(withdrawalListRecord, stored, "A list of withdrawals");
  return { deadline, signature, list: vaults };
}

/** A withdrawal that waits for its transaction. */
export interface PendingWithdrawal {
  readonly withdrawal: Withdrawal;
  /** Position in the order of requests; later ones have greater numbers. */
  readonly sequence: number;
  readonly standard: Standard;
  /** The list that the owner signed. */
  readonly digest: Hash;
  readonly authorization: WithdrawalAuthorization;
  /**
   * The header of the vault's batch there, as in `exitProof`; null while its contract does not know
   * the batch.
   */
  readonly header: BatchHeader | null;
}

/** Filter of pending withdrawals. */
export interface PendingOptions {
  /** Shows only withdrawals with a greater {@link PendingWithdrawal.sequence}. */
  readonly after?: number;
}

export async function recordWithdrawalSubmitted(
  ledger: Ledger,
  withdrawalId: Uuid,
  txHash: Hash,
  wait?: WaitOptions,
) {
  const l1TxHash = requireHash("txHash", txHash);
  return changePending(ledger, withdrawalId, wait, (known, group) => {
    if (known.l1TxHash === l1TxHash) return known;
    const { withdrawalId, submittedAt } = known;
    const { time } = ledger.journal.record(group, {
      kind: "withdrawalSubmitted",
      withdrawalId,
      txHash: l1TxHash,
    });
    const submitted = {
      status: "submitted",
      l1TxHash,
      submittedAt: submittedAt ?? time,
      updatedAt: time,
    } as const;
    return vaults.putWithdrawal(
      ledger,
      group,
      { ...known, ...submitted },
      known,
      "withdrawal.submitted",
    );
  });
}

export async function recordWithdrawalAttempt(
  ledger: Ledger,
  withdrawalId: Uuid,
  failure: string,
  wait?: WaitOptions,
) {
  const reason = requireText("failure", failure, 2000);
  return changePending(ledger, withdrawalId, wait, (known, group) => {
    if (known.failure === reason) return known;
    const { withdrawalId } = known;
    const { time } = ledger.journal.record(group, {
      kind: "withdrawalAttempted",
      withdrawalId,
      failure: reason,
    });
    const refused = { ...known, failure: reason, updatedAt: time };
    return vaults.putWithdrawal(ledger, group, refused, known, "withdrawal.attempt_refused");
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
  return changePending(ledger, withdrawalId, wait, async (known, group) => {
    const activity = await vaults.readActivity(ledger, group, known.vaultId);
    const usable = known.deadline >= l1Time && activity.withdrawn <= known.withdrawnBefore;
    if (usable)
      throw new MintmarkError("withdrawal_pending", "The authorization can still be used on L1.");
    return vaults.failWithdrawal(ledger, group, known, activity, reason).failed;
  });
}

/** Changes a pending withdrawal. Any other one stays as it is. */
async function changePending(
  ledger: Ledger,
  withdrawalId: Uuid,
  wait: WaitOptions | undefined,
  change: (known: WithdrawalRecord, group: Group) => WithdrawalRecord | Promise<WithdrawalRecord>,
): Promise<Withdrawal> {
  const record = await ledger.writer.alone(async (group) => {
    const known = await vaults.latestWithdrawal(ledger, group, withdrawalId);
    return vaults.isPending(known) ? change(known, group) : known;
  }, wait?.signal);
  return vaults.withdrawalView(ledger, record);
}
