import type { Ledger } from "../ledger/ledger.ts";
import type { Group } from "../store/group.ts";
import type { TransferListRecord } from "../store/records.ts";
import { transferDigestKey } from "../store/store-keys.ts";
import { tell } from "../tenants/events/event-log.ts";
import { putActivity, readActivity } from "../vaults/activity.ts";
import { putTransferList } from "../vaults/transfer-lists.ts";

/** Gives up a list that waits for a batch: its vaults are free, and its owner can sign them anew. */
export async function failWaiting(
  ledger: Ledger,
  group: Group,
  list: TransferListRecord,
  failure: string,
): Promise<void> {
  const { transferId, applicationIndex, digest } = list;
  const activities = [];
  for (const { vaultId } of list.transfers) activities.push(await readActivity(ledger, group, vaultId));
  const { time } = ledger.record(group, { kind: "transfersFailed", transferId, failure });
  for (const [i, { vaultId, userIndex }] of list.transfers.entries()) {
    const activity = activities[i] as (typeof activities)[number];
    // L1's history may hold another transfer of the vault, which this store has adopted.
    if (activity.spentBy === transferId)
      putActivity(ledger, group, { vaultId, userIndex }, { ...activity, spentBy: null, updatedAt: time });
  }
  group.remove(transferDigestKey(digest));
  putTransferList(group, { ...list, status: "failed", failure, updatedAt: time }, list);
  tell(ledger, group, applicationIndex, time, { type: "transfer.failed", transferId, failure });
}
