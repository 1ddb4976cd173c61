import type { WaitOptions } from "../abort.ts";
import { invalid, MintmarkError } from "../errors.ts";
import { tell } from "../events/event-log.ts";
import { derivedAgain, isLong, readBatchVaults, recordsAgain } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import {
  type Batch,
  batchIdOf,
  type Hash,
  MAX_BATCH_VAULTS,
  type Mode,
  type VaultId,
} from "../model.ts";
import type { AssetId } from "../ports.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { batchRoot, compareAssets, kindOf, manifestRoot } from "../protocol/manifest.ts";
import { packVaultId, unpackBatchVaultId } from "../protocol/vault.ts";
import { stateLeafOf } from "../sealing/contents.ts";
import type { CompleteRecords } from "../sealing/derive-batch.ts";
import {
  addedRuns,
  leftOutFailure,
  leftOutPlaces,
  mergedRuns,
  runAt,
} from "../sealing/void-runs.ts";
import type { Entry } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import type { ActivityRecord, BatchRecord, LeftOutAsset, VoidRun } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { amountOf, type VaultColumns } from "../store/vault-columns.ts";
import { requireText } from "../validate.ts";
import { latestWithdrawal, putFailed, readActivity } from "../vaults/activity.ts";
import { decodeActivity } from "../vaults/vaults.ts";
import { batchView, latestBatch, latestUncommitted } from "./batches.ts";
import { putDerived } from "./seal.ts";

/**
 * Makes slots of a sealed batch void in one atomic step. Their leaves become zero, the batch is
 * sealed anew, and the later state roots change. Their mints fail: supply and ERC-721 tokens become
 * free, and pending withdrawals fail. Void slots stay as they are.
 */
export async function voidSlots(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  slots: readonly VoidRun[],
  wait?: WaitOptions,
): Promise<Batch> {
  wait?.signal?.throwIfAborted();
  ledger.writer.ensureUsable();
  // Whatever fails here, the writer meets again and judges.
  const early = await derivedEarly(ledger, mode, batchNumber, slots).catch(() => null);
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestUncommitted(ledger, group, mode, batchNumber);
    if (batch.transfers) throw invalid("A batch of transfers is taken back as a whole.");
    const known = ledger.batches.voids[mode].view(group).get(batchNumber);
    const added = addedRuns(known ?? [], slots, batch.vaultCount);
    if (added.length === 0) return batch;
    // A change since puts another record in the table.
    const isSame = early?.batch === batch && early.known === known;
    const vaults = isSame ? early.vaults : await readBatchVaults(ledger, batch);
    const pending = await pendingIn(ledger, mode, batchNumber, added);
    const unsent = { ...batch, ...UNSENT, leftOut: null, given: false };
    const entryOf = (roots: Roots): Entry => {
      return { kind: "slotsVoided", mode, batchNumber, voids: added, ...roots };
    };
    const { resealed } = await sealAnew(
      ledger,
      group,
      unsent,
      vaults,
      added,
      entryOf,
      isSame ? early.derived : null,
    );
    await failSlots(ledger, group, resealed, vaults, added, pending);
    return resealed;
  }, wait?.signal);
  return batchView(record);
}

/**
 * Derives a long batch without these slots before the writer takes the change, because mints wait
 * for the writer. null for a batch that the writer derives in no time, or refuses.
 */
async function derivedEarly(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  slots: readonly VoidRun[],
) {
  const batch = ledger.batches.records[mode].durable.get(batchNumber);
  const isSealed = batch?.status === "sealed" || batch?.status === "submitted";
  if (!isSealed || batch.transfers || !isLong(batch)) return null;
  const known = ledger.batches.voids[mode].durable.get(batchNumber);
  const added = addedRuns(known ?? [], slots, batch.vaultCount);
  if (added.length === 0) return null;
  const vaults = await readBatchVaults(ledger, batch);
  const voids = mergedRuns<VoidRun>(known ?? [], added);
  return { batch, known, vaults, derived: await derivedAgain(ledger, batch, vaults, voids) };
}

