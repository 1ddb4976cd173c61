import { findBatch } from "../batches/batches.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { sessionCovers, TRANSFER_FAULTS, type TransferPowers } from "../protocol/transfer-rules.ts";
import { runAt } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord } from "../store/layout.ts";
import { type ActivityRecord, type TransferListRecord, transferIdRecord } from "../store/records.ts";
import { endOf, keyOf, PREFIX } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { tell } from "../tenants/events/event-log.ts";
import { putActivity, readActivities } from "../vaults/activity.ts";
import { listsOfBatch, putTransferList, readTransferList } from "../vaults/stored-lists.ts";
import { hasSlot, placeOf, readVaults } from "../vaults/vaults.ts";
import { powersOf } from "./powers.ts";

const COMMIT_SECONDS = 600n; // Least seconds between L1's newest block and a deadline, when a commit is sent
const MISSING = "L1's history lacks a vault of the transfers.";
const WITHDRAWN = "its owner has withdrawn from it on L1.";

/** A vault that a transfer takes, as L1 has it now. */
export interface Spent {
  readonly vault: StoredVault;
  readonly activity: ActivityRecord;
}

/**
 * Examines a list, with a group's changes, for a commit at this time in seconds. Returns the vaults that it takes, and
 * why L1 would not count all transfers; null when it would.
 */
export async function examine(ledger: Ledger, group: Group | null, list: TransferListRecord, commitAt: bigint) {
  const ids = list.transfers.map(({ vaultId }) => vaultId);
  const places = ids.map(placeOf);
  if (!places.every((place) => hasSlot(ledger, place))) return { spent: [], failure: MISSING };
  const vaults = await readVaults(ledger, places);
  const activities = await readActivities(ledger, group, ids);
  const spent = vaults.map(({ vault }, i) => ({ vault, activity: activities[i] as ActivityRecord }));
  const read = (key: Buffer) => (group === null ? ledger.store.get(key) : group.read(ledger.store, key));
  const powers = await powersOf(read, (spent[0] as Spent).vault.owner, list);
  return { spent, failure: failureOf(ledger, list, spent, powers, commitAt) };
}

function failureOf(
  ledger: Ledger,
  list: TransferListRecord,
  spent: readonly Spent[],
  powers: TransferPowers,
  commitAt: bigint,
): string | null {
  if (list.deadline < commitAt) return "The deadline came before L1 could take the transfers.";
  for (const [i, transfer] of list.transfers.entries()) {
    const { vaultId, amount } = transfer;
    const { vault, activity } = spent[i] as Spent;
    if (vault.userIndex !== transfer.userIndex || vault.assetIndex !== transfer.assetIndex)
      return `Vault ${vaultId} is another one in L1's history.`;
    if (vault.owner !== spent[0]?.vault.owner) return "The vaults of the list have several owners.";
    if (activity.spentBy !== list.transferId) return `Another transfer of vault ${vaultId} is on L1.`;
    const rest = vault.amount - activity.withdrawn;
    if (rest <= 0n || (amount !== 0n && amount >= rest)) return `Too little is left in vault ${vaultId}: ${WITHDRAWN}`;
    const { mode, batchNumber, slot } = placeOf(vaultId);
    const run = runAt(ledger.voids[mode].latest(batchNumber) ?? [], slot);
    if (run !== null) return `Vault ${vaultId} is void: ${run.failure}`;
    const { assetType } = ledger.assetAt(vault.assetIndex);
    const { signer, session, approvedAt, cancelledAt, signerCancelledAt } = powers;
    if (cancelledAt !== 0n || signerCancelledAt !== 0n) return TRANSFER_FAULTS.cancelled;
    const isCovered = session !== null && sessionCovers(session, { ...vault, assetType }, transfer, commitAt);
    if (signer !== vault.owner && approvedAt === 0n && !isCovered) return TRANSFER_FAULTS.not_authorized;
  }
  return null;
}

/** A deep reorganisation may have taken a vault's batch back. The list waits until it is final again. */
export function isFinal(ledger: Ledger, { transfers }: TransferListRecord): boolean {
  return transfers.every(({ vaultId }) => {
    const { mode, batchNumber } = placeOf(vaultId);
    return ledger.batches[mode].latest(batchNumber)?.status === "finalized";
  });
}

/**
 * Why a sealed batch of transfers must not go to L1 after this time (seconds); null when it may. L1 takes a record that
 * does not count, and then the vault's owner can never transfer it again.
 */
export async function transferFault(ledger: Ledger, batchNumber: number, l1Time: bigint): Promise<string | null> {
  for (const list of await listsOfBatch(ledger, findBatch(ledger, "zk-rollup", batchNumber))) {
    const { failure } = await examine(ledger, null, list, l1Time + COMMIT_SECONDS);
    if (failure !== null) return failure;
    if (!isFinal(ledger, list)) return "A vault of the transfers is not final on L1 now.";
  }
  return null;
}

/** The lists that wait for a batch, oldest first. Reads one at a time, because many can wait while L1 halts. */
export async function* waitingLists(ledger: Ledger, limit: number): AsyncGenerator<TransferListRecord> {
  const prefix = Buffer.from([PREFIX.waitingTransfers]);
  for await (const [, id] of ledger.store.entries({ gte: prefix, lt: endOf(prefix), limit }))
    yield await readTransferList(ledger, decodeRecord(transferIdRecord, id, "A waiting transfer"));
}

/** When the oldest list without a batch was taken, in milliseconds since 1970; null when none waits. */
export async function waitingSince(ledger: Ledger): Promise<number | null> {
  for await (const { createdAt } of waitingLists(ledger, 1)) return createdAt;
  return null;
}

/** Gives up a list that waits for a batch: its vaults are free, and its owner can sign them anew. */
export async function failWaiting(ledger: Ledger, group: Group, list: TransferListRecord, failure: string) {
  const { transferId, applicationIndex, digest, transfers } = list;
  const ids = transfers.map(({ vaultId }) => vaultId);
  const activities = await readActivities(ledger, group, ids);
  const { time } = ledger.record(group, { kind: "transfersFailed", transferId, failure });
  for (const [i, activity] of activities.entries()) {
    // L1's history may hold another transfer of the vault, which this store has adopted.
    if (activity.spentBy !== transferId) continue;
    const freed = { ...activity, spentBy: null, updatedAt: time };
    putActivity(ledger, group, transfers[i] as TransferListRecord["transfers"][number], freed);
  }
  group.remove(keyOf.transferDigest(digest));
  putTransferList(group, { ...list, status: "failed", failure, updatedAt: time }, list);
  tell(ledger, group, applicationIndex, time, { type: "transfer.failed", transferId, failure });
}
