import { failWithdrawals } from "../batches/void-slots.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Address, VaultId } from "../model.ts";
import type { CommittedRecord, TransferFault, TransferPowers } from "../protocol/transfer-rules.ts";
import { transferFault } from "../protocol/transfer-rules.ts";
import { packVaultId } from "../protocol/vault.ts";
import { runAt } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import type { ActivityRecord, BatchRecord, TransferListRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeChunk, encodeChunk, type StoredVault } from "../store/vault-columns.ts";
import { tell } from "../tenants/events/event-log.ts";
import { putActivity, readActivities, readActivity } from "../vaults/activity.ts";
import * as lists from "../vaults/stored-lists.ts";
import { hasSlot, placeOf, readVaults } from "../vaults/vaults.ts";
import { powersOf } from "./powers.ts";

/** A vault that a record spends; null for an id that no batch has made, which L1 marks as spent all the same. */
interface Judged {
  readonly vault: StoredVault | null;
  readonly activity: ActivityRecord;
}

/** Decides the transfers of a batch that L1 has just committed, by L1's own rule. */
export async function judgeBatch(ledger: Ledger, group: Group, batch: BatchRecord, time: number): Promise<void> {
  await judge(ledger, group, batch, await lists.listsOfBatch(ledger, batch), time);
}

/** Decides once more what has taken a vault, because L1 tells of other units withdrawn from it. */
export async function judgeSpender(ledger: Ledger, group: Group, vaultId: VaultId, time: number): Promise<void> {
  const { spentBy } = await readActivity(ledger, group, vaultId);
  const list = spentBy === null ? null : await lists.latestTransferList(ledger, group, spentBy);
  const batch = list?.batchNumber == null ? undefined : ledger.batches["zk-rollup"].latest(list.batchNumber);
  if (list === null || batch?.l1Sequence == null || !batch.transfers) return;
  await judge(ledger, group, batch, [list], time);
}

async function judge(ledger: Ledger, group: Group, batch: BatchRecord, committed: TransferListRecord[], time: number) {
  const ids = committed.flatMap(({ transfers }) => transfers.map(({ vaultId }) => vaultId));
  const places = ids.map(placeOf).filter((place) => hasSlot(ledger, place));
  const located = await readVaults(ledger, places, group);
  const vaults = new Map(located.map(({ place, vault }) => [packVaultId(place), vault]));
  const activities = await readActivities(ledger, group, ids);
  const outputs = outputsIn(ledger, group, batch);
  const changed: VaultId[] = [];
  let next = 0;
  for (const list of committed) {
    const spent = list.transfers.map(
      ({ vaultId }): Judged => ({ vault: vaults.get(vaultId) ?? null, activity: activities[next++] as ActivityRecord }),
    );
    // A hostile operator can put vaults of several owners under one signature.
    const powers = new Map<Address, TransferPowers>();
    for (const { vault } of spent)
      if (vault !== null && !powers.has(vault.owner))
        powers.set(vault.owner, await powersOf((key) => group.read(ledger.store, key), vault.owner, list));
    const faults = list.transfers.map((_, i) => faultOf(ledger, batch, list, i, spent[i] as Judged, powers));
    for (const [i, transfer] of list.transfers.entries()) {
      const { vault, activity } = spent[i] as Judged;
      const transferred = faults[i] === null && vault !== null ? vault.amount - activity.withdrawn : 0n;
      if (transferred === activity.transferred) continue;
      putActivity(ledger, group, transfer, { ...activity, transferred, updatedAt: time });
    }
    const amounts = lists.outputsOf(list).map((output) => {
      const { vault, activity } = spent[output.index] as Judged;
      return faults[output.index] !== null || vault === null
        ? 0n
        : lists.unitsOf(output, vault.amount - activity.withdrawn);
    });
    for (const vaultId of await outputs.set(list, amounts, time)) changed.push(vaultId);
    putFaults(ledger, group, list, faults, time);
  }
  outputs.flush();
  // A vault that holds other units now may have been transferred on.
  for (const vaultId of changed) await judgeSpender(ledger, group, vaultId, time);
}

