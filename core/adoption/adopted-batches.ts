import { isCommitted } from "../batches/batches.ts";
import { putDerived } from "../batches/seal.ts";
import { failWithdrawals, releaseVaults, requestedIn, tellFailed } from "../batches/void-slots.ts";
import { invalid, MintmarkError } from "../errors.ts";
import { tellSealed } from "../events/event-log.ts";
import type { BatchTables } from "../ledger/batch-tables.ts";
import { readBatchVaults } from "../ledger/batch-vaults.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { openBatchRecord } from "../ledger/open-batch.ts";
import { type Address, batchIdOf, MODES, type Mode } from "../model.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import { packVaultId, unpackBatchVaultId } from "../protocol/vault.ts";
import { itemRecords, itemsOf } from "../sealing/batch-items.ts";
import { stateLeafOf } from "../sealing/contents.ts";
import { runAt } from "../sealing/void-runs.ts";
import type { EntryOf } from "../store/entries.ts";
import type { Group } from "../store/group.ts";
import type { AssetRecord, BatchRecord, LostRun, VoidRun } from "../store/records.ts";
import { DIVERGENCE_KEY, keyOf, keyString } from "../store/store-keys.ts";
import type { HolderIndexes, StoredVault, VaultColumns } from "../store/vault-columns.ts";
import { waitAgain } from "../transfers/transfer-batch.ts";
import { listsOfBatch } from "../vaults/transfer-lists.ts";
import { pageKeys } from "../vaults/vaults.ts";
import type { AdoptedBatches, AdoptedEntry, Dropped, Incoming } from "./incoming.ts";
import { incomingBatches, isPlace, putAdoptedLists } from "./incoming.ts";

type LostEntry = EntryOf<"historyAdopted">["lost"][number];

const LOST =
  "L1 holds another history, in which this mint is not. Repeat it under another idempotency key.";

/**
 * Replaces the batches in one atomic step. The supply and ERC-721 tokens of mints that L1's history
 * lacks become free, and their withdrawals fail.
 */
export async function adoptHistory(
  { ledger, writer }: EngineContext,
  adopted: readonly AdoptedBatches[],
  holderOf: (owner: Address) => HolderIndexes,
  signal?: AbortSignal,
): Promise<Adopted> {
  for (const mode of MODES)
    while (ledger.batches.sealings[mode].size > 0)
      await Promise.allSettled(ledger.batches.sealings[mode].values());
  return writer.alone(async (group) => {
    if (ledger.l1.divergence === null) throw invalid("The store is not diverged from L1.");
    const dropped = await droppedBatches(ledger, group, adopted);
    const incoming = await incomingBatches({ ledger, group, holderOf }, adopted, dropped);
    const lost = await lostOf(ledger, group, dropped, incoming);
    const minted = dropped.flatMap(({ record, vaults }) => (record.transfers ? [] : vaults));
    const unbound = await unboundBy(ledger, group, adopted, minted);
    const trees = new Map(
      adopted.map(({ mode, first }) => {
        const history = ledger.batches.histories[mode].view(group);
        return [mode, history.first(Math.min(first, history.count))];
      }),
    );
    const given = incoming.flatMap(({ lists }, place) => (lists === null ? [] : { place, lists }));
    const transfers = given.length === 0 ? null : given;
    const batches = incoming.map(({ entry, vaults }) => {
      const tree = trees.get(entry.mode);
      if (tree === undefined) throw new Error("a batch of no mode");
      tree.append(stateLeafOf({ ...entry, vaultCount: vaults.length }));
      return { ...entry, stateRoot: bytesToHex(tree.root()) };
    });
    const firsts = adopted.map(({ mode, first: batchNumber }) => ({ mode, batchNumber }));
    const entry = {
      kind: "historyAdopted",
      firsts,
      failure: LOST,
      batches,
      lost,
      transfers,
    } as const;
    const recorded = ledger.journal.record(group, entry);
    const { sequence, time } = recorded;
    group.operations.push({ type: "del", key: DIVERGENCE_KEY });
    ledger.l1.divergence = null;
    for (const { record } of dropped)
      for (const list of record.transfers ? await listsOfBatch(ledger, record) : [])
        await waitAgain(ledger, group, list, time);
    for (const batch of dropped.toReversed()) drop(ledger, group, batch);
    for (const key of unbound) group.remove(key);
    for (const [mode, tree] of trees) ledger.batches.histories[mode].put(group, tree);
    for (const { mode, batchNumber, runs } of lost) {
      const { record, vaults } = dropped.find((batch) =>
        isPlace(batch.record, { mode, batchNumber }),
      ) as Dropped;
      // The lists of a batch of transfers wait for another batch.
      if (!record.transfers) tellFailed(ledger, group, record, vaults, failing(runs));
    }
    for (const { mode, batchNumber, withdrawn } of lost)
      for (const { slot } of withdrawn)
        await failWithdrawals(ledger, group, packVaultId({ mode, batchNumber, slot }), LOST);
    for (const each of lost)
      ledger.l1.putLost(group, { ...each, upTo: sequence, failure: LOST, since: time });
    for (const [i, batch] of incoming.entries())
      putAdopted(ledger, group, batch, batches[i]!, time);
    for (const { entry, lists, vaults } of incoming)
      if (lists !== null)
        await putAdoptedLists(ledger, group, entry.batchNumber, lists, vaults, recorded);
    for (const { mode, first, batches } of adopted)
      reopen(ledger, group, mode, first + batches.length);
    ledger.minting.bindings.clear();
    group.onDurable(() => ledger.readers.tokenSums.forgetAll());
    const lostVaults = lost.flatMap(({ runs }) => runs).reduce((sum, { count }) => sum + count, 0);
    return { batches: batches.length, lostVaults };
  }, signal);
}

