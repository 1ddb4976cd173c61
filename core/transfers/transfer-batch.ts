import type { WaitOptions } from "../abort.ts";
import { batchView, latestUncommitted } from "../batches/batches.ts";
import { openAhead, sealClosed } from "../batches/seal.ts";
import { failVoidWithdrawals, pendingIn, sealAnew, UNSENT } from "../batches/void-slots.ts";
import { invalid, MintmarkError } from "../errors.ts";
import { tell } from "../events/event-log.ts";
import { GAS_PER_GROUP, GAS_PER_SLOT, GAS_PER_WORD, TRANSFERS_GAS } from "../gas.ts";
import { readBatchVaults } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import type { Batch, Limits } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { Transfer } from "../protocol/transfer.ts";
import { MAX_TRANSFER_SLOTS } from "../protocol/transfer-data.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord } from "../store/layout.ts";
import {
  type ActivityRecord,
  type TransferListRecord,
  transferIdRecord,
} from "../store/records.ts";
import { endOf, keyOf, PREFIX } from "../store/store-keys.ts";
import { CHUNK_VAULTS, encodeColumns, highWord, lowWord } from "../store/vault-columns.ts";
import { requireText } from "../validate.ts";
import { changeActivity, putActivity, readActivities } from "../vaults/activity.ts";
import * as transferLists from "../vaults/transfer-lists.ts";
import { examine, type Spent } from "./judge.ts";

/**
 * Least seconds between the closing of a batch and a deadline in it: the commit must be mined
 * before.
 */
const MIN_LEFT = 900n;
const MOST_LISTS = 8_192;
const MOST_FAILED = 8_192; // Transfers of failed lists in one atomic step

interface Ready {
  readonly list: TransferListRecord;
  readonly spent: readonly Spent[];
}

/**
 * Puts waiting transfers into the next rollup batch. Lists that came too late fail. Null when
 * nothing waits.
 */
export async function closeTransfers(ledger: Ledger, wait?: WaitOptions): Promise<Batch | null> {
  // In a list, so that the writer does not wait for the promises. If it fails, nobody does.
  const sealings = await ledger.writer.alone(async (group) => {
    ledger.l1.requireOneHistory();
    const ready = await readyLists(ledger, group);
    if (ready.length === 0) return [];
    const { batch, earlier } = putBatched(ledger, group, ready);
    return [sealClosed(ledger, group, batch), earlier];
  }, wait?.signal);
  const [batch] = await Promise.all(sealings);
  return batch == null ? null : batchView(batch);
}

/**
 * The lists that wait for a batch, oldest first. Reads one at a time, because many can wait while
 * L1 halts.
 */
async function* waitingLists(ledger: Ledger, limit: number): AsyncGenerator<TransferListRecord> {
  const prefix = Buffer.from([PREFIX.waitingTransfers]);
  for await (const [, id] of ledger.store.entries({ gte: prefix, lt: endOf(prefix), limit }))
    yield await transferLists.readTransferList(
      ledger,
      decodeRecord(transferIdRecord, id, "A waiting transfer"),
    );
}

/**
 * When the oldest list without a batch was taken, in milliseconds since 1970; null when none waits.
 */
export async function waitingSince(ledger: Ledger): Promise<number | null> {
  for await (const { createdAt } of waitingLists(ledger, 1)) return createdAt;
  return null;
}

/**
 * Gives up a list that waits for a batch: its vaults are free, and its owner can sign them anew.
 */
function failWaiting(
  ledger: Ledger,
  group: Group,
  list: TransferListRecord,
  activities: readonly ActivityRecord[],
  failure: string,
): void {
  const { transferId, applicationIndex, digest, transfers } = list;
  const { time } = ledger.journal.record(group, { kind: "transfersFailed", transferId, failure });
  for (const [i, activity] of activities.entries()) {
    // L1's history may hold another transfer of the vault, which this store has adopted.
    if (activity.spentBy !== transferId) continue;
    const freed = { ...activity, spentBy: null, updatedAt: time };
    putActivity(ledger, group, transfers[i] as TransferListRecord["transfers"][number], freed);
  }
  group.remove(keyOf.transferDigest(digest));
  transferLists.putTransferList(
    group,
    { ...list, status: "failed", failure, updatedAt: time },
    list,
  );
  tell(ledger, group, applicationIndex, time, { type: "transfer.failed", transferId, failure });
}