/** Frees what the vaults of new void slots took, and tells everyone. */
async function failSlots(
  ledger: Ledger,
  group: Group,
  batch: BatchRecord,
  vaults: VaultColumns,
  added: readonly VoidRun[],
  pending: Awaited<ReturnType<typeof pendingIn>>,
): Promise<void> {
  const slots = added.flatMap(({ firstSlot, count }) =>
    Array.from({ length: count }, (_, i) => firstSlot + i),
  );
  releaseVaults(ledger, group, batch, vaults, slots);
  tellFailed(ledger, group, batch, vaults, added);
  for (const { vaultId, failure } of pending)
    await failVoidWithdrawals(ledger, group, vaultId, failure);
}

/** Any transaction that was sent carried the old batch. */
export const UNSENT = { status: "sealed", l1TxHash: null, submittedAt: null } as const;

/**
 * Journals the batch without these slots, and writes its records and the later state roots.
 *
 * @param early - what follows from the batch without these slots; null to derive it
 */
export async function sealAnew(
  ledger: Ledger,
  group: Group,
  batch: BatchRecord,
  vaults: VaultColumns,
  added: readonly VoidRun[],
  entryOf: (roots: Roots) => Entry,
  early: CompleteRecords | null = null,
): Promise<{ readonly resealed: BatchRecord; readonly time: number }> {
  const { mode, batchNumber } = batch;
  const known = ledger.batches.voids[mode].view(group).get(batchNumber) ?? [];
  const derived =
    early ?? (await derivedAgain(ledger, batch, vaults, mergedRuns<VoidRun>(known, added)));
  const { assets, content, batchRoot, dataHash } = derived;
  const resealed = putRoots(ledger, group, { ...batch, assets, content, batchRoot, dataHash });
  const { time } = ledger.journal.record(
    group,
    entryOf({ batchRoot, dataHash, stateRoot: resealed.stateRoot }),
  );
  const since = added.map((run) => ({ ...run, voidedAt: time, leftOut: false }));
  ledger.batches.putVoids(group, mode, batchNumber, mergedRuns(known, since));
  putDerived(group, batch, derived);
  return { resealed, time };
}

interface Roots {
  readonly batchRoot: Hash;
  readonly dataHash: Hash;
  readonly stateRoot: Hash;
}

/** Writes a sealed batch with a new root, and the state roots from it on. */
function putRoots(ledger: Ledger, group: Group, changed: BatchRecord) {
  const { mode, batchNumber } = changed;
  const history = ledger.batches.histories[mode].view(group).first(batchNumber);
  history.append(stateLeafOf(changed));
  const resealed = { ...changed, stateRoot: bytesToHex(history.root()) };
  ledger.batches.putBatch(group, resealed);
  for (
    let next = batchNumber + 1;
    next < ledger.batches.histories[mode].view(group).count;
    next++
  ) {
    const later = latestBatch(ledger, group, mode, next);
    history.append(stateLeafOf(later));
    ledger.batches.putBatch(group, { ...later, stateRoot: bytesToHex(history.root()) });
  }
  ledger.batches.histories[mode].put(group, history);
  return resealed;
}