async function droppedBatches(
  ledger: Ledger,
  group: Group,
  adopted: readonly AdoptedBatches[],
): Promise<Dropped[]> {
  const dropped: Dropped[] = [];
  for (const { mode, first } of adopted) {
    for (let number = first; number < ledger.batches.records[mode].view(group).size; number++) {
      const record = ledger.batches.records[mode].view(group).get(number);
      if (record === undefined)
        throw new MintmarkError("store_corrupt", `${batchIdOf(mode, number)} is missing.`);
      if (isCommitted(record)) throw new MintmarkError("batch_committed");
      dropped.push({ record, vaults: await readBatchVaults(ledger, record) });
    }
  }
  return dropped;
}

/** The vaults of each dropped batch that L1's history lacks. */
async function lostOf(
  ledger: Ledger,
  group: Group,
  dropped: readonly Dropped[],
  incoming: readonly Incoming[],
) {
  const lost: LostEntry[] = [];
  for (const { record, vaults } of dropped) {
    const { mode, batchNumber } = record;
    const isSameKind = ({ lists }: Incoming) => (lists !== null) === record.transfers;
    const there = incoming.find((one) => isPlace(one.entry, record) && isSameKind(one));
    const runs: LostRun[] = [];
    for (let slot = 0; slot < vaults.count; slot++) {
      const own = vaults.at(slot);
      const theirs = there?.vaults[slot];
      const wasVoid =
        runAt(ledger.batches.voids[mode].view(group).get(batchNumber) ?? [], slot) !== null;
      const isThere =
        theirs?.userIndex === own.userIndex &&
        theirs.assetIndex === own.assetIndex &&
        theirs.mintingBlob === own.mintingBlob;
      const above =
        isThere && !wasVoid && runAt(there?.entry.voids ?? [], slot) === null ? theirs.amount : 0n;
      if (above >= own.amount) continue;
      const last = runs.at(-1);
      if (above === 0n && last?.above === 0n && last.firstSlot + last.count === slot)
        runs[runs.length - 1] = { ...last, count: last.count + 1 };
      else runs.push({ firstSlot: slot, count: 1, above });
    }
    if (runs.length === 0) continue;
    const withdrawn = (await requestedIn(ledger, mode, batchNumber, failing(runs))).map(
      ({ vaultId }) => {
        const { slot } = unpackBatchVaultId(vaultId);
        const { assetIndex, mintingBlob } = vaults.at(slot);
        return { slot, assetIndex, mintingBlob };
      },
    );
    lost.push({ mode, batchNumber, runs, withdrawn });
  }
  return lost;
}