/** Why L1 does not count a committed transfer; null when it does. A fault stays as it was first seen. */
function faultOf(
  ledger: Ledger,
  { committedAt }: BatchRecord,
  { transfers, deadline }: TransferListRecord,
  i: number,
  { vault, activity }: Judged,
  powers: ReadonlyMap<Address, TransferPowers>,
): TransferFault | null {
  const transfer = transfers[i] as TransferListRecord["transfers"][number];
  if (vault === null) return transfer.fault ?? "exhausted";
  const { mode, batchNumber, slot } = placeOf(transfer.vaultId);
  const { standard, assetType, chainId, transferable } = ledger.assetAt(vault.assetIndex);
  const isVoid = runAt(ledger.voids[mode].latest(batchNumber) ?? [], slot) !== null;
  const source = {
    vaultId: transfer.vaultId,
    owner: vault.owner,
    amount: isVoid ? 0n : vault.amount,
    withdrawn: activity.withdrawn,
    standard,
    assetType,
    transferable: transferable === true && chainId === ledger.settlement.chainId,
    hops: transfer.hops - 1,
  };
  const record: CommittedRecord = { transfer, deadline, committedAt: committedAt ?? 0n };
  const fault = transferFault(source, record, powers.get(vault.owner) as TransferPowers);
  return fault === null ? null : (transfer.fault ?? fault);
}

function putFaults(
  ledger: Ledger,
  group: Group,
  list: TransferListRecord,
  faults: readonly (TransferFault | null)[],
  time: number,
): void {
  if (list.transfers.every(({ fault }, i) => fault === faults[i])) return;
  const transfers = list.transfers.map((transfer, i) => ({ ...transfer, fault: faults[i] ?? null }));
  lists.putTransferList(group, { ...list, transfers, updatedAt: time }, list);
  const fresh = transfers.find(({ fault }, i) => fault !== null && list.transfers[i]?.fault === null);
  if (fresh === undefined) return;
  const event = { type: "transfer.failed", transferId: list.transferId, failure: lists.failureOfFault(fresh) } as const;
  tell(ledger, group, list.applicationIndex, time, event);
}

/** The vaults that a batch of transfers has made, a record of them at a time. */
function outputsIn(ledger: Ledger, group: Group, { batchNumber }: BatchRecord) {
  const chunks = new Map<number, { readonly vaults: StoredVault[]; isChanged: boolean }>();
  const keyAt = (index: number) => keyOf.chunk("zk-rollup", batchNumber, index);
  const chunkAt = async (index: number) => {
    const known = chunks.get(index);
    if (known !== undefined) return known;
    const record = await group.read(ledger.store, keyAt(index));
    const chunk = { vaults: record === undefined ? [] : decodeChunk(record), isChanged: false };
    chunks.set(index, chunk);
    return chunk;
  };
  return {
    /** Gives the outputs of a list these units. Returns the vaults that had others. */
    async set({ firstSlot }: TransferListRecord, amounts: readonly bigint[], time: number): Promise<VaultId[]> {
      const changed: VaultId[] = [];
      for (const [position, amount] of amounts.entries()) {
        const slot = (firstSlot as number) + position;
        const chunk = await chunkAt(Math.floor(slot / CHUNK_VAULTS));
        const vault = chunk.vaults[slot % CHUNK_VAULTS] as StoredVault;
        if (vault.amount === amount) continue;
        chunk.isChanged = true;
        chunk.vaults[slot % CHUNK_VAULTS] = { ...vault, amount, updatedAt: time };
        const vaultId = packVaultId({ mode: "zk-rollup", batchNumber, slot });
        changed.push(vaultId);
        group.onDurable(() => ledger.tokenSums.forget(vault.userIndex));
        if (amount < vault.amount) await failWithdrawals(ledger, group, vaultId, LESS, time);
      }
      return changed;
    },
    flush(): void {
      for (const [index, { vaults, isChanged }] of chunks)
        if (isChanged) group.stage(keyAt(index), encodeChunk(vaults));
    },
  };
}

const LESS = "L1 has given this vault less, because its transfer counts for less or for nothing.";
