import type { WaitOptions } from "../abort.ts";
import {
  batchView,
  committedCount,
  isCommitted,
  latestBatch,
  sealedCount,
  stateOver,
} from "../batches/batches.ts";
import { setLeftOut } from "../batches/void-slots.ts";
import { MintmarkError } from "../errors.ts";
import { tellBatch } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type Batch, batchIdOf, type Hash, MODES, type Mode } from "../model.ts";
import type { CommitEvent, L1Event, L1State, PortalIdentity } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import { batchRoot, kindOf, manifestRoot } from "../protocol/manifest.ts";
import { packVaultId } from "../protocol/vault.ts";
import type { BatchEventType } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { encodeRecord } from "../store/layout.ts";
import { type BatchRecord, divergenceRecord } from "../store/records.ts";
import { DIVERGENCE_KEY } from "../store/store-keys.ts";
import { judgeBatch } from "../transfers/judge.ts";
import { requireHash, requireMode, requireText } from "../validate.ts";
import { putActivity, readActivity } from "../vaults/activity.ts";
import { readVault } from "../vaults/vaults.ts";

/** A mirror's record of a batch. */
export type Imported = L1Event & { readonly type: "batchImported" };

export async function recordSubmitted(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  txHash: Hash,
  wait?: WaitOptions,
): Promise<Batch> {
  const l1TxHash = requireHash("txHash", txHash);
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestBatch(ledger, group, mode, batchNumber);
    if (isCommitted(batch) || batch.l1TxHash === l1TxHash) return batch;
    const { time } = ledger.journal.record(group, {
      kind: "batchSubmitted",
      mode,
      batchNumber,
      txHash: l1TxHash,
    });
    const submittedAt = batch.submittedAt ?? time;
    return putBatch(
      ledger,
      group,
      { ...batch, status: "submitted", l1TxHash, submittedAt },
      "batch.submitted",
      time,
    );
  }, wait?.signal);
  return batchView(record);
}

/** Throws {@link foreign} unless the batch on L1 or a mirror is the one that this store sealed. */
export function requireOurs(
  ledger: Ledger,
  group: Group,
  { chainId }: PortalIdentity,
  event: CommitEvent | Imported,
): void {
  const batch = ledger.batches.records[event.mode].view(group).get(event.batchNumber);
  const ours =
    (chainId === ledger.services.settlement.chainId) === (event.type === "batchCommitted") &&
    batch !== undefined &&
    rootAs(batch, event) === event.batchRoot.toLowerCase() &&
    batch.dataHash === event.dataHash.toLowerCase() &&
    batch.vaultCount === event.vaultCount;
  if (!ours) {
    const name = batchIdOf(event.mode, event.batchNumber);
    throw foreign(ledger, chainId, `Chain ${chainId} has another ${name} than this store.`);
  }
}

/** The batch's root when L1 leaves out the assets that its event names. */
function rootAs(batch: BatchRecord, event: CommitEvent | Imported): Hash | null {
  const { mode, assets, content, inBlobs, transfers } = batch;
  if (event.type === "batchImported" || assets === null || content === null) return batch.batchRoot;
  const leftOut = event.leftOut ?? [];
  if (leftOut.some((asset) => asset >= assets.length)) return null;
  return batchRoot(kindOf(mode, inBlobs, transfers), manifestRoot(assets, leftOut), content);
}

/**
 * The error for something that this store cannot have caused: `history_diverged` on the state's own
 * chain. On a mirror's chain it is `l1_failed`, because a mirror's committee must not be able to
 * stop the mints of all chains.
 */
export function foreign(ledger: Ledger, chainId: bigint, detail: string): MintmarkError {
  return new MintmarkError(
    chainId === ledger.services.settlement.chainId ? "history_diverged" : "l1_failed",
    detail,
  );
}

/** Whether a batch is recorded as this commit made it. */
export function isRecordedCommit(ledger: Ledger, group: Group, event: CommitEvent): boolean {
  const batch = latestBatch(ledger, group, event.mode, event.batchNumber);
  return (
    isCommitted(batch) &&
    batch.l1TxHash === event.txHash.toLowerCase() &&
    batch.l1BlockNumber === event.blockNumber &&
    batch.committedAt === event.committedAt
  );
}

export async function applyCommitted(
  ledger: Ledger,
  group: Group,
  event: CommitEvent,
): Promise<BatchRecord> {
  const { mode, batchNumber, blockNumber, committedAt, sequence: l1Sequence } = event;
  const batch = asLeftOut(
    ledger,
    group,
    latestBatch(ledger, group, mode, batchNumber),
    event.leftOut ?? [],
  );
  const txHash = requireHash("txHash", event.txHash);
  const { time } = ledger.journal.record(group, {
    kind: "batchCommitted",
    mode,
    batchNumber,
    txHash,
    blockNumber,
    committedAt,
    l1Sequence,
  });
  const settled: BatchRecord = {
    ...batch,
    status: "settled",
    l1TxHash: txHash,
    l1BlockNumber: blockNumber,
    committedAt,
    l1Sequence,
    submittedAt: batch.submittedAt ?? time,
    settledAt: time,
    finalizedAt: null,
  };
  await putBatch(ledger, group, settled, "batch.settled", time);
  if (settled.transfers) await judgeBatch(ledger, group, settled, time);
  return settled;
}

/** Shown to the application when L1 leaves an asset out for an unknown reason. */
const NO_CONSENT = "L1 left the asset out of the batch: it took no consent of the asset's issuer.";

