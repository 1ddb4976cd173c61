import { MintmarkError } from "../../errors.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Hash, Standard, Uuid, Withdrawal } from "../../model.ts";
import type { BatchHeader, WithdrawalAuthorization } from "../../ports.ts";
import { decodeRecord } from "../../store/layout.ts";
import { type WithdrawalRecord, withdrawalIdRecord, withdrawalListRecord } from "../../store/records.ts";
import { endOf, pendingWithdrawalKey, pendingWithdrawalsOf, withdrawalListKey } from "../../store/store-keys.ts";
import { isPending, withdrawalView } from "../../vaults/activity.ts";
import { placeOf, readVault } from "../../vaults/vaults.ts";
import { exitHeader } from "../progress/proofs.ts";
import { readWithdrawal } from "./list.ts";

export async function* pendingWithdrawals(
  ledger: Ledger,
  chainId: bigint,
  { after = -1 }: PendingOptions = {},
): AsyncGenerator<PendingWithdrawal> {
  const newer = { gte: pendingWithdrawalKey(chainId, after + 1), lt: endOf(pendingWithdrawalsOf(chainId)) };
  for await (const [, stored] of ledger.store.entries(newer)) {
    const pending = await pendingWithdrawal(ledger, decodeRecord(withdrawalIdRecord, stored, "A pending withdrawal"));
    // The list comes from a snapshot, so the withdrawal may have settled since.
    if (pending !== null) yield pending;
  }
}

/** A pending withdrawal as it is now; null when it has settled or failed. */
export async function pendingWithdrawal(ledger: Ledger, withdrawalId: Uuid): Promise<PendingWithdrawal | null> {
  const record = await readWithdrawal(ledger, withdrawalId);
  if (!isPending(record)) return null;
  const place = placeOf(record.vaultId);
  const { assetIndex } = await readVault(ledger, place);
  return {
    withdrawal: await withdrawalView(ledger, record),
    sequence: record.journalSequence,
    standard: ledger.assetAt(assetIndex).standard,
    digest: record.digest,
    authorization: await authorizationOf(ledger, record),
    header: await exitHeader(ledger, record.chainId, place),
  };
}

async function authorizationOf(
  ledger: Ledger,
  { digest, deadline, signature }: WithdrawalRecord,
): Promise<WithdrawalAuthorization> {
  if (signature !== "0x") return { deadline, signature };
  const stored = await ledger.store.get(withdrawalListKey(digest));
  if (stored === undefined) throw new MintmarkError("store_corrupt", `The list of digest ${digest} is missing.`);
  const { vaults, ...list } = decodeRecord(withdrawalListRecord, stored, "A list of withdrawals");
  return { deadline, signature: list.signature, list: vaults };
}

/** A withdrawal that waits for its transaction. */
export interface PendingWithdrawal {
  readonly withdrawal: Withdrawal;
  /** Position in the order of requests; later ones have greater numbers. */
  readonly sequence: number;
  readonly standard: Standard;
  /** The message that the owner signed; withdrawals of one list share it. */
  readonly digest: Hash;
  /** The owner's signature, of the withdrawal alone or of a list. */
  readonly authorization: WithdrawalAuthorization;
  /** The header of the vault's batch there, as in `exitProof`; null while its contract does not know the batch. */
  readonly header: BatchHeader | null;
}

/** Filter of pending withdrawals. */
export interface PendingOptions {
  /** Only withdrawals with a greater {@link PendingWithdrawal.sequence}. */
  readonly after?: number;
}