/**
 * The waiting lists, oldest first, until one does not fit; then in the order of their vaults, which
 * costs L1 the least.
 */
async function readyLists(ledger: Ledger, group: Group): Promise<Ready[]> {
  const ready: Ready[] = [];
  const load = new BatchLoad(ledger.services.limits);
  const commitAt = BigInt(Math.floor(ledger.journal.clock.now() / 1000)) + MIN_LEFT;
  let failed = 0;
  for await (const list of waitingLists(ledger, MOST_LISTS)) {
    // All of them can be too late after a long halt of L1. The next rounds fail the others.
    if (failed >= MOST_FAILED) break;
    const { spent, activities, failure, isFinal } = await examine(ledger, list, commitAt, group);
    if (failure !== null) {
      failWaiting(ledger, group, list, activities, failure);
      failed += list.transfers.length;
    } else if (!isFinal) continue;
    else if (!load.take(list.transfers)) break;
    else ready.push({ list, spent });
  }
  const first = ({ list }: Ready) => list.transfers[0]?.vaultId ?? 0n;
  return ready.toSorted((a, b) => (first(a) < first(b) ? -1 : 1));
}

/** Makes the outputs of these lists the vaults of a closed batch, after the open one is sealed. */
function putBatched(ledger: Ledger, group: Group, ready: readonly Ready[]) {
  const lists = ready.map(({ list }) => list);
  const { taken: batch, earlier } = openAhead(
    ledger,
    group,
    "zk-rollup",
    transferLists.slotCount(lists.flatMap(({ transfers }) => transfers)),
  );
  const { batchNumber, vaults } = batch;
  batch.transfers = lists;
  const transferIds = lists.map(({ transferId }) => transferId);
  const { time } = ledger.journal.record(group, {
    kind: "transfersBatched",
    batchNumber,
    transferIds,
  });
  for (const one of ready) putOutputs(ledger, group, batch, one, time);
  for (let first = 0; first < vaults.count; first += CHUNK_VAULTS) {
    const end = Math.min(first + CHUNK_VAULTS, vaults.count);
    group.put(
      keyOf.chunk("zk-rollup", batchNumber, first / CHUNK_VAULTS),
      encodeColumns(vaults, first, end),
    );
  }
  return { batch, earlier };
}

function putOutputs(
  ledger: Ledger,
  group: Group,
  batch: OpenBatch,
  { list, spent }: Ready,
  time: number,
): void {
  forgetSums(ledger, group, list);
  const { batchNumber, vaults } = batch;
  const firstSlot = vaults.count;
  const batched = { ...list, status: "batched", batchNumber, firstSlot, updatedAt: time } as const;
  for (const output of transferLists.outputsOf(list)) {
    const { index, transfer, isChange, holderIndex } = output;
    const { vault, activity } = spent[index]!;
    const rest = vault.amount - activity.withdrawn;
    const amount = transferLists.unitsOf(output, rest);
    const mintingBlobs = hexToBytes(vault.mintingBlob);
    const content = {
      amountHigh: highWord(amount),
      amountLow: lowWord(amount),
      mintingBlobs,
      start: 0,
      end: mintingBlobs.length,
    };
    const isOwners = isChange || holderIndex === null;
    // A burnt slot is kept with its former owner: it holds no units.
    const owner = hexToBytes(isOwners ? vault.owner : transfer.to, 20);
    const userIndex = holderIndex ?? transfer.userIndex;
    const holder = { applicationIndex: list.applicationIndex, userIndex, owner };
    vaults.push(holder, { assetIndex: vault.assetIndex, ...content }, time, time, 0);
    if (!isChange)
      putActivity(ledger, group, transfer, { ...activity, transferred: rest, updatedAt: time });
  }
  transferLists.putTransferList(group, batched, list);
}

/** The balances of all who give or get change. */
function forgetSums(ledger: Ledger, group: Group, list: TransferListRecord): void {
  group.onDurable(() => {
    for (const user of transferLists.usersOf(transferLists.outputsOf(list)))
      ledger.readers.tokenSums.forget(user);
  });
}

export interface TakeBackOptions extends WaitOptions {
  // Whether the transfers fail, and do not wait for another batch; default no
  readonly givesUp?: boolean;
}

/**
 * Takes a batch of transfers back, in one atomic step. L1 gets a batch of void slots under its
 * number, because later vault ids are promised. The lists wait again, and get other vaults from a
 * later batch; or they fail, and their vaults are free.
 */
