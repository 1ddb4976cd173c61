import { highWord, lowWord } from "../columns/amount-words.ts";
import type { StoredVault } from "../columns/vault-columns.ts";
import { VaultColumns } from "../columns/vault-columns.ts";
import { MintmarkError } from "../errors.ts";
import { tell, tellSealed } from "../events/event-log.ts";
import { derivedAgain, readBatchVaults, tokenHashOf } from "../ledger/batch-vaults.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { OpenBatch } from "../ledger/open-batch.ts";
import { type Address, batchIdOf, MAX_BATCH_VAULTS, MODES, type Mode, type VaultId } from "../model.ts";
import type { ClaimedBatch } from "../ports.ts";
import type { VaultEntry } from "../protocol/batch-data.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { isBlobBatchData, trustedSlots } from "../protocol/blob-batch.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { packVaultId, unpackVaultId } from "../protocol/vault.ts";
import { itemRecords, itemsOf } from "../sealing/batch-items.ts";
import { stateLeafOf } from "../sealing/contents.ts";
import type { DerivedBatch } from "../sealing/derive-batch.ts";
import { runAt } from "../sealing/void-runs.ts";
import type { EntryOf } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import type { BatchRecord, LostRun, VoidRun } from "../store/records.ts";
import * as keys from "../store/store-keys.ts";
import { CHUNK_VAULTS, encodeChunk } from "../store/vault-chunk.ts";
import { decodeActivity } from "../vaults/vaults.ts";
import { latestWithdrawal, putFailed, readActivity } from "../vaults/withdrawals.ts";
import { bindIds, unboundBy } from "./adopted-ids.ts";

/** The application that gets vaults without a known user. */
export interface Holder {
  readonly applicationIndex: number;
  readonly userIndex: number;
}

type Adoption = EntryOf<"historyAdopted">;
type AdoptedEntry = Adoption["batches"][number];
type LostEntry = Adoption["lost"][number];
type VaultList = readonly StoredVault[];

const LOST = "L1 holds another history, in which this mint is not. Repeat it under another idempotency key.";
const VOID = "L1 has this slot void";

/** A batch of this store that L1's history replaces. */
interface Dropped {
  readonly record: BatchRecord;
  readonly vaults: VaultColumns;
}

/** A batch of L1's history, to be written to the store. */
interface Incoming {
  readonly entry: Omit<AdoptedEntry, "stateRoot">;
  readonly vaults: VaultList;
  readonly columns: VaultColumns;
  readonly derived: DerivedBatch;
  readonly inBlobs: boolean;
}

/**
 * Replaces this store's batches by L1's, from the first difference of each mode on, in one atomic step. Ends the
 * divergence. Mints that L1's history lacks fail: their supply and ERC-721 tokens become free, and their withdrawals
 * fail.
 *
 * @param holderOf - the user of each vault that no mint of this store made, by owner in lower case
 */
