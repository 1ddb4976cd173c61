import type { WaitOptions } from "../abort.ts";
import { batchView, latestUncommitted } from "../batches/batches.ts";
import { failVoidWithdrawals, pendingIn, sealAnew, UNSENT } from "../batches/void-slots.ts";
import { MintmarkError } from "../errors.ts";
import { readBatchVaults } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Batch } from "../model.ts";
import type { TransferListRecord } from "../store/records.ts";
import { requireText } from "../validate.ts";
import { putActivity, readActivity } from "../vaults/activity.ts";
import { listsOfBatch, putTransferList } from "../vaults/transfer-lists.ts";
import { forgetSums } from "./close.ts";
import { failWaiting } from "./faults.ts";

export interface TakeBackOptions extends WaitOptions {
  readonly givesUp?: boolean; // Whether the transfers fail, and do not wait for another batch; default no
}

/**
 * Takes a batch of transfers back that L1 does not take, in one atomic step. L1 gets a batch of void slots under its
 * number, because later vault ids are promised. The lists wait again, and get other vaults from a later batch; or they
 * fail, and their vaults are free.
 *
 * The caller makes sure that L1 can no longer commit the old batch. Throws `batch_committed` once it has.
 */
export async function takeBackTransfers(
  ledger: Ledger,
  batchNumber: number,
  failure: string,
  { givesUp = false, signal }: TakeBackOptions = {},
): Promise<Batch> {
  const reason = requireText("failure", failure, 2000);
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestUncommitted(ledger, "zk-rollup", batchNumber);
    if (!batch.transfers) throw new MintmarkError("validation_failed", "The batch is not one of transfers.");
    const lists = await listsOfBatch(ledger, batch);
    const vaults = await readBatchVaults(ledger, batch);
    const run = { firstSlot: 0, count: batch.vaultCount, failure: reason };
    const pending = await pendingIn(ledger, "zk-rollup", batchNumber, [run]);
    const unsent = { ...batch, ...UNSENT, transfers: false };
    const { resealed, time } = await sealAnew(ledger, group, unsent, vaults, [run], (roots) => {
      return { kind: "transfersTakenBack", batchNumber, failure: reason, ...roots };
    });
    for (const list of lists) {
      for (const transfer of list.transfers) {
        const activity = await readActivity(ledger, group, transfer.vaultId);
        putActivity(ledger, group, transfer, { ...activity, transferred: 0n, updatedAt: time });
      }
      const waiting = { status: "waiting", batchNumber: null, firstSlot: null, updatedAt: time } as const;
      const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
      const again: TransferListRecord = { ...list, transfers, ...waiting };
      putTransferList(group, again, list);
      if (givesUp) await failWaiting(ledger, group, again, reason);
      forgetSums(ledger, group, list);
    }
    for (const { vaultId, failure } of pending) await failVoidWithdrawals(ledger, group, vaultId, failure);
    return resealed;
  }, signal);
  return batchView(record);
}