/** Runs of lost mints, with the reason that applications read. */
function failing(runs: readonly LostRun[]): VoidRun[] {
  return runs.map(({ firstSlot, count }) => ({ firstSlot, count, failure: LOST }));
}

function drop(ledger: Ledger, group: Group, { record, vaults }: Dropped): void {
  const { mode, batchNumber } = record;
  const voids = ledger.batches.voids[mode].view(group).get(batchNumber) ?? [];
  const valid = Array.from({ length: vaults.count }, (_, slot) => slot).filter(
    (slot) => runAt(voids, slot) === null,
  );
  // A transfer makes no token.
  if (!record.transfers) releaseVaults(ledger, group, record, vaults, valid);
  const whole = [
    keyOf.batch,
    keyOf.batchData,
    keyOf.pageRoots,
    keyOf.batchTokens,
    keyOf.batchApplications,
  ];
  const gone = [...whole, keyOf.voids].map((keyOf) => keyOf(mode, batchNumber));
  const items = itemsOf(record, vaults, (index) => ledger.tenants.assetAt(index), null);
  gone.push(
    ...pageKeys(mode, batchNumber, 0, vaults.count),
    ...Array.from(itemRecords(items), ({ key }) => key),
  );
  for (const key of gone) group.operations.push({ type: "del", key });
  ledger.batches.records[mode].remove(group, batchNumber);
  ledger.batches.voids[mode].remove(group, batchNumber);
  ledger.batches.refs.truncate(mode, batchNumber);
}

/** Adds a batch's vaults to supplies, token index and bound ERC-1155 ids. */
function addVaults(
  ledger: Ledger,
  group: Group,
  { mode, batchNumber }: BatchRecord,
  vaults: VaultColumns,
): void {
  const voids = ledger.batches.voids[mode].view(group).get(batchNumber) ?? [];
  const firstOrdinal = ledger.batches.refs.firstOrdinalOf(mode, batchNumber);
  const assets = new Map<number, AssetRecord>();
  for (let slot = 0; slot < vaults.count; slot++) {
    if (runAt(voids, slot) !== null) continue;
    const { assetIndex, amount, mintingBlob } = vaults.at(slot);
    const asset = assets.get(assetIndex) ?? ledger.tenants.assetNow(assetIndex, group);
    let { nextTokenId } = asset;
    if (asset.standard === "erc721") {
      ledger.minting.tokens.insert(
        vaults.tokenHash[slot]!,
        ledger.batches.refs.refOf({ mode, firstOrdinal }, slot),
      );
      // The engine's next id is above every id in L1's history.
      const behind = (tokenIdOf("erc721", asset.mintingBlobScheme, mintingBlob) ?? 0n) + 1n;
      if (nextTokenId !== null && behind > nextTokenId) nextTokenId = behind;
    }
    assets.set(assetIndex, { ...asset, minted: asset.minted + amount, nextTokenId });
    const binding = bindingOf(ledger, { assetIndex, mintingBlob });
    if (binding !== null) group.stage(binding, Buffer.from(hexToBytes(mintingBlob)));
  }
  for (const asset of assets.values()) ledger.tenants.putAsset(group, asset);
}