export async function takeBackTransfers(
  ledger: Ledger,
  batchNumber: number,
  failure: string,
  { givesUp = false, signal }: TakeBackOptions = {},
): Promise<Batch> {
  const reason = requireText("failure", failure, 2000);
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestUncommitted(ledger, group, "zk-rollup", batchNumber);
    if (!batch.transfers) throw invalid("The batch is not one of transfers.");
    const lists = await transferLists.listsOfBatch(ledger, batch);
    const vaults = await readBatchVaults(ledger, batch);
    const run = { firstSlot: 0, count: batch.vaultCount, failure: reason };
    const pending = await pendingIn(ledger, "zk-rollup", batchNumber, [run]);
    const unsent = { ...batch, ...UNSENT, transfers: false };
    const { resealed, time } = await sealAnew(ledger, group, unsent, vaults, [run], (roots) => {
      return { kind: "transfersTakenBack", batchNumber, failure: reason, ...roots };
    });
    for (const list of lists) {
      const again = await waitAgain(ledger, group, list, time);
      if (givesUp) {
        const ids = again.transfers.map(({ vaultId }) => vaultId);
        const activities = await readActivities(ledger, ids, group);
        failWaiting(ledger, group, again, activities, reason);
      }
      forgetSums(ledger, group, list);
    }
    for (const { vaultId, failure } of pending)
      await failVoidWithdrawals(ledger, group, vaultId, failure);
    return resealed;
  }, signal);
  return batchView(record);
}

/** A list that L1 does not take waits for another batch. */
export async function waitAgain(
  ledger: Ledger,
  group: Group,
  list: TransferListRecord,
  time: number,
) {
  for (const transfer of list.transfers)
    await changeActivity(ledger, group, transfer, { transferred: 0n, updatedAt: time });
  const waiting = {
    status: "waiting",
    batchNumber: null,
    firstSlot: null,
    updatedAt: time,
  } as const;
  const transfers = list.transfers.map((transfer) => ({ ...transfer, fault: null }));
  const again: TransferListRecord = { ...list, transfers, ...waiting };
  transferLists.putTransferList(group, again, list);
  return again;
}

/**
 * Most bytes of a group before its records: form 1, deadline 4, base 8, signature 64; and 2 for a
 * length.
 */
const GROUP_BYTES = 77;
const LENGTH_BYTES = 2;
const RECORD_BYTES = 23;
const WHOLE_ID_BYTES = 5; // The further bytes of a whole vault id, which vaults far apart need
const AMOUNT_BYTES = 8;

const NEAR = 1n << 23n; // Ids that are all nearer to the first one need no whole ids

/** Lists that one commit can carry. */
export class BatchLoad {
  readonly #limits: Limits;
  #bytes = 1;
  #slots = 0;
  gas = TRANSFERS_GAS; // The commit's gas with all lists so far
  readonly #words = new Set<bigint>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  take(transfers: readonly Transfer[]): boolean {
    const taken = transferLists.slotCount(transfers);
    const ids = transfers.map(({ vaultId }) => vaultId);
    const isFar = ids.some((id) => id - ids[0]! >= NEAR || ids[0]! - id >= NEAR);
    const perRecord =
      RECORD_BYTES + (isFar ? WHOLE_ID_BYTES : 0) + (taken > transfers.length ? AMOUNT_BYTES : 0);
    const words = new Set(
      transfers.map(({ vaultId }) => vaultId >> 8n).filter((word) => !this.#words.has(word)),
    );
    const head = GROUP_BYTES + (transfers.length > 1 ? LENGTH_BYTES : 0);
    const bytes = this.#bytes + head + perRecord * transfers.length;
    const slots = this.#slots + taken;
    const gas = this.gas + GAS_PER_GROUP + GAS_PER_SLOT * taken + GAS_PER_WORD * words.size;
    const { rollupBytes, rollupGas } = this.#limits;
    if (bytes > rollupBytes || slots > MAX_TRANSFER_SLOTS || gas > rollupGas) return false;
    [this.#bytes, this.#slots, this.gas] = [bytes, slots, gas];
    for (const word of words) this.#words.add(word);
    return true;
  }
}

/** Throws `batch_too_large` for a list that no commit can carry. */
export function requireCarried(limits: Limits, transfers: readonly Transfer[]): void {
  if (!new BatchLoad(limits).take(transfers))
    throw new MintmarkError(
      "batch_too_large",
      "One commit cannot carry these transfers. Sign shorter lists.",
    );
}