/** Gives back the supply of the vaults in some slots, and removes their tokens from the index. */
export function releaseVaults(
  ledger: Ledger,
  group: Group,
  { mode, batchNumber }: BatchRecord,
  vaults: VaultColumns,
  slots: Iterable<number>,
): void {
  const firstOrdinal = ledger.batches.refs.firstOrdinalOf(mode, batchNumber);
  const amounts = new Map<number, bigint>();
  const users = new Set<number>();
  for (const slot of slots) {
    const assetIndex = vaults.assetIndex[slot]!;
    users.add(vaults.userIndex[slot]!);
    const amount = amountOf(vaults.amountHigh[slot]!, vaults.amountLow[slot]!);
    amounts.set(assetIndex, (amounts.get(assetIndex) ?? 0n) + amount);
    if (ledger.tenants.standards[assetIndex] !== "erc721") continue;
    ledger.minting.tokens.remove(
      vaults.tokenHash[slot]!,
      ledger.batches.refs.refOf({ mode, firstOrdinal }, slot),
    );
  }
  group.onDurable(() => {
    for (const user of users) ledger.readers.tokenSums.forget(user);
  });
  for (const [assetIndex, amount] of amounts) {
    const asset = ledger.tenants.assetNow(assetIndex, group);
    ledger.tenants.putAsset(group, { ...asset, minted: asset.minted - amount });
  }
}

/**
 * Tells the applications whose mints failed: one event for each run of vaults of one application.
 */
export function tellFailed(
  ledger: Ledger,
  group: Group,
  { mode, batchNumber }: BatchRecord,
  vaults: VaultColumns,
  added: readonly VoidRun[],
): void {
  const applicationOf = (slot: number) => vaults.holderOf(slot).applicationIndex;
  for (const { firstSlot, count, failure } of added) {
    const end = firstSlot + count;
    for (let start = firstSlot, next = start; start < end; start = next) {
      const application = applicationOf(start);
      while (next < end && applicationOf(next) === application) next++;
      const firstVaultId = packVaultId({ mode, batchNumber, slot: start });
      const event = { type: "mint.failed", firstVaultId, vaults: next - start, failure } as const;
      tell(ledger, group, application, ledger.journal.head.view(group).time, event);
    }
  }
}

/** The vaults of these slots that somebody has asked to withdraw, in their order. */
export async function requestedIn(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  failing: readonly VoidRun[],
) {
  const found: { vaultId: VaultId; failure: string; activity: ActivityRecord }[] = [];
  const gte = keyOf.activity(packVaultId({ mode, batchNumber, slot: 0 }));
  const lte = keyOf.activity(packVaultId({ mode, batchNumber, slot: MAX_BATCH_VAULTS - 1 }));
  for await (const [key, stored] of ledger.store.entries({ gte, lte })) {
    const vaultId = key.readBigUInt64BE(1);
    const run = runAt(failing, unpackBatchVaultId(vaultId).slot);
    if (run !== null)
      found.push({ vaultId, failure: run.failure, activity: decodeActivity(stored) });
  }
  return found;
}

/** The vaults of failing slots that have a pending withdrawal. */
export async function pendingIn(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  failing: readonly VoidRun[],
) {
  const requested = await requestedIn(ledger, mode, batchNumber, failing);
  return requested.filter(({ activity }) => activity.pending.length > 0);
}

/** Fails the pending withdrawals of a void slot's vault. */
export function failVoidWithdrawals(
  ledger: Ledger,
  group: Group,
  vaultId: VaultId,
  failure: string,
): Promise<void> {
  const { mode, batchNumber } = unpackBatchVaultId(vaultId);
  return failWithdrawals(
    ledger,
    group,
    vaultId,
    `The vault of ${batchIdOf(mode, batchNumber)} is void: ${failure}`,
  );
}

export async function failWithdrawals(
  ledger: Ledger,
  group: Group,
  vaultId: VaultId,
  reason: string,
  time = ledger.journal.head.view(group).time,
): Promise<void> {
  const { pending } = await readActivity(ledger, group, vaultId);
  for (const withdrawalId of pending) {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    putFailed(ledger, group, known, await readActivity(ledger, group, vaultId), reason, time);
  }
}

/**
 * Records which assets L1 leaves out of a sealed batch's manifest, in place of earlier ones. Batch
 * root and later state roots change; vaults, data and the vault tree do not. The mints fail only
 * when the commit is final.
 */