function putAdopted(
  ledger: Ledger,
  group: Group,
  { vaults, columns, derived, lists }: Incoming,
  entry: AdoptedEntry,
  time: number,
): void {
  const { mode, batchNumber, inBlobs, chunks, voids, given, batchRoot, dataHash, stateRoot } =
    entry;
  beginAt(ledger.batches, group, mode, batchNumber);
  for (const [i, chunk] of chunks.entries())
    group.put(keyOf.chunk(mode, batchNumber, i), hexToBytes(chunk));
  putDerived(group, entry, derived);
  for (const { key, value } of itemRecords(derived.items)) group.put(key, value);
  const mintCount = lists === null ? vaults.length : 0;
  const since = vaults[0]?.createdAt ?? time;
  const open = openBatchRecord({
    mode,
    batchNumber,
    vaults: columns,
    mintCount,
    since,
    transfers: lists,
  });
  const { assets, content } = derived;
  const sealed = {
    status: "sealed",
    inBlobs,
    given: given !== null,
    assets,
    content,
    batchRoot,
    dataHash,
    stateRoot,
  } as const;
  const record: BatchRecord = { ...open, ...sealed, sealedAt: time };
  ledger.batches.putBatch(group, record);
  const runs = voids.map((run) => ({ ...run, voidedAt: time, leftOut: false }));
  if (runs.length > 0) ledger.batches.putVoids(group, mode, batchNumber, runs);
  if (lists === null) addVaults(ledger, group, record, columns);
  tellSealed(ledger, group, record, columns, time);
}

/** The mode goes on after L1's batches. */
function reopen(ledger: Ledger, group: Group, mode: Mode, batchNumber: number): void {
  ledger.batches.unsealed.forget(mode);
  const firstOrdinal = beginAt(ledger.batches, group, mode, batchNumber);
  ledger.batches.open(mode, batchNumber, firstOrdinal, ledger.journal.now(group));
}

/** Places a batch behind the one before it. Returns the ordinal of its first vault. */
function beginAt(
  { records, refs }: BatchTables,
  group: Group,
  mode: Mode,
  batchNumber: number,
): number {
  const vaults = records[mode].view(group).get(batchNumber - 1)?.vaultCount ?? 0;
  const firstOrdinal = refs.firstOrdinalOf(mode, batchNumber - 1) + vaults;
  refs.set(mode, batchNumber, firstOrdinal);
  return firstOrdinal;
}

/** The binding record of a vault's ERC-1155 id; null for other standards. */
function bindingOf(
  ledger: Ledger,
  { assetIndex, mintingBlob }: Pick<StoredVault, "assetIndex" | "mintingBlob">,
): Buffer | null {
  const { standard, mintingBlobScheme } = ledger.tenants.assetAt(assetIndex);
  const tokenId =
    standard === "erc1155" ? tokenIdOf(standard, mintingBlobScheme, mintingBlob) : null;
  return tokenId === null ? null : keyOf.binding(assetIndex, tokenId);
}

/**
 * The bindings of dropped batches that no kept batch needs. Reads kept batches only when there are
 * such bindings.
 */
async function unboundBy(
  ledger: Ledger,
  group: Group,
  adopted: readonly { readonly mode: Mode; readonly first: number }[],
  dropped: readonly VaultColumns[],
): Promise<Iterable<Buffer>> {
  const unbound = new Map<string, Buffer>();
  for (const vaults of dropped)
    for (const key of bindingsIn(ledger, vaults)) unbound.set(keyString(key), key);
  for (const { mode, first } of adopted) {
    for (let number = 0; number < first && unbound.size > 0; number++) {
      const record = ledger.batches.records[mode].view(group).get(number);
      if (record === undefined)
        throw new MintmarkError("store_corrupt", `${batchIdOf(mode, number)} is missing.`);
      const stays = await readBatchVaults(ledger, record);
      for (const key of bindingsIn(ledger, stays)) unbound.delete(keyString(key));
    }
  }
  return unbound.values();
}

function* bindingsIn(ledger: Ledger, vaults: VaultColumns): Generator<Buffer, void, void> {
  for (let slot = 0; slot < vaults.count; slot++) {
    if (ledger.tenants.standards[vaults.assetIndex[slot]!] !== "erc1155") continue;
    const key = bindingOf(ledger, vaults.at(slot));
    if (key !== null) yield key;
  }
}

/** The changes made by adopting L1's history. */
export interface Adopted {
  /** Batches taken from L1. */
  readonly batches: number;
  /** Vaults of this store that L1's history lacks, or holds less of. */
  readonly lostVaults: number;
}