export async function adoptHistory(
  ledger: Ledger,
  adopted: readonly AdoptedBatches[],
  holderOf: (owner: Address) => Holder,
  signal?: AbortSignal,
): Promise<Adopted> {
  for (const mode of MODES) {
    while (ledger.sealings[mode].size > 0) await Promise.allSettled(ledger.sealings[mode].values());
  }
  return ledger.writer.alone(async (group) => {
    if (ledger.divergence === null) throw new MintmarkError("validation_failed", "The store is not diverged from L1.");
    const dropped = await droppedBatches(ledger, adopted);
    const incoming: Incoming[] = [];
    for (const { batches } of adopted) {
      for (const batch of batches) incoming.push(await incomingBatch(ledger, batch, dropped, holderOf));
    }
    const lost = await lostOf(ledger, dropped, incoming);
    const pending = await pendingOf(ledger, lost);
    const unbound = await unboundBy(
      ledger,
      adopted,
      dropped.map(({ vaults }) => vaults),
    );
    const trees = new Map(
      adopted.map(({ mode, first }) => [
        mode,
        ledger.histories.latest(mode).first(Math.min(first, ledger.histories.latest(mode).count)),
      ]),
    );
    const places = [...incoming.keys()].filter((i) => incoming[i]?.inBlobs);
    const inBlobs = places.length === 0 ? null : places;
    const batches = incoming.map(({ entry, vaults, derived }) => {
      const tree = trees.get(entry.mode);
      if (tree === undefined) throw new Error("a batch of no mode");
      tree.append(stateLeafOf({ ...entry, content: derived.content, vaultCount: vaults.length }));
      return { ...entry, stateRoot: bytesToHex(tree.root()) };
    });
    const firsts = adopted.map(({ mode, first: batchNumber }) => ({ mode, batchNumber }));
    const entry = { kind: "historyAdopted", firsts, failure: LOST, batches, lost, inBlobs } as const;
    const { sequence, time } = ledger.record(group, entry);
    group.operations.push({ type: "del", key: keys.DIVERGENCE_KEY });
    ledger.divergence = null;
    for (const batch of dropped.toReversed()) drop(ledger, group, batch);
    for (const key of unbound) group.remove(key);
    for (const [mode, tree] of trees) ledger.histories.put(group, mode, tree);
    tellLost(ledger, group, dropped, lost, time);
    for (const vaultId of pending) await failWithdrawals(ledger, group, vaultId);
    for (const { withdrawn, ...each } of lost) {
      ledger.putLost(group, { ...each, withdrawn, upTo: sequence, failure: LOST, since: time });
    }
    for (const [i, batch] of incoming.entries()) putAdopted(ledger, group, batch, batches[i] as AdoptedEntry, time);
    for (const { mode, first, batches } of adopted) reopen(ledger, mode, first + batches.length);
    ledger.bindings.clear();
    group.onDurable(() => ledger.tokenSums.forgetAll());
    const lostVaults = lost.flatMap(({ runs }) => runs).reduce((sum, { count }) => sum + count, 0);
    return { batches: batches.length, lostVaults };
  }, signal);
}

async function droppedBatches(ledger: Ledger, adopted: readonly AdoptedBatches[]): Promise<Dropped[]> {
  const dropped: Dropped[] = [];
  for (const { mode, first } of adopted) {
    for (let number = first; number < ledger.batches[mode].latestCount; number++) {
      const record = ledger.batches[mode].latest(number);
      if (record === undefined) throw new MintmarkError("store_corrupt", `${batchIdOf(mode, number)} is missing.`);
      if (record.status === "settled" || record.status === "finalized") throw new MintmarkError("batch_committed");
      if (record.transfers) throw new MintmarkError("validation_failed", "Transfers must be taken back first.");
      dropped.push({ record, vaults: await readBatchVaults(ledger, record) });
    }
  }
  return dropped;
}

/** A batch's vaults. A vault that this store has in the same slot keeps its user; the others get one by owner. */
async function incomingBatch(
  ledger: Ledger,
  batch: ClaimedBatch,
  dropped: readonly Dropped[],
  holderOf: (owner: Address) => Holder,
): Promise<Incoming> {
  const { mode, batchNumber, batchRoot, dataHash, data } = batch;
  const inBlobs = isBlobBatchData(data);
  const here = dropped.find(({ record }) => record.mode === mode && record.batchNumber === batchNumber)?.vaults;
  const assetIndexOf = assetIndices(ledger);
  const now = ledger.now();
  const voids: VoidRun[] = [];
  const vaults = trustedSlots(data).map((entry, slot): StoredVault => {
    const own = here !== undefined && slot < here.count ? here.at(slot) : null;
    if (entry === null) {
      voids.push({ firstSlot: slot, count: 1, failure: VOID });
      const owner = ledger.settlement.contract.toLowerCase() as Address;
      const nothing = { owner, assetIndex: 0, amount: 1n, blob: "0x", createdAt: now, updatedAt: now } as const;
      return own ?? { ...holderOf(owner), ...nothing };
    }
    const assetIndex = assetIndexOf(entry);
    const { amount, blob } = entry;
    if (own !== null && isSame(own, entry, assetIndex)) return { ...own, amount };
    const owner = entry.owner.toLowerCase() as Address;
    return { ...holderOf(owner), owner, assetIndex, amount, blob, createdAt: now, updatedAt: now };
  });
  const columns = new VaultColumns();
  for (const vault of vaults) push(ledger, columns, vault);
  const derived = await derivedAgain(ledger, { mode, batchNumber, inBlobs }, columns, voids);
  if (derived.batchRoot !== batchRoot || derived.dataHash !== dataHash) {
    const name = batchIdOf(mode, batchNumber);
    throw new MintmarkError("l1_failed", `The data of ${name} do not make the root that L1 has of it.`);
  }
  const chunks = Array.from({ length: Math.ceil(vaults.length / CHUNK_VAULTS) }, (_, chunk) =>
    bytesToHex(encodeChunk(vaults.slice(chunk * CHUNK_VAULTS, (chunk + 1) * CHUNK_VAULTS))),
  );
  return { entry: { mode, batchNumber, chunks, voids, batchRoot, dataHash }, vaults, columns, derived, inBlobs };
}

