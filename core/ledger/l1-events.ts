import { MintmarkError } from "../errors.ts";
import { type Address, type Batch, type Hash, MODES, type Mode, type Uuid } from "../model.ts";
import type { L1Event } from "../ports.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type BatchRecord,
  bigRecord,
  l1EventRecord,
  type WithdrawalRecord,
  withdrawalIdRecord,
} from "../store/records.ts";
import { endOf } from "../store/store.ts";
import {
  authorizationKey,
  l1EventKey,
  l1EventsFrom,
  PREFIX,
  vaultEventKey,
  vaultEventsOf,
} from "../store/store-keys.ts";
import { batchView } from "./batches.ts";
import { tellBatch } from "./event-log.ts";
import type { Ledger } from "./ledger.ts";
import { requireHash } from "./validate.ts";
import { batchIdOf, placeOf, readVault } from "./vaults.ts";
import { slotCountOf } from "./void-runs.ts";
import {
  attempted,
  clearPending,
  isPending,
  latestWithdrawal,
  putActivity,
  putWithdrawal,
  readActivity,
  release,
  reserve,
  setPending,
} from "./withdrawals.ts";

type Committed = L1Event & { readonly type: "batchCommitted" };
type Withdrawn = L1Event & { readonly type: "withdrawn" };

/** A transaction that commits the batch is on its way. */
export async function recordSubmitted(ledger: Ledger, mode: Mode, batchNumber: number, txHash: Hash): Promise<Batch> {
  const l1TxHash = requireHash("txHash", txHash);
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestBatch(ledger, mode, batchNumber);
    const settled = batch.status === "settled" || batch.status === "finalized";
    if (settled || batch.l1TxHash === l1TxHash) return batch;
    const { time } = ledger.record(group, { kind: "batchSubmitted", mode, batchNumber, txHash: l1TxHash });
    const submittedAt = batch.submittedAt ?? time;
    return putBatch(ledger, group, { ...batch, status: "submitted", l1TxHash, submittedAt }, "batchSubmitted", time);
  });
  return batchView(record);
}

export async function recordCommitted(ledger: Ledger, event: Committed): Promise<Batch> {
  const record = await ledger.writer.alone(async (group) => {
    requireOurs(ledger, event);
    return applyCommitted(ledger, group, event);
  });
  return batchView(record);
}

export async function recordWithdrawn(ledger: Ledger, event: Withdrawn): Promise<void> {
  await ledger.writer.alone(async (group) => {
    await requireKnown(ledger, event);
    await applyEvent(ledger, group, event);
  });
}

/** Applies the events of the blocks after the cursor up to `toBlock`, and moves the cursor there. */
export async function recordEvents(ledger: Ledger, events: readonly L1Event[], toBlock: bigint): Promise<void> {
  await ledger.writer.alone(async (group) => {
    const cursor = ledger.head.l1Observed;
    if (cursor !== null && toBlock <= cursor) return;
    const fresh = events.filter(
      ({ blockNumber }) => (cursor === null || blockNumber > cursor) && blockNumber <= toBlock,
    );
    fresh.sort((a, b) =>
      a.blockNumber === b.blockNumber ? a.logIndex - b.logIndex : a.blockNumber < b.blockNumber ? -1 : 1,
    );
    // Everything is checked before anything is changed.
    for (const event of fresh) await requireKnown(ledger, event);
    for (const event of fresh) await applyEvent(ledger, group, event);
    ledger.record(group, { kind: "l1Observed", blockNumber: toBlock });
    ledger.head = { ...ledger.head, l1Observed: toBlock };
  });
}

/** Throws `l1_failed` for what this store cannot have caused: it is not the contract's store, or has lost data. */
async function requireKnown(ledger: Ledger, event: L1Event): Promise<void> {
  if (event.type === "batchCommitted") requireOurs(ledger, event);
  if (event.type === "withdrawn") await requireVault(ledger, event.vaultId);
  if (event.type === "duplicateVoided") await requireVault(ledger, event.laterVaultId);
}

async function requireVault(ledger: Ledger, vaultId: bigint): Promise<void> {
  try {
    await readVault(ledger, placeOf(vaultId));
  } catch (error) {
    if (!(error instanceof MintmarkError) || error.code !== "vault_not_found") throw error;
    throw new MintmarkError("l1_failed", `L1 tells of vault ${vaultId}, which this store does not know.`);
  }
}

