import type { WaitOptions } from "../abort.ts";
import { batchView } from "../batches/batches.ts";
import { closeOpenBatches, openAhead, sealClosed } from "../batches/seal.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import type { Batch } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { Group } from "../store/group.ts";
import type { TransferListRecord } from "../store/records.ts";
import { chunkKey } from "../store/store-keys.ts";
import { CHUNK_VAULTS, encodeColumns, highWord, lowWord } from "../store/vault-columns.ts";
import { putActivity } from "../vaults/activity.ts";
import { outputsOf, putTransferList, slotCount, unitsOf } from "../vaults/transfer-lists.ts";
import { BatchLoad } from "./bounds.ts";
import { examine, failWaiting, isFinal, type Spent, waitingLists } from "./faults.ts";

/** Least seconds between the closing of a batch and a deadline in it: the commit must be mined before. */
const MIN_LEFT = 900n;
const MOST_LISTS = 8_192;
const MOST_FAILED = 8_192; // Transfers of failed lists in one atomic step

interface Ready {
  readonly list: TransferListRecord;
  readonly spent: readonly Spent[];
}

/** Puts waiting transfers into the next rollup batch. Lists that came too late fail. Null when nothing waits. */
export async function closeTransfers(ledger: Ledger, wait?: WaitOptions): Promise<Batch | null> {
  // Wrapped in an object, so that the writer does not wait for the promise.
  const { sealed } = await ledger.writer.alone(async (group) => {
    ledger.requireOneHistory();
    const ready = await readyLists(ledger, group);
    if (ready.length === 0) return { sealed: null };
    const isEmpty = ledger.unsealed.open("zk-rollup").vaults.count === 0;
    const before = isEmpty ? [] : closeOpenBatches(ledger, "zk-rollup");
    const earlier = before.map((batch) => sealClosed(ledger, group, batch));
    const batch = sealClosed(ledger, group, putBatched(ledger, group, ready));
    return { sealed: Promise.all([batch, ...earlier]) };
  }, wait?.signal);
  const [batch] = (await sealed) ?? [];
  return batch === undefined ? null : batchView(batch);
}

/** The waiting lists, oldest first, until one does not fit; then in the order of their vaults, which costs L1 the least. */
async function readyLists(ledger: Ledger, group: Group): Promise<Ready[]> {
  const ready: Ready[] = [];
  const load = new BatchLoad(ledger.limits);
  const commitAt = BigInt(Math.floor(ledger.journalClock.now() / 1000)) + MIN_LEFT;
  let failed = 0;
  for await (const list of waitingLists(ledger, MOST_LISTS)) {
    // After a long halt of L1 all of them can be too late. The next rounds fail the others.
    if (failed >= MOST_FAILED) break;
    const { spent, failure } = await examine(ledger, group, list, commitAt);
    if (failure !== null) {
      await failWaiting(ledger, group, list, failure);
      failed += list.transfers.length;
    } else if (!isFinal(ledger, list)) continue;
    else if (!load.take(list.transfers)) break;
    else ready.push({ list, spent });
  }
  const first = ({ list }: Ready) => list.transfers[0]?.vaultId ?? 0n;
  return ready.toSorted((a, b) => (first(a) < first(b) ? -1 : 1));
}

/** Makes the outputs of these lists the vaults of a closed batch. */
function putBatched(ledger: Ledger, group: Group, ready: readonly Ready[]): OpenBatch {
  const lists = ready.map(({ list }) => list);
  const batch = openAhead(ledger, "zk-rollup", slotCount(lists.flatMap(({ transfers }) => transfers)));
  const { batchNumber, vaults } = batch;
  batch.transfers = lists;
  const transferIds = lists.map(({ transferId }) => transferId);
  const { time } = ledger.record(group, { kind: "transfersBatched", batchNumber, transferIds });
  for (const one of ready) putOutputs(ledger, group, batch, one, time);
  for (let first = 0; first < vaults.count; first += CHUNK_VAULTS) {
    const end = Math.min(first + CHUNK_VAULTS, vaults.count);
    group.put(chunkKey("zk-rollup", batchNumber, first / CHUNK_VAULTS), encodeColumns(vaults, first, end));
  }
  return batch;
}

function putOutputs(ledger: Ledger, group: Group, batch: OpenBatch, { list, spent }: Ready, time: number): void {
  const { batchNumber, vaults } = batch;
  const firstSlot = vaults.count;
  const batched = { ...list, status: "batched", batchNumber, firstSlot, updatedAt: time } as const;
  for (const output of outputsOf(list)) {
    const { index, transfer, isChange, holderIndex } = output;
    const { vault, activity } = spent[index] as Spent;
    const rest = vault.amount - activity.withdrawn;
    const amount = unitsOf(output, rest);
    const blobs = hexToBytes(vault.blob);
    const content = { amountHigh: highWord(amount), amountLow: lowWord(amount), blobs, start: 0, end: blobs.length };
    const isOwners = isChange || holderIndex === null;
    // A burnt slot is kept with its former owner: it holds no units.
    const owner = hexToBytes(isOwners ? vault.owner : transfer.to, 20);
    const userIndex = holderIndex ?? transfer.userIndex;
    const holder = { applicationIndex: list.applicationIndex, userIndex, owner };
    vaults.push(holder, { assetIndex: vault.assetIndex, ...content }, time, time, 0);
    if (!isChange) putActivity(ledger, group, transfer, { ...activity, transferred: rest, updatedAt: time });
  }
  putTransferList(group, batched, list);
  forgetSums(ledger, group, list);
}

/** The balances of all who give or get change. */
export function forgetSums(ledger: Ledger, group: Group, list: TransferListRecord): void {
  group.onDurable(() => {
    for (const { transfer, holderIndex } of outputsOf(list)) {
      ledger.tokenSums.forget(transfer.userIndex);
      if (holderIndex !== null) ledger.tokenSums.forget(holderIndex);
    }
  });
}