function push(ledger: Ledger, columns: VaultColumns, vault: StoredVault): void {
  const blobs = hexToBytes(vault.blob);
  const { applicationIndex, userIndex, assetIndex, amount, createdAt, updatedAt } = vault;
  const amounts = { amountHigh: highWord(amount), amountLow: lowWord(amount) };
  const added = { assetIndex, ...amounts, blobs, start: 0, end: blobs.length };
  const holder = { applicationIndex, userIndex, owner: hexToBytes(vault.owner) };
  columns.push(holder, added, createdAt, updatedAt, tokenHashOf(ledger, added));
}

/** The asset of a vault, by type. Throws `asset_not_found` when the operator must add it first. */
export function assetIndices(ledger: Ledger): (vault: VaultEntry) => number {
  const indices = new Map<string, number>();
  for (const { removed, chainId, assetType, assetIndex } of ledger.assets.latestValues())
    if (!removed) indices.set(`${chainId} ${assetType}`, assetIndex);
  return ({ chainId, assetType }) => {
    const assetIndex = indices.get(`${chainId} ${assetType}`);
    if (assetIndex !== undefined) return assetIndex;
    const detail = `L1's history has vaults of asset type ${assetType} of chain ${chainId}. Add this asset, then adopt again.`;
    throw new MintmarkError("asset_not_found", detail);
  };
}

function isSame(own: StoredVault, { owner, blob }: VaultEntry, assetIndex: number): boolean {
  return own.assetIndex === assetIndex && own.blob === blob && own.owner === owner.toLowerCase();
}

/** The vaults of each dropped batch that L1's history lacks. */
async function lostOf(
  ledger: Ledger,
  dropped: readonly Dropped[],
  incoming: readonly Incoming[],
): Promise<LostEntry[]> {
  const lost: LostEntry[] = [];
  for (const { record, vaults } of dropped) {
    const { mode, batchNumber } = record;
    const there = incoming.find(({ entry }) => entry.mode === mode && entry.batchNumber === batchNumber);
    const runs: LostRun[] = [];
    for (let slot = 0; slot < vaults.count; slot++) {
      const own = vaults.at(slot);
      const theirs = there?.vaults[slot];
      const wasVoid = runAt(ledger.voids[mode].latest(batchNumber) ?? [], slot) !== null;
      const isThere =
        theirs?.userIndex === own.userIndex && theirs.assetIndex === own.assetIndex && theirs.blob === own.blob;
      const above = isThere && !wasVoid && runAt(there?.entry.voids ?? [], slot) === null ? theirs.amount : 0n;
      if (above >= own.amount) continue;
      const last = runs.at(-1);
      if (above === 0n && last?.above === 0n && last.firstSlot + last.count === slot)
        runs[runs.length - 1] = { ...last, count: last.count + 1 };
      else runs.push({ firstSlot: slot, count: 1, above });
    }
    if (runs.length === 0) continue;
    const withdrawn = await requestedIn(ledger, record, vaults, runs);
    lost.push({ mode, batchNumber, runs, withdrawn });
  }
  return lost;
}

/** Lost amounts with a requested withdrawal. */
async function requestedIn(
  ledger: Ledger,
  { mode, batchNumber }: BatchRecord,
  vaults: VaultColumns,
  runs: readonly LostRun[],
) {
  const found: LostEntry["withdrawn"][number][] = [];
  for (const { slot } of await touchedIn(ledger, mode, batchNumber)) {
    if (!isIn(runs, slot)) continue;
    const { assetIndex, blob } = vaults.at(slot);
    found.push({ slot, assetIndex, blob });
  }
  return found;
}

function isIn(runs: readonly LostRun[], slot: number): boolean {
  return runs.some(({ firstSlot, count }) => slot >= firstSlot && slot < firstSlot + count);
}

