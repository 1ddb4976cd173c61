import { batchView, latestBatch } from "../batches/batches.ts";
import { MintmarkError } from "../errors.ts";
import { tellBatch } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Batch, Hash, Mode } from "../model.ts";
import { batchIdOf } from "../model.ts";
import type { L1Event, PortalIdentity } from "../ports.ts";
import { slotCountOf } from "../sealing/void-runs.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord } from "../store/records.ts";
import { requireHash } from "../validate.ts";

/** What L1 tells of a batch that it has committed. */
export type Committed = L1Event & { readonly type: "batchCommitted" };
/** What a mirror tells of a batch that it knows. */
export type Imported = L1Event & { readonly type: "batchImported" };

/** A transaction that commits the batch is on its way. */
export async function recordSubmitted(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  txHash: Hash,
  signal?: AbortSignal,
): Promise<Batch> {
  const l1TxHash = requireHash("txHash", txHash);
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestBatch(ledger, mode, batchNumber);
    const settled = batch.status === "settled" || batch.status === "finalized";
    if (settled || batch.l1TxHash === l1TxHash) return batch;
    const { time } = ledger.record(group, { kind: "batchSubmitted", mode, batchNumber, txHash: l1TxHash });
    const submittedAt = batch.submittedAt ?? time;
    return putBatch(ledger, group, { ...batch, status: "submitted", l1TxHash, submittedAt }, "batchSubmitted", time);
  }, signal);
  return batchView(record);
}

/**
 * Requires that the settlement contract has committed, or a mirror learned of, the very batch that this store sealed. Throws as
 * {@link foreign} says.
 */
export function requireOurs(ledger: Ledger, { chainId }: PortalIdentity, event: Committed | Imported): void {
  const batch = ledger.batches[event.mode].latest(event.batchNumber);
  const ours =
    (chainId === ledger.settlement.chainId) === (event.type === "batchCommitted") &&
    batch !== undefined &&
    batch.batchRoot === event.batchRoot.toLowerCase() &&
    batch.dataHash === event.dataHash.toLowerCase() &&
    slotCountOf(batch) === event.vaultCount;
  if (!ours) {
    const name = batchIdOf(event.mode, event.batchNumber);
    throw foreign(ledger, chainId, `Chain ${chainId} has another ${name} than this store.`);
  }
}

/**
 * What this store cannot have caused: `history_diverged` on the state's own chain. On a mirror's chain it is `l1_failed`: a mirror's committee
 * must not be able to stop the mints of all chains.
 */
export function foreign(ledger: Ledger, chainId: bigint, detail: string): MintmarkError {
  return new MintmarkError(chainId === ledger.settlement.chainId ? "history_diverged" : "l1_failed", detail);
}

export async function applyCommitted(ledger: Ledger, group: Group, event: Committed): Promise<BatchRecord> {
  const { mode, batchNumber, blockNumber, committedAt, sequence: l1Sequence } = event;
  const batch = latestBatch(ledger, mode, batchNumber);
  const txHash = requireHash("txHash", event.txHash);
  const same = batch.l1TxHash === txHash && batch.l1BlockNumber === blockNumber && batch.committedAt === committedAt;
  if ((batch.status === "finalized" || batch.status === "settled") && same) return batch;
  const facts = { mode, batchNumber, txHash, blockNumber, committedAt, l1Sequence };
  const { time } = ledger.record(group, { kind: "batchCommitted", ...facts });
  const submittedAt = batch.submittedAt ?? time;
  const onL1 = { l1TxHash: txHash, l1BlockNumber: blockNumber, committedAt, l1Sequence };
  const times = { submittedAt, settledAt: time, finalizedAt: null };
  const settled: BatchRecord = { ...batch, status: "settled", ...onL1, ...times };
  return putBatch(ledger, group, settled, "batchCommitted", time);
}

const BATCH_EVENTS = {
  batchSubmitted: "batch.submitted",
  batchCommitted: "batch.settled",
  batchFinalized: "batch.finalized",
  batchReverted: "batch.reverted",
} as const;

/** Writes a batch as it now is, and tells its applications and listeners. */
export async function putBatch(
  ledger: Ledger,
  group: Group,
  record: BatchRecord,
  event: keyof typeof BATCH_EVENTS,
  time: number,
): Promise<BatchRecord> {
  ledger.putBatch(group, record);
  await tellBatch(ledger, group, BATCH_EVENTS[event], record, time);
  group.onDurable(() => ledger.emit(event, batchView(record)));
  return record;
}
