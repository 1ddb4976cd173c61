import { findBatch } from "../batches/batches.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { decodeRecord } from "../store/layout.ts";
import { transferIdRecord } from "../store/records.ts";
import { activityKey, endOf, PREFIX } from "../store/store-keys.ts";
import { listsOfBatch, readTransferList } from "../vaults/transfer-lists.ts";
import { decodeActivity, hasSlot, placeOf, readVaults } from "../vaults/vaults.ts";
import { isFinal } from "./close.ts";
import { failureOf, MISSING, type Spent } from "./faults.ts";
import { powersOf } from "./powers.ts";

/** Least seconds between L1's newest block and a deadline, when a commit is sent. */
const COMMIT_SECONDS = 600n;

/** When the oldest list without a batch was taken, in milliseconds since 1970; null when none waits. */
export async function waitingSince(ledger: Ledger): Promise<number | null> {
  const prefix = Buffer.from([PREFIX.waitingTransfers]);
  for await (const [, id] of ledger.store.entries({ gte: prefix, lt: endOf(prefix), limit: 1 })) {
    const { createdAt } = await readTransferList(ledger, decodeRecord(transferIdRecord, id, "A waiting transfer"));
    return createdAt;
  }
  return null;
}

/**
 * Why a sealed batch of transfers must not go to L1 now; null when it may. L1 takes a record that does not count, and
 * then the vault's owner can never transfer it again.
 *
 * @param l1Time - seconds of L1's newest block
 */
export async function transferFault(ledger: Ledger, batchNumber: number, l1Time: bigint): Promise<string | null> {
  const lists = await listsOfBatch(ledger, findBatch(ledger, "zk-rollup", batchNumber));
  for (const list of lists) {
    const ids = list.transfers.map(({ vaultId }) => vaultId);
    if (!ids.every((id) => hasSlot(ledger, placeOf(id)))) return MISSING;
    const vaults = await readVaults(ledger, ids.map(placeOf));
    const activities = (await ledger.store.getMany(ids.map(activityKey))).map(decodeActivity);
    const spent = vaults.map(({ vault }, i) => ({ vault, activity: activities[i] as Spent["activity"] }));
    const powers = await powersOf((key) => ledger.store.get(key), (spent[0] as Spent).vault.owner, list);
    const fault = failureOf(ledger, list, spent, powers, l1Time + COMMIT_SECONDS);
    if (fault !== null) return fault;
    if (!isFinal(ledger, list)) return "A vault of the transfers is not final on L1 now.";
  }
  return null;
}