async function touchedIn(ledger: Ledger, mode: Mode, batchNumber: number) {
  const gte = keys.activityKey(packVaultId({ mode, batchNumber, slot: 0 }));
  const lte = keys.activityKey(packVaultId({ mode, batchNumber, slot: MAX_BATCH_VAULTS - 1 }));
  const found: { readonly slot: number; readonly isPending: boolean }[] = [];
  for await (const [key, stored] of ledger.store.entries({ gte, lte })) {
    const { slot } = unpackVaultId(key.readBigUInt64BE(1));
    found.push({ slot, isPending: decodeActivity(stored).pending.length > 0 });
  }
  return found;
}

/** Lost vaults with a pending withdrawal. */
async function pendingOf(ledger: Ledger, lost: readonly LostEntry[]): Promise<VaultId[]> {
  const found: VaultId[] = [];
  for (const { mode, batchNumber, runs } of lost) {
    for (const { slot, isPending } of await touchedIn(ledger, mode, batchNumber)) {
      if (isPending && isIn(runs, slot)) found.push(packVaultId({ mode, batchNumber, slot }));
    }
  }
  return found;
}

async function failWithdrawals(ledger: Ledger, group: Group, vaultId: VaultId): Promise<void> {
  for (const withdrawalId of (await readActivity(ledger, group, vaultId)).pending) {
    const known = await latestWithdrawal(ledger, group, withdrawalId);
    putFailed(ledger, group, known, await readActivity(ledger, group, vaultId), LOST, ledger.head.time);
  }
}

/** Removes a batch from the store: its supply, tokens and records. */
function drop(ledger: Ledger, group: Group, { record, vaults }: Dropped): void {
  const { mode, batchNumber } = record;
  count(ledger, group, record, vaults, -1n);
  const chunks = Array.from({ length: Math.ceil(vaults.count / CHUNK_VAULTS) }, (_, i) =>
    keys.chunkKey(mode, batchNumber, i),
  );
  const derived = [keys.batchDataKey, keys.pageRootsKey, keys.batchTokensKey, keys.batchApplicationsKey, keys.voidsKey];
  for (const key of [
    keys.batchKey(mode, batchNumber),
    ...chunks,
    ...derived.map((keyOf) => keyOf(mode, batchNumber)),
  ]) {
    group.operations.push({ type: "del", key });
  }
  const items = itemsOf(record, vaults, (index) => ledger.assetAt(index), null);
  for (const { key } of itemRecords(items)) group.operations.push({ type: "del", key });
  ledger.batches[mode].remove(group, batchNumber);
  ledger.voids[mode].remove(group, batchNumber);
  ledger.refs.truncate(mode, batchNumber);
}

/** Adds a batch's vaults to supplies and token index, or removes them. */
function count(
  ledger: Ledger,
  group: Group,
  { mode, batchNumber }: Pick<BatchRecord, "mode" | "batchNumber">,
  vaults: VaultColumns,
  sign: 1n | -1n,
): void {
  const voids = ledger.voids[mode].latest(batchNumber) ?? [];
  const firstOrdinal = ledger.refs.firstOrdinalOf(mode, batchNumber);
  const sums = new Map<number, bigint>();
  const next = new Map<number, bigint>();
  for (let slot = 0; slot < vaults.count; slot++) {
    if (runAt(voids, slot) !== null) continue;
    const { assetIndex, amount } = vaults.at(slot);
    sums.set(assetIndex, (sums.get(assetIndex) ?? 0n) + sign * amount);
    if (ledger.standards[assetIndex] !== "erc721") continue;
    const place = [vaults.tokenHash[slot] as number, ledger.refs.refOf({ mode, firstOrdinal }, slot)] as const;
    if (sign > 0n) ledger.tokens.insert(...place);
    else ledger.tokens.remove(...place);
    const { nextTokenId, blobScheme } = ledger.assetAt(assetIndex);
    if (sign < 0n || nextTokenId === null) continue;
    // The engine's next id is above every id in L1's history.
    const behind = (tokenIdOf("erc721", blobScheme, vaults.blobAt(slot)) ?? 0n) + 1n;
    if (behind > (next.get(assetIndex) ?? nextTokenId)) next.set(assetIndex, behind);
  }
  for (const [assetIndex, sum] of sums) {
    const asset = ledger.assetAt(assetIndex);
    const nextTokenId = next.get(assetIndex) ?? asset.nextTokenId;
    ledger.putAsset(group, { ...asset, minted: asset.minted + sum, nextTokenId });
  }
}