function requireOurs(ledger: Ledger, event: Committed): void {
  const batch = ledger.batches[event.mode].latest(event.batchNumber);
  const ours =
    batch !== undefined &&
    batch.batchRoot === event.batchRoot.toLowerCase() &&
    batch.dataHash === event.dataHash.toLowerCase() &&
    slotCountOf(batch) === event.vaultCount;
  if (!ours) {
    const name = batchIdOf(event.mode, event.batchNumber);
    throw new MintmarkError("l1_failed", `L1 has committed another ${name} than this store's: stop and compare.`);
  }
}

async function applyEvent(ledger: Ledger, group: Group, event: L1Event): Promise<void> {
  switch (event.type) {
    case "batchCommitted":
      await applyCommitted(ledger, group, event);
      return;
    case "withdrawn": {
      const { vaultId, quantity, withdrawnTotal: total } = event;
      const recipient = event.recipient.toLowerCase() as Address;
      return applyWithdrawn(ledger, group, event, { vaultId, quantity, total, recipient });
    }
    case "duplicateVoided": {
      // The later vault is exhausted: for an ERC-721, its one unit.
      const exhausted = { vaultId: event.laterVaultId, quantity: 0n, total: 1n, recipient: null };
      return applyWithdrawn(ledger, group, event, exhausted);
    }
    case "authorizationCancelled":
      return applyCancelled(ledger, group, event);
    case "withdrawalFailed":
      return applyFailedAttempt(ledger, group, event);
  }
}

async function applyCommitted(ledger: Ledger, group: Group, event: Committed): Promise<BatchRecord> {
  const { mode, batchNumber, blockNumber, committedAt, sequence: l1Sequence } = event;
  const batch = latestBatch(ledger, mode, batchNumber);
  const txHash = requireHash("txHash", event.txHash);
  const same = batch.l1TxHash === txHash && batch.l1BlockNumber === blockNumber && batch.committedAt === committedAt;
  if (batch.status === "finalized" || (batch.status === "settled" && same)) return batch;
  const facts = { mode, batchNumber, txHash, blockNumber, committedAt, l1Sequence };
  const { time } = ledger.record(group, { kind: "batchCommitted", ...facts });
  const submittedAt = batch.submittedAt ?? time;
  const onL1 = { l1TxHash: txHash, l1BlockNumber: blockNumber, committedAt, l1Sequence };
  const settled: BatchRecord = { ...batch, status: "settled", ...onL1, submittedAt, settledAt: time };
  return putBatch(ledger, group, settled, "batchCommitted", time);
}

interface WithdrawnFacts {
  readonly vaultId: bigint;
  readonly quantity: bigint;
  readonly total: bigint;
  readonly recipient: Withdrawn["recipient"] | null;
}

/** What L1 says has been withdrawn of a vault in all, whoever asked for it; settles or overtakes a pending request. */
async function applyWithdrawn(ledger: Ledger, group: Group, event: L1Event, facts: WithdrawnFacts): Promise<void> {
  const { blockNumber, logIndex } = event;
  const eventKey = l1EventKey(blockNumber, logIndex);
  if ((await group.read(ledger.store, eventKey)) !== undefined) return;
  const { vaultId, total } = facts;
  const txHash = requireHash("txHash", event.txHash);
  const { time } = ledger.record(group, { kind: "vaultWithdrawn", ...facts, blockNumber, logIndex, txHash });
  let activity = { ...(await readActivity(ledger, group, vaultId)), withdrawn: total, updatedAt: time };
  let decided: Uuid | null = null;
  for (const withdrawalId of activity.pending) {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    if (known.withdrawnBefore === total) continue;
    activity = release(activity, known, time);
    decided = known.withdrawalId;
    clearPending(group, known);
    const after = decide(known, facts, { l1TxHash: txHash, l1BlockNumber: blockNumber }, time);
    putWithdrawal(ledger, group, after, after.status === "failed" ? "withdrawal.failed" : "withdrawal.settled");
  }
  putActivity(group, vaultId, activity);
  group.stage(eventKey, encodeRecord(l1EventRecord, { vaultId, withdrawalId: decided }));
  group.put(vaultEventKey(vaultId, blockNumber, logIndex), encodeRecord(bigRecord, total));
}

