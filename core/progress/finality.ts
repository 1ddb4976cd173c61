import { failLeftOut } from "../batches/void-slots.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import { decodeRecord } from "../store/layout.ts";
import { type BatchRecord, l1EventRecord, type WithdrawalRecord } from "../store/records.ts";
import { prefixOf } from "../store/store-keys.ts";
import { requireHash } from "../validate.ts";
import * as vaults from "../vaults/activity.ts";
import { newestCommitted, putBatch } from "./batch-progress.ts";
import { pruneCheckpoints, putCheckpoint, type ReadOptions } from "./portals.ts";

/** Goes no further than the cursor, after which no events are applied yet. */
export async function recordFinalized(
  ledger: Ledger,
  chainId: bigint,
  blockNumber: bigint,
  { signal, blockHash: given }: ReadOptions = {},
): Promise<void> {
  requireBigint("blockNumber", blockNumber, 0n, MAX_UINT64);
  const hash = given === undefined ? null : requireHash("blockHash", given);
  await ledger.writer.alone(async (group) => {
    const portal = ledger.l1.portalOn(chainId, group);
    const { observed, finalized } = portal;
    const upTo = observed !== null && observed < blockNumber ? observed : blockNumber;
    if (finalized !== null && upTo <= finalized) return;
    const blockHash = upTo === blockNumber ? hash : null;
    const { time } = ledger.journal.record(group, {
      kind: "l1Finalized",
      chainId,
      blockNumber: upTo,
      blockHash,
    });
    if (blockHash !== null) putCheckpoint(group, chainId, upTo, blockHash);
    await pruneCheckpoints(ledger, group, chainId, upTo);
    ledger.l1.portals.set(group, { ...portal, finalized: upTo });
    const batches: BatchRecord[] = [];
    for (const batch of newestCommitted(ledger, chainId, ({ status }) => status === "settled")) {
      if (batch.l1BlockNumber === null || batch.l1BlockNumber > upTo) continue;
      const changed: BatchRecord = { ...batch, status: "finalized", finalizedAt: time };
      batches.push(await putBatch(ledger, group, changed, "batch.finalized", time));
    }
    const from = prefixOf.l1Event(chainId, finalized === null ? 0n : finalized + 1n);
    for await (const [, stored] of ledger.store.entries({
      gte: from,
      lt: prefixOf.l1Event(chainId, upTo + 1n),
    })) {
      for (const withdrawalId of decodeRecord(l1EventRecord, stored, "An L1 event").withdrawalIds) {
        const known = await vaults.latestWithdrawal(ledger, group, withdrawalId);
        if (known.status !== "settled") continue;
        const final: WithdrawalRecord = {
          ...known,
          status: "finalized",
          finalizedAt: time,
          updatedAt: time,
        };
        vaults.putWithdrawal(ledger, group, final, known, "withdrawal.finalized");
      }
    }
    // These write journal entries of their own, so they run after this one.
    for (const batch of batches) await failLeftOut(ledger, group, batch);
  }, signal);
}
