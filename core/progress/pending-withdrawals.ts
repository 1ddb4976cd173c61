import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hex, Standard, Uuid, Withdrawal } from "../model.ts";
import type { BatchHeader } from "../ports.ts";
import { decodeRecord } from "../store/layout.ts";
import { type WithdrawalRecord, withdrawalIdRecord, withdrawalRecord } from "../store/records.ts";
import { endOf, pendingWithdrawalsOf, withdrawalKey } from "../store/store-keys.ts";
import { placeOf, readVault } from "../vaults/vaults.ts";
import { isPending, withdrawalView } from "../vaults/withdrawals.ts";
import { exitHeader } from "./proofs.ts";

/** Withdrawals of a chain's tokens that are neither settled nor failed, oldest first. */
export async function* pendingWithdrawals(
  ledger: Ledger,
  chainId: bigint,
  { except = () => false }: PendingOptions = {},
): AsyncGenerator<PendingWithdrawal> {
  for await (const record of pendingRecords(ledger, chainId, except)) {
    const place = placeOf(record.vaultId);
    const { assetIndex } = await readVault(ledger, place);
    yield {
      withdrawal: await withdrawalView(ledger, record),
      standard: ledger.assetAt(assetIndex).standard,
      signature: record.signature,
      header: await exitHeader(ledger, chainId, place),
    };
  }
}

async function* pendingRecords(
  ledger: Ledger,
  chainId: bigint,
  except: NonNullable<PendingOptions["except"]>,
): AsyncGenerator<WithdrawalRecord> {
  const first = pendingWithdrawalsOf(chainId);
  for await (const [, stored] of ledger.store.entries({ gte: first, lt: endOf(first) })) {
    const withdrawalId = decodeRecord(withdrawalIdRecord, stored, "A pending withdrawal");
    if (except(withdrawalId)) continue;
    const found = await ledger.store.get(withdrawalKey(withdrawalId));
    if (found === undefined) throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
    const record = decodeRecord(withdrawalRecord, found, `Withdrawal ${withdrawalId}`);
    // The list was read from a snapshot: meanwhile it may have been settled.
    if (isPending(record)) yield record;
  }
}

/** A withdrawal that is to be sent to its token's chain. */
export interface PendingWithdrawal {
  readonly withdrawal: Withdrawal;
  readonly standard: Standard;
  /** The owner's, over the withdrawal. */
  readonly signature: Hex;
  /** How the contract there keeps the vault's batch, as in `exitProof`; null while it does not know the batch. */
  readonly header: BatchHeader | null;
}

/** Which pending withdrawals are read. */
export interface PendingOptions {
  /** Leaves out a withdrawal before it is read, which is most of what one costs. */
  readonly except?: (withdrawalId: Uuid) => boolean;
}