/** A request is settled by the very withdrawal that it asked for; any other makes its authorization unusable. */
function decide(
  known: WithdrawalRecord,
  { quantity, total, recipient }: WithdrawnFacts,
  onL1: Pick<WithdrawalRecord, "l1TxHash" | "l1BlockNumber">,
  time: number,
): WithdrawalRecord {
  const asked =
    known.withdrawnBefore + known.quantity === total && known.quantity === quantity && known.recipient === recipient;
  if (asked) {
    const submittedAt = known.submittedAt ?? time;
    return { ...known, ...onL1, status: "settled", failure: null, submittedAt, settledAt: time, updatedAt: time };
  }
  const failure = "The owner has withdrawn from this vault on L1, so the authorization is no longer good.";
  return { ...known, status: "failed", failure, failedAt: time, updatedAt: time };
}

async function applyCancelled(
  ledger: Ledger,
  group: Group,
  event: L1Event & { readonly type: "authorizationCancelled" },
): Promise<void> {
  const { blockNumber, logIndex } = event;
  const eventKey = l1EventKey(blockNumber, logIndex);
  if ((await group.read(ledger.store, eventKey)) !== undefined) return;
  const reference = await group.read(ledger.store, authorizationKey(requireHash("digest", event.digest)));
  if (reference === undefined) return;
  const known = await latestWithdrawal(ledger, group, decodeRecord(withdrawalIdRecord, reference, "An authorization"));
  const { owner } = await readVault(ledger, placeOf(known.vaultId));
  // Anybody may cancel a digest of their own making; only the owner's own counts.
  if (!isPending(known) || owner !== event.signer.toLowerCase()) return;
  const { digest } = known;
  const { time } = ledger.record(group, {
    kind: "authorizationCancelled",
    signer: owner,
    digest,
    blockNumber,
    logIndex,
  });
  const failure = "The owner has cancelled the authorization on L1.";
  clearPending(group, known);
  const failed: WithdrawalRecord = { ...known, status: "failed", failure, failedAt: time, updatedAt: time };
  putWithdrawal(ledger, group, failed, "withdrawal.failed");
  putActivity(group, known.vaultId, release(await readActivity(ledger, group, known.vaultId), known, time));
  const decided = { vaultId: known.vaultId, withdrawalId: known.withdrawalId };
  group.stage(eventKey, encodeRecord(l1EventRecord, decided));
}

async function applyFailedAttempt(
  ledger: Ledger,
  group: Group,
  event: L1Event & { readonly type: "withdrawalFailed" },
): Promise<void> {
  const { pending } = await readActivity(ledger, group, event.vaultId);
  for (const withdrawalId of pending) {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    const changed = attempted(ledger, group, known, `The token's contract refused: ${event.reason.slice(0, 1000)}`);
    if (changed !== known) putWithdrawal(ledger, group, changed, "withdrawal.attempt_refused");
  }
}

/** What was settled up to this block is final. Nothing beyond the cursor is: its events are not applied yet. */
export async function recordFinalized(ledger: Ledger, blockNumber: bigint): Promise<void> {
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
  });
}

function settledBatches(ledger: Ledger, within: (blockNumber: bigint) => boolean): BatchRecord[] {
  return MODES.flatMap((mode) =>
    [...ledger.batches[mode].values()].filter(
      ({ status, l1BlockNumber }) => status === "settled" && l1BlockNumber !== null && within(l1BlockNumber),
    ),
  );
}

/** Takes back what blocks from this one on had settled. Throws `l1_failed` for blocks that are final. */
export async function recordReorg(ledger: Ledger, blockNumber: bigint): Promise<void> {
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
  });
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

/** A sealed batch as the writer has it. Throws `batch_not_found`, `proof_not_ready`. */
export function latestBatch(ledger: Ledger, mode: Mode, batchNumber: number): BatchRecord {
  const batch = ledger.batches[mode].latest(batchNumber);
  if (batch === undefined) throw new MintmarkError("batch_not_found");
  if (batch.status === "open") throw new MintmarkError("proof_not_ready", "The batch is still open.");
  return batch;
}

const BATCH_EVENTS = {
  batchSubmitted: "batch.submitted",
  batchCommitted: "batch.settled",
  batchFinalized: "batch.finalized",
  batchReverted: "batch.reverted",
} as const;

/** Writes a batch as it now is, and tells its applications and listeners. */
async function putBatch(
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
