import { MintmarkError } from "../../errors.ts";
import type { VaultPlace } from "../../protocol/vault.ts";
import type { PendingWithdrawal } from "../../settlement-types.ts";
import { decodeRecord } from "../../store/layout.ts";
import { type WithdrawalRecord, withdrawalIdRecord, withdrawalRecord } from "../../store/records.ts";
import { endOf, PREFIX, withdrawalKey } from "../../store/store-keys.ts";
import { headerOf } from "../batches/proofs.ts";
import type { Ledger } from "../ledger.ts";
import { batchIdOf, batchOfRecord, placeOf, readVault } from "../vaults/vaults.ts";
import { exitProof, headerAt } from "./exit-proof.ts";
import { isPending, withdrawalView } from "./withdrawals.ts";

/** Withdrawals that the contract of their chain can be asked for, oldest first. */
export async function* pendingWithdrawals(ledger: Ledger, chainId: bigint): AsyncGenerator<PendingWithdrawal> {
  for await (const record of pendingRecords(ledger, chainId)) {
    const { vault, header, siblings } = await exitProof(ledger, record.vaultId);
    if (header === null) continue;
    const { assetIndex } = await readVault(ledger, placeOf(record.vaultId));
    const { quantity, recipient, deadline, signature } = record;
    const authorization = { deadline, signature };
    yield {
      withdrawal: await withdrawalView(ledger, record),
      standard: ledger.assetAt(assetIndex).standard,
      call: { vault, header, siblings, quantity, recipient, authorization },
    };
  }
}

/** Batches that L1 has committed and a mirror does not know, from which withdrawals are pending there. */
export async function awaitedBatches(
  ledger: Ledger,
  chainId: bigint,
): Promise<Pick<VaultPlace, "mode" | "batchNumber">[]> {
  const awaited = new Map<string, Pick<VaultPlace, "mode" | "batchNumber">>();
  for await (const { vaultId } of pendingRecords(ledger, chainId)) {
    const { mode, batchNumber } = placeOf(vaultId);
    const batchId = batchIdOf(mode, batchNumber);
    const header = headerOf(batchOfRecord(ledger, { mode, batchNumber }));
    if (header === null || awaited.has(batchId)) continue;
    if ((await headerAt(ledger, chainId, { mode, batchNumber }, header)) === null)
      awaited.set(batchId, { mode, batchNumber });
  }
  return [...awaited.values()];
}

async function* pendingRecords(ledger: Ledger, chainId: bigint): AsyncGenerator<WithdrawalRecord> {
  const prefix = Buffer.from([PREFIX.pendingWithdrawal]);
  for await (const [, stored] of ledger.store.entries({ gte: prefix, lt: endOf(prefix) })) {
    const withdrawalId = decodeRecord(withdrawalIdRecord, stored, "A pending withdrawal");
    const found = await ledger.store.get(withdrawalKey(withdrawalId));
    if (found === undefined) throw new MintmarkError("store_corrupt", `Withdrawal ${withdrawalId} is missing.`);
    const record = decodeRecord(withdrawalRecord, found, `Withdrawal ${withdrawalId}`);
    // The list was read from a snapshot: meanwhile it may have been settled.
    if (record.chainId === chainId && isPending(record)) yield record;
  }
}