export function setLeftOut(
  ledger: Ledger,
  group: Group,
  batch: BatchRecord,
  assets: readonly LeftOutAsset[],
) {
  const { mode, batchNumber, assets: named, content, dataHash, inBlobs, transfers } = batch;
  if (named === null || content === null || dataHash === null)
    throw new MintmarkError("proof_not_ready", "The batch is still open.");
  const leftOut = assets.length === 0 ? null : assets;
  const manifest = manifestRoot(named, leftOutPlaces({ leftOut }));
  const resealed = putRoots(ledger, group, {
    ...batch,
    leftOut,
    batchRoot: batchRoot(kindOf(mode, inBlobs, transfers), manifest, content),
  });
  const roots = { batchRoot: resealed.batchRoot as Hash, dataHash, stateRoot: resealed.stateRoot };
  ledger.journal.record(group, { kind: "assetsLeftOut", mode, batchNumber, assets, ...roots });
  return resealed;
}

/**
 * Leaves assets out before the commit, for an operator who knows which consents are missing. Throws
 * `batch_committed`.
 */
export async function leaveOut(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  assets: readonly LeftOut[],
  wait?: WaitOptions,
): Promise<Batch> {
  const record = await ledger.writer.alone(async (group) => {
    const batch = latestUncommitted(ledger, group, mode, batchNumber);
    const leftOut = placesOf(batch, assets);
    const same = JSON.stringify(leftOut) === JSON.stringify(batch.leftOut ?? []);
    return same ? batch : setLeftOut(ledger, group, batch, leftOut);
  }, wait?.signal);
  return batchView(record);
}

/**
 * Assets by their manifest places, ascending. Throws `validation_failed` for a place that the
 * manifest lacks.
 */
function placesOf(batch: BatchRecord, assets: readonly LeftOut[]): LeftOutAsset[] {
  return assets
    .map((each) => {
      const asset = (batch.assets ?? []).findIndex((known) => compareAssets(known, each) === 0);
      if (asset < 0) throw invalid(`the batch holds no asset ${each.assetType}`);
      return { asset, failure: requireText("failure", each.failure, 2000) };
    })
    .sort((a, b) => a.asset - b.asset);
}

/** An asset of a batch, and why L1 leaves it out. */
export interface LeftOut extends AssetId {
  readonly failure: string; // 1 to 2000 characters; the application reads it
}

/**
 * The batch is final, so mints of its left-out assets fail as in {@link voidSlots}. Data and roots
 * stay.
 */
export async function failLeftOut(ledger: Ledger, group: Group, batch: BatchRecord): Promise<void> {
  const { mode, batchNumber } = batch;
  if (batch.leftOut === null) return;
  const vaults = await readBatchVaults(ledger, batch);
  const failures: (string | null | undefined)[] = [];
  const slots: VoidRun[] = [];
  for (let firstSlot = 0; firstSlot < vaults.count; firstSlot++) {
    const assetIndex = vaults.assetIndex[firstSlot]!;
    if (failures[assetIndex] === undefined)
      failures[assetIndex] = leftOutFailure(batch, ledger.tenants.assetAt(assetIndex));
    const failure = failures[assetIndex] ?? null;
    if (failure !== null) slots.push({ firstSlot, count: 1, failure });
  }
  const known = ledger.batches.voids[mode].view(group).get(batchNumber) ?? [];
  const added = addedRuns(known, slots, batch.vaultCount);
  if (added.length === 0) return;
  const pending = await pendingIn(ledger, mode, batchNumber, added);
  const { time } = ledger.journal.record(group, {
    kind: "slotsLeftOut",
    mode,
    batchNumber,
    voids: added,
  });
  const since = added.map((run) => ({ ...run, voidedAt: time, leftOut: true }));
  const runs = mergedRuns(known, since);
  ledger.batches.putVoids(group, mode, batchNumber, runs);
  const { tokens } = await recordsAgain(ledger, batch, vaults, runs);
  group.put(keyOf.batchTokens(mode, batchNumber), tokens);
  await failSlots(ledger, group, batch, vaults, added, pending);
}