/** The batch as L1 took it. L1 may have left out other assets than the operator expected. */
function asLeftOut(
  ledger: Ledger,
  group: Group,
  batch: BatchRecord,
  places: readonly number[],
): BatchRecord {
  const known = batch.leftOut ?? [];
  if (known.length === places.length && known.every(({ asset }, i) => asset === places[i]))
    return batch;
  const failureAt = (place: number) =>
    known.find(({ asset }) => asset === place)?.failure ?? NO_CONSENT;
  const assets = places.map((asset) => ({ asset, failure: failureAt(asset) }));
  return setLeftOut(ledger, group, batch, assets);
}

/**
 * The committed batches of each mode from the newest down to the first that is not `isWanted`. A
 * batch's block is never before its predecessor's, so older ones need no read. Batches are
 * committed on the settlement contract's chain only.
 */
export function newestCommitted(
  ledger: Ledger,
  chainId: bigint,
  isWanted: (batch: BatchRecord) => boolean,
): BatchRecord[] {
  if (chainId !== ledger.services.settlement.chainId) return [];
  return MODES.flatMap((mode) => {
    const wanted: BatchRecord[] = [];
    for (let at = committedCount(ledger, mode, null) - 1; at >= 0; at--) {
      const batch = ledger.batches.records[mode].durable.get(at);
      if (batch === undefined || !isWanted(batch)) break;
      wanted.push(batch);
    }
    return wanted.reverse();
  });
}

/** Writes a batch, and tells its applications and the listeners. */
export async function putBatch(
  ledger: Ledger,
  group: Group,
  record: BatchRecord,
  type: Exclude<BatchEventType, "batch.sealed">,
  time: number,
): Promise<BatchRecord> {
  ledger.batches.putBatch(group, record);
  await tellBatch(ledger, group, type, record, time);
  group.onDurable(() => ledger.services.emit("batch", { type, batch: batchView(record) }));
  return record;
}

/** Most characters of a token's reason that are kept. */
export const MAX_REFUSAL = 300;

/** A token's answer to the mint of a committed vault. */
export interface VaultRefusal {
  readonly slot: number;
  /** Why the token refuses it; null when it takes it again. */
  readonly refusal: string | null;
}

export async function recordRefusals(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  refusals: readonly VaultRefusal[],
  wait?: WaitOptions,
): Promise<void> {
  requireMode(mode);
  for (const { refusal } of refusals)
    if (refusal !== null) requireText("refusal", refusal, MAX_REFUSAL);
  await ledger.writer.alone(async (group) => {
    const changed = [];
    for (const { slot, refusal } of refusals) {
      const place = { mode, batchNumber, slot };
      const vaultId = packVaultId(place);
      const activity = await readActivity(ledger, group, vaultId);
      if (activity.refusal === refusal) continue;
      const { userIndex } = await readVault(ledger, place);
      changed.push({ slot, refusal, vaultId, userIndex, activity });
    }
    if (changed.length === 0) return;
    const { time } = ledger.journal.record(group, {
      kind: "vaultsRefused",
      mode,
      batchNumber,
      refusals: changed.map(({ slot, refusal }) => ({ slot, refusal })),
    });
    for (const { refusal, activity, ...vault } of changed)
      putActivity(ledger, group, vault, { ...activity, refusal, updatedAt: time });
  }, wait?.signal);
}

export async function compareState(
  ledger: Ledger,
  there: L1State,
  wait?: WaitOptions,
): Promise<boolean> {
  return observing(ledger, "state", wait?.signal, async (group) => {
    if (ledger.l1.divergence !== null) ledger.l1.requireOneHistory();
    for (const mode of MODES) {
      const [sealed, count] = [sealedCount(ledger, mode), countOf(mode, there)];
      if (count > sealed) {
        const detail = `L1 has ${count} batches of ${mode}, and this store has sealed ${sealed}.`;
        throw new MintmarkError("history_diverged", detail);
      }
    }
    const here = stateOver(ledger, there.countValidium, there.countRollup);
    if (here.commitment !== there.commitment) {
      if (MODES.some((mode) => countOf(mode, there) > committedCount(ledger, mode, group)))
        return false;
      const detail = `L1's state after ${there.countValidium} validium and ${there.countRollup} rollup batches is another.`;
      throw new MintmarkError("history_diverged", detail);
    }
    ledger.l1.awaitsComparison = false;
    return true;
  });
}

/**
 * Applies L1's word in the writer, so that no mint is acknowledged after a word that no history of
 * this store explains. Throws `history_diverged` for such a word. One word only casts doubt: the
 * store is marked when the same source still says so later, and the doubt ends when it agrees.
 */
export async function observing<T>(
  ledger: Ledger,
  source: string,
  signal: AbortSignal | undefined,
  body: (group: Group) => Promise<T>,
): Promise<T> {
  const outcome = await ledger.writer.alone(async (group) => {
    try {
      const value = await body(group);
      if (ledger.l1.doubt?.source === source) ledger.l1.doubt = null;
      return { value };
    } catch (error) {
      const isDiverged = error instanceof MintmarkError && error.code === "history_diverged";
      if (!isDiverged || group.operations.length > 0) throw error;
      diverge(ledger, group, source, error.message);
      return { error };
    }
  }, signal);
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** Refuses mints from here on, and marks the store as diverged after a second look. */
function diverge(ledger: Ledger, group: Group, source: string, detail: string): void {
  if (ledger.l1.divergence !== null) return;
  const now = ledger.services.monotonic();
  if (ledger.l1.doubt?.source !== source) ledger.l1.doubt = { source, detail, since: now };
  if (now - ledger.l1.doubt.since < ledger.l1.divergenceMs) return;
  ledger.l1.doubt = null;
  const { time: since } = ledger.journal.record(group, { kind: "historyDiverged", detail });
  ledger.l1.divergence = { detail, since };
  group.put(DIVERGENCE_KEY, encodeRecord(divergenceRecord, ledger.l1.divergence));
}
