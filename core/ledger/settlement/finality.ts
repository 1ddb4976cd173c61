import { MintmarkError } from "../../errors.ts";
import { MODES } from "../../model.ts";
import type { Group } from "../../store/group.ts";
import { decodeRecord } from "../../store/layout.ts";
import { type BatchRecord, bigRecord, l1EventRecord, type WithdrawalRecord } from "../../store/records.ts";
import { endOf, l1EventsFrom, PREFIX, vaultEventKey, vaultEventsOf } from "../../store/store-keys.ts";
import type { Ledger } from "../ledger.ts";
import { putBatch } from "./batch-progress.ts";
import { latestWithdrawal, putActivity, putWithdrawal, readActivity, reserve, setPending } from "./withdrawals.ts";

/** What was settled up to this block is final. Nothing beyond the cursor is: its events are not applied yet. */
export async function recordFinalized(ledger: Ledger, blockNumber: bigint, signal?: AbortSignal): Promise<void> {
  await ledger.writer.alone(async (group) => {
    const { l1Observed, l1Finalized } = ledger.head;
    const upTo = l1Observed !== null && l1Observed < blockNumber ? l1Observed : blockNumber;
    if (l1Finalized !== null && upTo <= l1Finalized) return;
    const { time } = ledger.record(group, { kind: "l1Finalized", blockNumber: upTo });
    ledger.head = { ...ledger.head, l1Finalized: upTo };
    for (const batch of settledBatches(ledger, (block) => block <= upTo)) {
      await putBatch(ledger, group, { ...batch, status: "finalized", finalizedAt: time }, "batchFinalized", time);
    }
    const from = l1EventsFrom(l1Finalized === null ? 0n : l1Finalized + 1n);
    for await (const [, stored] of ledger.store.entries({ gte: from, lt: l1EventsFrom(upTo + 1n) })) {
      const { withdrawalId } = decodeRecord(l1EventRecord, stored, "An L1 event");
      if (withdrawalId === null) continue;
      const known = await latestWithdrawal(ledger, group, withdrawalId);
      if (known.status !== "settled") continue;
      const final: WithdrawalRecord = { ...known, status: "finalized", finalizedAt: time, updatedAt: time };
      putWithdrawal(ledger, group, final, "withdrawal.finalized");
    }
  }, signal);
}

function settledBatches(ledger: Ledger, within: (blockNumber: bigint) => boolean): BatchRecord[] {
  return MODES.flatMap((mode) =>
    [...ledger.batches[mode].values()].filter(
      ({ status, l1BlockNumber }) => status === "settled" && l1BlockNumber !== null && within(l1BlockNumber),
    ),
  );
}

/** Takes back what blocks from this one on had settled. Throws `l1_failed` for blocks that are final. */
export async function recordReorg(ledger: Ledger, blockNumber: bigint, signal?: AbortSignal): Promise<void> {
  await ledger.writer.alone(async (group) => {
    const { l1Observed, l1Finalized } = ledger.head;
    if (l1Finalized !== null && blockNumber <= l1Finalized) {
      throw new MintmarkError("l1_failed", `Block ${blockNumber} is final; a chain without it is another chain.`);
    }
    const { time } = ledger.record(group, { kind: "l1Reorganised", blockNumber });
    if (l1Observed !== null && l1Observed >= blockNumber) {
      ledger.head = { ...ledger.head, l1Observed: blockNumber > 0n ? blockNumber - 1n : null };
    }
    for (const batch of settledBatches(ledger, (block) => block >= blockNumber)) {
      const gone = { l1BlockNumber: null, committedAt: null, l1Sequence: null, settledAt: null };
      await putBatch(ledger, group, { ...batch, ...gone, status: "submitted" }, "batchReverted", time);
    }
    await revertEvents(ledger, group, blockNumber, time);
  }, signal);
}

/** Newest first, so that each step undoes the last one. */
async function revertEvents(ledger: Ledger, group: Group, blockNumber: bigint, time: number): Promise<void> {
  const range = { gte: l1EventsFrom(blockNumber), lt: endOf(Buffer.from([PREFIX.l1Event])), reverse: true };
  for await (const [key, stored] of ledger.store.entries(range)) {
    const { vaultId, withdrawalId } = decodeRecord(l1EventRecord, stored, "An L1 event");
    group.remove(key);
    if (vaultId === null) continue;
    group.remove(vaultEventKey(vaultId, key.readBigUInt64BE(1), key.readUInt32BE(9)));
    const withdrawn = await withdrawnBefore(ledger, vaultId, blockNumber);
    let activity = { ...(await readActivity(ledger, group, vaultId)), withdrawn, updatedAt: time };
    if (withdrawalId !== null) {
      const known = await latestWithdrawal(ledger, group, withdrawalId);
      activity = reserve(activity, known, time);
      setPending(group, known);
      putWithdrawal(ledger, group, undecided(known, time), "withdrawal.reverted");
    }
    putActivity(group, vaultId, activity);
  }
}

function undecided(known: WithdrawalRecord, time: number): WithdrawalRecord {
  const status = known.submittedAt === null ? "accepted" : "submitted";
  const undone = { l1BlockNumber: null, failure: null, settledAt: null, failedAt: null, updatedAt: time };
  return { ...known, ...undone, status };
}

/** What had been withdrawn of a vault before a block. */
async function withdrawnBefore(ledger: Ledger, vaultId: bigint, blockNumber: bigint): Promise<bigint> {
  const range = { gte: vaultEventsOf(vaultId), lt: vaultEventKey(vaultId, blockNumber, 0), reverse: true, limit: 1 };
  for await (const [, stored] of ledger.store.entries(range)) return decodeRecord(bigRecord, stored, "A vault's event");
  return 0n;
}
