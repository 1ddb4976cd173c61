import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord } from "../store/layout.ts";
import {
  type BatchRecord,
  bigRecord,
  l1EventRecord,
  type WithdrawalRecord,
} from "../store/records.ts";
import { endOf, keyOf, placeOfL1Event, prefixOf } from "../store/store-keys.ts";
import { judgeSpender } from "../transfers/judge.ts";
import { revertPower } from "../transfers/powers.ts";
import * as vaults from "../vaults/activity.ts";
import { placeOf, readVault } from "../vaults/vaults.ts";
import { newestCommitted, putBatch } from "./batch-progress.ts";
import { dropCheckpoints } from "./portals.ts";

/** Whether a reorganisation may take back blocks that counted as final. */
export type ReorgReach = "above final" | "below final";

export async function recordReorg(
  ledger: Ledger,
  chainId: bigint,
  blockNumber: bigint,
  reach: ReorgReach = "above final",
  wait?: WaitOptions,
): Promise<void> {
  requireBigint("blockNumber", blockNumber, 0n, MAX_UINT64);
  await ledger.writer.alone(async (group) => {
    const portal = ledger.l1.portalOn(chainId, group);
    const { observed, finalized } = portal;
    const isDeep = finalized !== null && blockNumber <= finalized;
    if (isDeep && reach === "above final")
      throw new MintmarkError(
        "l1_failed",
        `Block ${blockNumber} is final; a chain without it is another chain.`,
      );
    const { time } = ledger.journal.record(group, { kind: "l1Reorganised", chainId, blockNumber });
    group.onDurable(() => ledger.l1.reorganisations++);
    if (observed !== null && observed >= blockNumber) {
      const before = blockNumber > 0n ? blockNumber - 1n : null;
      ledger.l1.portals.set(group, {
        ...portal,
        observed: before,
        finalized: isDeep ? before : finalized,
      });
    }
    const isGone = ({ l1BlockNumber }: BatchRecord) =>
      l1BlockNumber !== null && l1BlockNumber >= blockNumber;
    for (const batch of newestCommitted(ledger, chainId, isGone)) {
      const gone = {
        l1BlockNumber: null,
        committedAt: null,
        l1Sequence: null,
        settledAt: null,
        finalizedAt: null,
      };
      await putBatch(
        ledger,
        group,
        { ...batch, ...gone, status: "submitted" },
        "batch.reverted",
        time,
      );
    }
    await dropCheckpoints(ledger, group, chainId, blockNumber);
    await revertEvents(ledger, group, chainId, blockNumber, time);
  }, wait?.signal);
}

/** Newest first, so that each step undoes the last one. */
async function revertEvents(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  blockNumber: bigint,
  time: number,
) {
  const [gte, lt] = [prefixOf.l1Event(chainId, blockNumber), endOf(prefixOf.l1Event(chainId))];
  for await (const [key, stored] of ledger.store.entries({ gte, lt, reverse: true })) {
    const event = decodeRecord(l1EventRecord, stored, "An L1 event");
    const { vaultId, withdrawalIds, imported, cancelled } = event;
    group.remove(key);
    await revertPower(ledger, group, event);
    if (cancelled !== null)
      group.remove(keyOf.cancellation(chainId, cancelled.signer, cancelled.id));
    if (imported !== null) group.remove(keyOf.import(chainId, imported.mode, imported.batchNumber));
    if (vaultId !== null) {
      const place = placeOfL1Event(key);
      group.remove(keyOf.vaultEvent(vaultId, place.blockNumber, place.logIndex));
      const withdrawn = await withdrawnBefore(ledger, vaultId, blockNumber);
      const { userIndex } = await readVault(ledger, placeOf(vaultId));
      await vaults.changeActivity(
        ledger,
        group,
        { vaultId, userIndex },
        { withdrawn, updatedAt: time },
      );
    }
    for (const withdrawalId of withdrawalIds) {
      const known = await vaults.latestWithdrawal(ledger, group, withdrawalId);
      vaults.putWithdrawal(ledger, group, undecided(known, time), known, "withdrawal.reverted");
      const activity = await vaults.readActivity(ledger, group, known.vaultId);
      vaults.putActivity(ledger, group, known, vaults.reserve(activity, known, time));
    }
    if (vaultId !== null) await judgeSpender(ledger, group, vaultId, time);
  }
}

function undecided(known: WithdrawalRecord, time: number): WithdrawalRecord {
  const status = known.submittedAt === null ? "accepted" : "submitted";
  return {
    ...known,
    status,
    l1BlockNumber: null,
    failure: null,
    settledAt: null,
    finalizedAt: null,
    failedAt: null,
    updatedAt: time,
  };
}

async function withdrawnBefore(
  ledger: Ledger,
  vaultId: bigint,
  blockNumber: bigint,
): Promise<bigint> {
  const [gte, lt] = [prefixOf.vaultEvent(vaultId), keyOf.vaultEvent(vaultId, blockNumber, 0)];
  const newest = ledger.store.entries({ gte, lt, reverse: true, limit: 1 });
  for await (const [, stored] of newest) return decodeRecord(bigRecord, stored, "A vault's event");
  return 0n;
}
