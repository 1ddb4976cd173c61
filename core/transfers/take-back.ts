import type { WaitOptions } from "../abort.ts";
import { batchView, latestBatch } from "../batches/batches.ts";
import { failVoidWithdrawals, pendingIn, putRoots } from "../batches/void-slots.ts";
import { MintmarkError } from "../errors.ts";
import { derivedAgain, readBatchVaults } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Batch } from "../model.ts";
import { batchDataKey, batchTokensKey, pageRootsKey } from "../store/store-keys.ts";
import { requireText } from "../validate.ts";
import { putActivity, readActivity } from "../vaults/activity.ts";
import { listsOfBatch, putTransferList } from "../vaults/transfer-lists.ts";
import { forgetSums } from "./close.ts";
import { failWaiting } from "./fail.ts";

export interface TakeBackOptions extends WaitOptions {
  /** Whether the transfers fail, and do not wait for another batch; default no. */
  readonly givesUp?: boolean;
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
    const batch = latestBatch(ledger, "zk-rollup", batchNumber);
    if (batch.status === "settled" || batch.status === "finalized") throw new MintmarkError("batch_committed");
    if (!batch.transfers) throw new MintmarkError("validation_failed", "The batch is not one of transfers.");
    const lists = await listsOfBatch(ledger, batch);
    const vaults = await readBatchVaults(ledger, batch);
    const run = { firstSlot: 0, count: batch.vaultCount, failure: reason };
    const pending = await pendingIn(ledger, "zk-rollup", batchNumber, [run]);
    const derived = await derivedAgain(ledger, { mode: "zk-rollup", batchNumber }, vaults, [run]);
    const { content, batchRoot, dataHash, assets } = derived;
    const unsent = { status: "sealed", l1TxHash: null, submittedAt: null, transfers: false } as const;
    const emptied = putRoots(ledger, group, { ...batch, ...unsent, assets, content, batchRoot, dataHash });
    const roots = { batchRoot, dataHash, stateRoot: emptied.stateRoot };
    const { time } = ledger.record(group, { kind: "transfersTakenBack", batchNumber, failure: reason, ...roots });
    ledger.putVoids(group, "zk-rollup", batchNumber, [{ ...run, voidedAt: time, leftOut: false }]);
    group.put(batchDataKey("zk-rollup", batchNumber), derived.data);
    group.put(pageRootsKey("zk-rollup", batchNumber), derived.pageRoots);
    group.put(batchTokensKey("zk-rollup", batchNumber), derived.tokens);
    for (const list of lists) {
      for (const { vaultId, userIndex } of list.transfers) {
        const activity = { ...(await readActivity(ledger, group, vaultId)), transferred: 0n, updatedAt: time };
        putActivity(ledger, group, { vaultId, userIndex }, activity);
      }
      const waiting = { status: "waiting", batchNumber: null, firstSlot: null, updatedAt: time } as const;
      const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
      const again = { ...list, transfers, ...waiting };
      putTransferList(group, again, list);
      if (givesUp) await failWaiting(ledger, group, again, reason);
      forgetSums(ledger, group, list);
    }
    for (const { vaultId, failure } of pending) await failVoidWithdrawals(ledger, group, vaultId, failure);
    return emptied;
  }, signal);
  return batchView(record);
}
