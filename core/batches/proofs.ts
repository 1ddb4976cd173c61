import { invalid, MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { BlobRecords, OnKzgProofs } from "../ledger/openings.ts";
import { batchIdOf, type Hash, type Mode, type VaultId } from "../model.ts";
import type { BatchHeader, ProvenHop, VaultContent } from "../ports.ts";
import { readBatchData } from "../protocol/batch-data.ts";
import { PagedBatchTree, pageOf } from "../protocol/batch-tree.ts";
import { invariant, requireInteger } from "../protocol/bounds.ts";
import { countOf, type StateCounts } from "../protocol/commitment.ts";
import type { BatchProof, StateConsistencyProof } from "../protocol/consistency.ts";
import { proveBatch, proveConsistency, verifyStateConsistency } from "../protocol/consistency.ts";
import { bytesToHex, hashAt, unpackHashes } from "../protocol/hex.ts";
import { manifestLeaves, manifestPath } from "../protocol/manifest.ts";
import { multiproofSiblings } from "../protocol/multiproof.ts";
import type {
  BatchVaultProof,
  EngineState,
  StatePath,
  VaultMultiproof,
  VaultStateProof,
} from "../protocol/proof.ts";
import { verifyVaultInState, verifyVaultMultiproof, verifyVaultProof } from "../protocol/proof.ts";
import { decodeTransferData, leavesOf, transferOutputs } from "../protocol/transfer-data.ts";
import { hopOf, verifyHop } from "../protocol/transfer-proof.ts";
import { type BatchVaultPlace, packVaultId, type VaultPlace } from "../protocol/vault.ts";
import { leavesOfWords, vaultLeaf } from "../protocol/words.ts";
import { contentIn, contentOf, pointsIn } from "../sealing/contents.ts";
import { columnWords } from "../sealing/seal-columns.ts";
import * as runs from "../sealing/void-runs.ts";
import type { BatchRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { VaultColumns } from "../store/vault-columns.ts";
import { madeProof } from "../vaults/makings.ts";
import { spenderOf } from "../vaults/transfer-lists.ts";
import {
  batchAt,
  decodePage,
  type LocatedVault,
  pageKeys,
  placeOf,
  readVaults,
} from "../vaults/vaults.ts";
import { corruptBatch, findBatch, headerOf, sealedCount, stateOver } from "./batches.ts";

/** Options of proofs that a batch in blobs takes by KZG. */
export interface ProofOptions {
  /**
   * Called with the number of proofs by KZG that the engine has to make, before it makes them: none
   * if it has kept them. Each takes a core for some 50 ms. A throw ends the call. A call with it is
   * metered: its proofs wait behind those of calls without, and `backpressure` refuses it when too
   * many wait.
   */
  readonly onKzgProofs?: (proofs: number) => void;
}

/** The vaults of a page and their leaves; zero for void slots. */
interface Page {
  readonly firstSlot: number;
  readonly vaults: VaultColumns;
  readonly leaves: Uint8Array;
}

/**
 * Proves a vault from its page and the others' roots. Throws `vault_not_found`, `vault_void`,
 * `proof_not_ready`.
 */
export async function vaultProof(
  ledger: Ledger,
  vaultId: VaultId,
  options?: ProofOptions,
): Promise<BatchVaultProof> {
  const place = provablePlace(ledger, vaultId, true);
  if (place.mode === "made") return madeProof(ledger, place);
  const { inBlobs, transfers } = findBatch(ledger, place.mode, place.batchNumber);
  if (transfers) {
    // Refuses a slot that a redemption left, or a transfer that did not count.
    await vaultContent(ledger, vaultId);
    const { originId, hops } = await provenHops(ledger, place);
    const proof = await vaultProof(ledger, originId, options);
    return {
      ...proof,
      hops,
      header: headerOf(findBatch(ledger, place.mode, place.batchNumber)) && proof.header,
    };
  }
  if (inBlobs) return openedVault(ledger, vaultId, options?.onKzgProofs);
  const batch = await provableBatch(ledger, place, [place.slot]);
  const { batchRoot, record, assets, tree } = batch;
  const page = pageAt(batch, place.slot);
  const vault = contentAt(ledger, place, page);
  runs.requireNotLeftOut(record, vault);
  const siblings = unpackHashes(tree.siblings(place.slot, page.leaves));
  const leaf = bytesToHex(hashAt(page.leaves, place.slot - page.firstSlot));
  const assetPath = manifestPath(assets, vault, runs.leftOutPlaces(record));
  const proof = {
    vault,
    vaultCount: tree.count,
    batchRoot,
    leaf,
    siblings,
    assetPath,
    header: headerOf(record),
  };
  invariant(verifyVaultProof(batchRoot, proof), `a wrong proof of vault ${vaultId}`);
  return proof;
}

/** The content of a provable vault. Throws as {@link vaultProof}. */
export async function vaultContent(ledger: Ledger, vaultId: VaultId): Promise<VaultContent> {
  const place = provablePlace(ledger, vaultId, true);
  if (place.mode === "made") return (await madeProof(ledger, place)).vault;
  const { vault: stored } = (await readVaults(ledger, [place], null))[0] as LocatedVault;
  // The slot of a redemption holds nothing. Neither does the slot of a transfer that does not
  // count.
  if (stored.amount === 0n) throw new MintmarkError("vault_not_found");
  const vault = contentOf(place, stored, ledger.tenants.assetAt(stored.assetIndex));
  runs.requireNotLeftOut(findBatch(ledger, place.mode, place.batchNumber), vault);
  return vault;
}

/** Proves a vault by opening its elements. */
async function openedVault(ledger: Ledger, vaultId: VaultId, onKzgProofs: OnKzgProofs | undefined) {
  const { mode, batchNumber } = requireOfBatch(placeOf(vaultId));
  const record = findBatch(ledger, mode, batchNumber);
  const batchRoot = requireSealed(record);
  const vault = await vaultContent(ledger, vaultId);
  const opened = await ledger.batches.blobs.openings.prove(
    await blobRecords(ledger, record),
    vault,
    batchRoot,
    onKzgProofs,
  );
  const leaf = bytesToHex(vaultLeaf(vault, opened.assetPath.index));
  return { ...opened, batchRoot, leaf, header: headerOf(record) };
}

async function blobRecords(ledger: Ledger, record: BatchRecord): Promise<BlobRecords> {
  const { mode, batchNumber } = record;
  const keys = [keyOf.batchData(mode, batchNumber), keyOf.pageRoots(mode, batchNumber)];
  const [data, commitments] = await ledger.store.getMany(keys);
  if (data === undefined || commitments === undefined)
    throw corruptBatch(mode, batchNumber, "blobs");
  const records = { data, commitments, leftOut: runs.leftOutPlaces(record) };
  if (contentIn(records.data, pointsIn(records.commitments)) !== record.content)
    throw stale(ledger, record, "blobs");
  return records;
}

/**
 * The proofs of a sealed batch's blobs; none of a batch of another kind. Throws `batch_not_found`,
 * `proof_not_ready`.
 */
export async function blobProofs(
  ledger: Ledger,
  mode: Mode,
  batchNumber: number,
  { onKzgProofs }: ProofOptions = {},
) {
  const record = findBatch(ledger, mode, batchNumber);
  requireSealed(record);
  return record.inBlobs
    ? ledger.batches.blobs.openings.proveBlobs(await blobRecords(ledger, record), onKzgProofs)
    : [];
}

/** A batch's records do not fit its root: it is being sealed anew, or they are damaged. */
function stale(ledger: Ledger, record: BatchRecord, what: string): MintmarkError {
  const { mode, batchNumber } = record;
  const batches = ledger.batches.records[mode];
  const same = batches.durable.get(batchNumber) === record && batches.ahead(batchNumber) === record;
  if (same) return corruptBatch(mode, batchNumber, what);
  return new MintmarkError("proof_not_ready", "Slots of the batch are becoming void: ask again.");
}

/**
 * One proof for many vaults of a batch. Throws as {@link vaultProof} does, and `validation_failed`.
 */
export async function vaultMultiproof(
  ledger: Ledger,
  vaultIds: readonly VaultId[],
): Promise<BatchMultiproof> {
  const places = vaultIds
    .map((vaultId) => requireOfBatch(provablePlace(ledger, vaultId)))
    .sort((a, b) => a.slot - b.slot);
  const [first] = places;
  if (first === undefined) throw invalid("name at least one vault");
  if (
    places.some(({ mode, batchNumber }) => mode !== first.mode || batchNumber !== first.batchNumber)
  )
    throw invalid("the vaults of one multiproof must be of one batch");
  const slots = places.map(({ slot }) => slot);
  const batch = await provableBatch(ledger, first, slots);
  const { record, batchRoot, assets, tree, pages } = batch;
  const vaults = places.map((place) => contentAt(ledger, place, pageAt(batch, place.slot)));
  for (const vault of vaults) runs.requireNotLeftOut(record, vault);
  const nodes = tree.withPages(new Map([...pages].map(([number, { leaves }]) => [number, leaves])));
  const siblings = unpackHashes(multiproofSiblings(nodes, slots));
  const manifest = manifestLeaves(assets, runs.leftOutPlaces(record));
  const proof = {
    vaults,
    vaultCount: tree.count,
    batchRoot,
    siblings,
    manifest,
    header: headerOf(record),
  };
  invariant(
    verifyVaultMultiproof(batchRoot, proof),
    `a wrong multiproof of ${batchIdOf(first.mode, first.batchNumber)}`,
  );
  return proof;
}

/**
 * A vault's path to a state commitment. Throws as {@link vaultProof}; `validation_failed` for
 * unsealed counts.
 */
export async function vaultStateProof(
  ledger: Ledger,
  vaultId: VaultId,
  at?: StateCounts,
): Promise<VaultStateProof> {
  const { mode, batchNumber } = requireOfBatch(provablePlace(ledger, vaultId));
  const { commitment, rootValidium, rootRollup, ...counts } = sealedState(ledger, at);
  const count = countOf(mode, counts);
  if (batchNumber >= count)
    throw new MintmarkError("proof_not_ready", "That state does not hold the vault's batch.");
  const { dataHash, inBlobs } = findBatch(ledger, mode, batchNumber);
  if (dataHash === null) throw corruptBatch(mode, batchNumber, "data hash");
  const siblings = unpackHashes(
    ledger.batches.histories[mode].durable.siblings(batchNumber, count),
  );
  const path: StatePath = {
    dataHash,
    siblings,
    otherRoot: mode === "validium" ? rootRollup : rootValidium,
    ...counts,
  };
  const proof = await vaultProof(ledger, vaultId);
  // The pairing of a vault in blobs would take 0.1 s of the event loop.
  const isRight =
    inBlobs || verifyVaultInState(ledger.services.settlement, commitment, proof, path);
  invariant(isRight, `a wrong state proof of vault ${vaultId}`);
  return { proof, path, commitment };
}

/**
 * Proves that a sealed batch was appended to the earlier ones. Throws `batch_not_found`,
 * `proof_not_ready`.
 */
export function batchProof(ledger: Ledger, mode: Mode, batchNumber: number): BatchTransition {
  requireSealed(findBatch(ledger, mode, batchNumber));
  const history = ledger.batches.histories[mode].durable;
  const oldRoot = bytesToHex(history.root(batchNumber));
  const newRoot = bytesToHex(history.root(batchNumber + 1));
  return { oldRoot, newRoot, proof: proveBatch(history, batchNumber) };
}

/**
 * Proves that one state begins with an earlier one. Throws `validation_failed` unless the counts
 * grow.
 */
export function consistencyProof(
  ledger: Ledger,
  before: StateCounts,
  after?: StateCounts,
): StateExtension {
  const newer = sealedState(ledger, after);
  requireInteger("older.countValidium", before.countValidium, 0, newer.countValidium);
  requireInteger("older.countRollup", before.countRollup, 0, newer.countRollup);
  const older = stateOver(ledger, before.countValidium, before.countRollup);
  const proof = {
    validium: proveConsistency(
      ledger.batches.histories.validium.durable,
      older.countValidium,
      newer.countValidium,
    ),
    rollup: proveConsistency(
      ledger.batches.histories["zk-rollup"].durable,
      older.countRollup,
      newer.countRollup,
    ),
  };
  const at = (state: EngineState) => ({ commitment: state.commitment, state });
  invariant(
    verifyStateConsistency(ledger.services.settlement, at(older), at(newer), proof),
    "a wrong consistency proof",
  );
  return { older, newer, proof };
}

/**
 * The state after a number of sealed batches of each mode; default all. Throws `validation_failed`
 * for more.
 */
function sealedState(ledger: Ledger, at: StateCounts | undefined): EngineState {
  const [validium, rollup] = [sealedCount(ledger, "validium"), sealedCount(ledger, "zk-rollup")];
  const { countValidium, countRollup } = at ?? { countValidium: validium, countRollup: rollup };
  requireInteger("countValidium", countValidium, 0, validium);
  requireInteger("countRollup", countRollup, 0, rollup);
  return stateOver(ledger, countValidium, countRollup);
}

/** Throws `validation_failed` for a vault that is in no batch. */
function requireOfBatch(place: VaultPlace): BatchVaultPlace {
  if (place.mode !== "made") return place;
  const detail =
    "L1 made this vault, and no batch holds it. Ask for the proof of this vault alone.";
  throw invalid(detail);
}

/** The place of a provable vault. Throws `vault_not_found`, `vault_void`, `proof_not_ready`. */
function provablePlace(ledger: Ledger, vaultId: VaultId, isTransferred = false): VaultPlace {
  const place = placeOf(vaultId);
  const batch = batchAt(ledger, place, null);
  if (place.mode === "made") return place;
  requireSealed(batch);
  // Its leaf binds the signed transfer, so its proof begins with the vault that the mint made.
  if (batch.transfers && !isTransferred)
    throw invalid("A transfer made this vault. Ask for the proof of this vault alone.");
  runs.requireNotVoid(ledger.batches.voids, place, null);
  return place;
}

function requireSealed({ batchRoot }: BatchRecord): Hash {
  if (batchRoot === null)
    throw new MintmarkError("proof_not_ready", "The batch is not sealed yet.");
  return batchRoot;
}

/**
 * Reads the parts of a batch that proofs of these slots need. Throws `proof_not_ready`,
 * `store_corrupt`.
 */
async function provableBatch(
  ledger: Ledger,
  { mode, batchNumber }: BatchVaultPlace,
  slots: readonly number[],
) {
  const record = findBatch(ledger, mode, batchNumber);
  if (record.inBlobs)
    throw invalid("Vaults in blobs have no common proof. Ask for each one's proof.");
  const voids = runs.zeroRuns(ledger.batches.voids[mode].durable.get(batchNumber) ?? []);
  const mask = runs.voidMask(voids, record.vaultCount);
  const assets = record.assets ?? [];
  const batchRoot = requireSealed(record);
  const wanted = new Map(
    slots.map((slot) => pageOf(record.vaultCount, slot)).map((page) => [page.page, page]),
  );
  const keys = [...wanted.values()].map(({ firstSlot, leafCount }) =>
    pageKeys(mode, batchNumber, firstSlot, leafCount),
  );
  const [pageRoots, ...records] = await ledger.store.getMany([
    keyOf.pageRoots(mode, batchNumber),
    ...keys.flat(),
  ]);
  const data = record.given
    ? await ledger.store.get(keyOf.batchData(mode, batchNumber))
    : undefined;
  const given = data && readBatchData(data).words;
  if (pageRoots === undefined) throw corruptBatch(mode, batchNumber, "page roots");
  const tree = new PagedBatchTree(record.vaultCount, pageRoots);
  if (bytesToHex(tree.root) !== record.content) throw stale(ledger, record, "page roots");
  const pages = new Map<number, Page>();
  for (const [i, { page, firstSlot, leafCount }] of [...wanted.values()].entries()) {
    const vaults = decodePage(
      records.splice(0, keys[i]?.length),
      leafCount,
      batchIdOf(mode, batchNumber),
    );
    const voidHere = mask?.subarray(firstSlot, firstSlot + leafCount) ?? null;
    const words =
      given === undefined
        ? columnWords(vaults, (index) => ledger.tenants.assetAt(index), voidHere, assets).words
        : given.slice(firstSlot, leafCount);
    const leaves = leavesOfWords(words, { mode, batchNumber }, firstSlot);
    pages.set(page, { firstSlot, vaults, leaves });
  }
  return { record, batchRoot, assets, tree, pages };
}

function pageAt({ tree, pages }: Awaited<ReturnType<typeof provableBatch>>, slot: number): Page {
  const page = pages.get(pageOf(tree.count, slot).page);
  invariant(page !== undefined, `the page of slot ${slot} was not read`);
  return page;
}

function contentAt(ledger: Ledger, place: VaultPlace, { vaults, firstSlot }: Page): VaultContent {
  const stored = vaults.at(place.slot - firstSlot);
  return contentOf(place, stored, ledger.tenants.assetAt(stored.assetIndex));
}

/** One path for many vaults to their batch's root. */
export interface BatchMultiproof extends VaultMultiproof {
  readonly batchRoot: Hash;
  readonly header: BatchHeader | null;
}

/** One batch's step of its mode's state tree. `verifyBatchProof` checks it. */
export interface BatchTransition {
  readonly oldRoot: Hash;
  readonly newRoot: Hash;
  readonly proof: BatchProof;
}

/**
 * Shows that a later state begins with all batches of an earlier one. `verifyStateConsistency`
 * checks it.
 */
export interface StateExtension {
  readonly older: EngineState;
  readonly newer: EngineState;
  readonly proof: StateConsistencyProof;
}

/**
 * Proves each transfer from the mint to a vault of a sealed transfer batch. Throws `store_corrupt`.
 */
async function provenHops(ledger: Ledger, place: VaultPlace) {
  const hops: ProvenHop[] = [];
  for (let { mode, batchNumber, slot } = place; ; ) {
    if (mode !== "zk-rollup" || !findBatch(ledger, mode, batchNumber).transfers)
      return { originId: packVaultId({ mode, batchNumber, slot }), hops };
    const { hop, spent } = await provenHop(ledger, batchNumber, slot);
    hops.unshift(hop);
    ({ mode, batchNumber, slot } = placeOf(spent));
  }
}

/** The committed record that spends a vault but does not count; null when there is none. */
export async function provenRefutation(
  ledger: Ledger,
  vaultId: VaultId,
): Promise<ProvenHop | null> {
  const spender = await spenderOf(ledger, vaultId);
  if (spender === null || spender.output.transfer.fault === null) return null;
  return (await provenHop(ledger, spender.place.batchNumber, spender.place.slot)).hop;
}

/** The record of a slot with its proof, and the vault that it spends. */
async function provenHop(ledger: Ledger, batchNumber: number, slot: number) {
  const record = findBatch(ledger, "zk-rollup", batchNumber);
  const keys = [
    keyOf.batchData("zk-rollup", batchNumber),
    keyOf.pageRoots("zk-rollup", batchNumber),
  ];
  const [data, pageRoots] = await ledger.store.getMany(keys);
  if (data === undefined || pageRoots === undefined)
    throw corruptBatch("zk-rollup", batchNumber, "transfers");
  const groups = decodeTransferData(data);
  const outputs = transferOutputs(groups, batchNumber);
  const tree = new PagedBatchTree(outputs.length, pageRoots);
  if (bytesToHex(tree.root) !== record.content)
    throw corruptBatch("zk-rollup", batchNumber, "page roots");
  const { firstSlot, leafCount } = pageOf(tree.count, slot);
  const leaves = leavesOf(groups, outputs.slice(firstSlot, firstSlot + leafCount));
  const output = outputs[slot]!;
  const siblings = unpackHashes(tree.siblings(slot, leaves));
  const root = { batchRoot: record.batchRoot as Hash, vaultCount: record.vaultCount };
  const header = headerOf(record) ?? { ...root, committedAt: 0n, sequence: 0n };
  const hop = hopOf(groups, output, { header, siblings });
  const spent = output.transfer.vaultId;
  invariant(verifyHop(spent, hop), `a wrong proof of the transfer to vault ${output.outId}`);
  return { hop, spent };
}