/** One event for each run of lost vaults of one application. */
function tellLost(
  ledger: Ledger,
  group: Group,
  dropped: readonly Dropped[],
  lost: readonly LostEntry[],
  time: number,
): void {
  for (const { mode, batchNumber, runs } of lost) {
    const vaults = dropped.find(({ record }) => record.mode === mode && record.batchNumber === batchNumber)?.vaults;
    if (vaults === undefined) throw new Error("lost mints of a batch that stays");
    for (const { firstSlot, count } of runs) {
      const end = firstSlot + count;
      for (let start = firstSlot, next = start; start < end; start = next) {
        const { applicationIndex } = vaults.holderOf(start);
        while (next < end && vaults.holderOf(next).applicationIndex === applicationIndex) next++;
        const firstVaultId = packVaultId({ mode, batchNumber, slot: start });
        tell(ledger, group, applicationIndex, time, {
          type: "mint.failed",
          firstVaultId,
          vaults: next - start,
          failure: LOST,
        });
      }
    }
  }
}

function putAdopted(
  ledger: Ledger,
  group: Group,
  { vaults, columns, derived, inBlobs }: Incoming,
  entry: AdoptedEntry,
  time: number,
): void {
  const { mode, batchNumber, chunks, voids, batchRoot, dataHash, stateRoot } = entry;
  beginAt(ledger, mode, batchNumber);
  for (const [i, chunk] of chunks.entries()) group.put(keys.chunkKey(mode, batchNumber, i), hexToBytes(chunk));
  group.put(keys.batchDataKey(mode, batchNumber), derived.data);
  group.put(keys.pageRootsKey(mode, batchNumber), derived.pageRoots);
  group.put(keys.batchTokensKey(mode, batchNumber), derived.tokens);
  for (const { key, value } of itemRecords(derived.items)) group.put(key, value);
  const notYet = { l1TxHash: null, l1BlockNumber: null, committedAt: null, l1Sequence: null };
  const times = { openedAt: vaults[0]?.createdAt ?? time, sealedAt: time, submittedAt: null, settledAt: null };
  const counts = { vaultCount: vaults.length, mintCount: vaults.length };
  const roots = { batchRoot, dataHash, stateRoot };
  const record = {
    mode,
    batchNumber,
    status: "sealed",
    ...counts,
    assets: derived.assets,
    content: derived.content,
    ...roots,
    ...notYet,
    ...times,
    finalizedAt: null,
    leftOut: null,
    inBlobs,
    transfers: false,
  } as const;
  ledger.putBatch(group, record);
  if (voids.length > 0)
    ledger.putVoids(
      group,
      mode,
      batchNumber,
      voids.map((run) => ({ ...run, voidedAt: time, leftOut: false })),
    );
  count(ledger, group, record, columns, 1n);
  bindIds(ledger, group, vaults, voids);
  tellSealed(ledger, group, record, columns, time);
}

/** The mode goes on after L1's batches. */
function reopen(ledger: Ledger, mode: Mode, batchNumber: number): void {
  const firstOrdinal = beginAt(ledger, mode, batchNumber);
  const open = new OpenBatch(mode, batchNumber, ledger.now(), firstOrdinal, ledger.limits, ledger.isForeign);
  ledger.unsealed.replace(open);
}

/** Places a batch behind the one before it. Returns the ordinal of its first vault. */
function beginAt({ batches, refs }: Ledger, mode: Mode, batchNumber: number): number {
  const before = batches[mode].latest(batchNumber - 1);
  const vaults = before?.vaultCount ?? 0;
  const firstOrdinal = before === undefined ? 0 : refs.firstOrdinalOf(mode, batchNumber - 1) + vaults;
  const vaultsBefore = before === undefined ? 0 : refs.vaultsBefore(mode, batchNumber - 1) + vaults;
  refs.set(mode, batchNumber, firstOrdinal, vaultsBefore);
  return firstOrdinal;
}

/** L1's batches of a mode, from the first one that differs from the store's or is missing there. */
export interface AdoptedBatches {
  readonly mode: Mode;
  readonly first: number;
  readonly batches: readonly ClaimedBatch[];
}

/** The changes made by adopting L1's history. */
export interface Adopted {
  /** Batches taken from L1. */
  readonly batches: number;
  /** Vaults of this store that L1's history lacks, or holds less of. */
  readonly lostVaults: number;
}
