import { invalid, MintmarkError } from "../errors.ts";
import type { Hash, Mode, VaultId } from "../model.ts";
import { inPieces } from "../pieces.ts";
import type { AssetId, BatchHeader, ProvenHop, VaultContent, VaultProof } from "../ports.ts";
import {
  batchLeaves,
  firstMalformed,
  isMalformed,
  placeVaults,
  readBatchData,
  slotsAt,
  slotsOf,
  vaultAt,
  type WordBatch,
} from "../protocol/batch-data.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import * as blobBatches from "../protocol/blob-batch.ts";
import { bytesToHex, HASH_BYTES, keccak256, unpackHashes } from "../protocol/hex.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import type { MadeVaultProof } from "../protocol/making.ts";
import { batchRoot, compareAssets, kindOf, manifestRoot } from "../protocol/manifest.ts";
import { openedProof } from "../protocol/opening.ts";
import { type BatchVaultProof, proveVault, verifyVaultProof } from "../protocol/proof.ts";
import { MAX_TRANSFER_HOPS, transferBatchRoot } from "../protocol/transfer.ts";
import type { TransferGroup } from "../protocol/transfer-data.ts";
import {
  decodeTransferData,
  isTransferData,
  transferLeaves,
  transferOutputs,
} from "../protocol/transfer-data.ts";
import { hopOf } from "../protocol/transfer-proof.ts";
import { isMadeVaultId, packVaultId, unpackBatchVaultId } from "../protocol/vault.ts";
import { versionedHash } from "../protocol/versioned-hash.ts";
import { vaultLeaf } from "../protocol/words.ts";
import type { Commit } from "./keys.ts";

const ADDRESS_BYTES = 20;

/** A batch, derived from its data and its place. */
export interface DerivedBatch {
  readonly dataHash: Hash;
  /** The batch's manifest. */
  readonly assets: readonly AssetId[];
  /** Root of the vault tree, or the content of a batch in blobs. */
  readonly content: Hash;
  readonly batchRoot: Hash;
  readonly vaultCount: number;
  /** Places in the manifest of the assets that L1 has left out; their leaves there are zero. */
  readonly leftOut: readonly number[];
  /**
   * The first slot that is neither void nor a vault of the manifest's assets, which L1 takes but
   * nobody signs; null when there is none.
   */
  readonly malformed: number | null;
  /** Places in the data's list of assets of those that the manifest lacks. */
  readonly unnamed: readonly number[];
  /**
   * The vaults in slot order; null for a void slot, a transfer's, and for a vault of an asset that
   * L1 has left out.
   */
  readonly slots: readonly (VaultContent | null)[];
  /** null for a batch in blobs. */
  readonly tree: BatchTree | null;
  /** null for a batch with a vault tree. */
  readonly blobs: DerivedBlobs | null;
  /**
   * The signed records of a batch of transfers, whose vaults depend on earlier batches; null for a
   * batch of mints.
   */
  readonly transfers: readonly TransferGroup[] | null;
}

/** A batch without what proves its vaults. */
export type BatchContent = Omit<DerivedBatch, "tree" | "blobs">;

/** Vaults of a batch in arrays, which move between threads without a copy. */
interface PackedVaults {
  /** The place of each slot's asset in the manifest, and one; 0 for a slot that is null. */
  readonly places: Uint8Array<ArrayBuffer>;
  /** 20 bytes a slot. */
  readonly owners: Uint8Array<ArrayBuffer>;
  readonly amounts: BigUint64Array<ArrayBuffer>;
  readonly mintingBlobs: Uint8Array<ArrayBuffer>;
  /** Where the minting blob of each slot ends, and the next one's begins. */
  readonly mintingBlobEnds: Uint32Array<ArrayBuffer>;
}

/** A batch of mints on its way between threads. */
export interface PackedBatch extends Omit<BatchContent, "slots"> {
  readonly vaults: PackedVaults;
}

/** A batch in blobs whose vaults can be proven. */
interface DerivedBlobs extends blobBatches.BlobBatch {
  readonly versionedHashes: readonly Hash[];
}

/** Options of {@link deriveBatch}. */
export interface DeriveOptions {
  /** Places in the manifest of the assets that L1 has left out; default none. */
  readonly leftOut?: readonly number[];
  /** See {@link DerivedBatch.unnamed}; default none. */
  readonly unnamed?: readonly number[];
  /**
   * Hashes of the blobs on L1, for a batch in blobs. Only {@link hasBlobs} compares the data with
   * them.
   */
  readonly versionedHashes?: readonly Hash[];
}

/** L1's facts about a committed batch that the reading of its data needs. */
export type CommittedPlace = Pick<Commit, "mode" | "batchNumber"> &
  Partial<Pick<Commit, "leftOut" | "unnamed" | "blobs">>;

/** Derives a committed batch, as {@link deriveBatch}. */
export function deriveCommitted(commit: CommittedPlace, data: Uint8Array): DerivedBatch {
  return deriveBatch(commit.mode, commit.batchNumber, data, optionsOf(commit));
}

/** The options for a committed batch. */
export function optionsOf({ leftOut, unnamed, blobs }: CommittedPlace): DeriveOptions {
  return { leftOut, unnamed, versionedHashes: blobs?.versionedHashes };
}

/**
 * Derives a batch from its data. Throws `BatchDataError`; `TransferDataError` for
 * transfers.
 *
 * @example
 * const { batchRoot, slots } = deriveBatch("zk-rollup", 12, data);
 * if (batchRoot !== batchRootFromL1) throw new Error("not the data of this batch");
 */
export function deriveBatch(
  mode: Mode,
  batchNumber: number,
  data: Uint8Array,
  { leftOut, unnamed, versionedHashes }: DeriveOptions = {},
): DerivedBatch {
  if (versionedHashes === undefined && isTransferData(mode, data))
    return deriveTransfers(batchNumber, data);
  const options = { leftOut, unnamed, versionedHashes };
  const { batch, ...derived } = deriveMints(mode, batchNumber, data, options);
  const entries = slotsOf(batch);
  const unpaid = derived.leftOut.flatMap((place) => batch.assets[place] ?? []);
  const pays = (vault: VaultContent) => !unpaid.some((asset) => compareAssets(asset, vault) === 0);
  const vaults = placeVaults(entries, mode, batchNumber);
  const slots =
    unpaid.length === 0
      ? vaults
      : vaults.map((vault) => (vault !== null && pays(vault) ? vault : null));
  return { ...derived, malformed: firstMalformed(batch, entries), slots };
}

/**
 * Derives a batch of mints as {@link deriveBatch} does, without what proves its vaults. The result
 * is small in objects, whatever the number of vaults.
 */
export function packBatch(
  mode: Mode,
  batchNumber: number,
  data: Uint8Array,
  options: DeriveOptions = {},
): PackedBatch {
  const {
    batch,
    tree: _tree,
    blobs: _blobs,
    ...derived
  } = deriveMints(mode, batchNumber, data, options);
  const { count } = batch.words;
  const places = new Uint8Array(count);
  const owners = new Uint8Array(count * ADDRESS_BYTES);
  const amounts = new BigUint64Array(count);
  const minted: Uint8Array[] = [];
  const mintingBlobEnds = new Uint32Array(count);
  let malformed: number | null = null;
  let end = 0;
  for (let slot = 0; slot < count; slot++) {
    const vault = vaultAt(batch.words, slot);
    const isNamed = vault !== null && vault.assetIndex < batch.assets.length;
    if (!isNamed) malformed ??= isMalformed(batch, slot) ? slot : null;
    else if (!derived.leftOut.includes(vault.assetIndex)) {
      places[slot] = vault.assetIndex + 1;
      owners.set(vault.owner, slot * ADDRESS_BYTES);
      amounts[slot] = vault.amount;
      minted.push(vault.mintingBlob);
      end += vault.mintingBlob.length;
    }
    mintingBlobEnds[slot] = end;
  }
  const mintingBlobs = new Uint8Array(end);
  let at = 0;
  for (const mintingBlob of minted) {
    mintingBlobs.set(mintingBlob, at);
    at += mintingBlob.length;
  }
  return {
    ...derived,
    malformed,
    vaults: { places, owners, amounts, mintingBlobs, mintingBlobEnds },
  };
}

/** The inverse of {@link packBatch}, in pieces. */
export async function unpackBatch(
  mode: Mode,
  batchNumber: number,
  { vaults, ...derived }: PackedBatch,
): Promise<BatchContent> {
  const { places, amounts, mintingBlobEnds } = vaults;
  const owners = Buffer.from(vaults.owners.buffer);
  const mintingBlobs = Buffer.from(vaults.mintingBlobs.buffer);
  const first = packVaultId({ mode, batchNumber, slot: 0 });
  const slots: (VaultContent | null)[] = [];
  let start = 0;
  await inPieces(places.length, (slot) => {
    const asset = derived.assets[places[slot]! - 1];
    const end = mintingBlobEnds[slot]!;
    const owner = slot * ADDRESS_BYTES;
    slots.push(
      asset === undefined
        ? null
        : {
            vaultId: first + BigInt(slot),
            chainId: asset.chainId,
            owner: `0x${owners.toString("hex", owner, owner + ADDRESS_BYTES)}`,
            assetType: asset.assetType,
            amount: amounts[slot]!,
            mintingBlob: `0x${mintingBlobs.toString("hex", start, end)}`,
          },
    );
    start = end;
  });
  return { ...derived, slots };
}

/** Reads a batch of mints, and derives all but its vaults. */
function deriveMints(
  mode: Mode,
  batchNumber: number,
  data: Uint8Array,
  { leftOut = [], unnamed = [], versionedHashes }: DeriveOptions,
) {
  const blobs =
    versionedHashes === undefined
      ? null
      : { ...blobBatches.readBlobBatchData(data), versionedHashes };
  const read = blobs === null ? readBatchData(data) : blobBatches.wordsInBlobs(blobs);
  const batch = namedBy(read, unnamed);
  const { assets, words } = batch;
  const tree = blobs === null ? new BatchTree(batchLeaves(batch, mode, batchNumber)) : null;
  const content =
    blobs === null
      ? bytesToHex((tree as BatchTree).root)
      : blobBatches.blobContent(
          blobs.vaultCount,
          blobBatches.manifestHash(assets),
          blobs.versionedHashes,
        );
  return {
    batch,
    dataHash: blobs === null ? bytesToHex(keccak256(data)) : content,
    assets,
    content,
    batchRoot: batchRoot(
      blobs === null ? kindOf(mode) : "blobs",
      manifestRoot(assets, leftOut),
      content,
    ),
    leftOut,
    unnamed,
    vaultCount: words.count,
    tree,
    blobs,
    transfers: null,
  };
}

/** A batch whose words refer to L1's manifest, which lacks some of the data's assets. */
function namedBy({ assets, words }: WordBatch, unnamed: readonly number[]): WordBatch {
  return { assets: assets.filter((_, place) => !unnamed.includes(place)), words };
}

/**
 * Single vaults of a committed batch, from data that was checked before: none for void slots, for
 * assets that L1 has left out, and in a batch of transfers.
 */
export function vaultsAt(
  { mode, leftOut = [], unnamed = [], blobs }: CommittedPlace,
  data: Uint8Array,
  ids: readonly VaultId[],
): VaultContent[] {
  if (blobs === undefined && isTransferData(mode, data)) return [];
  const bySlot = new Map(ids.map((vaultId) => [unpackBatchVaultId(vaultId).slot, vaultId]));
  const batch = namedBy(blobBatches.wordsIn(data), unnamed);
  const found = slotsAt(batch, [...bySlot.keys()], leftOut);
  return [...found].map(([slot, entry]) => ({ vaultId: bySlot.get(slot) as VaultId, ...entry }));
}

function deriveTransfers(batchNumber: number, data: Uint8Array): DerivedBatch {
  const transfers = decodeTransferData(data);
  const leaves = transferLeaves(transfers, batchNumber);
  const tree = new BatchTree(leaves);
  const content = bytesToHex(tree.root);
  const vaultCount = leaves.length / HASH_BYTES;
  return {
    dataHash: bytesToHex(keccak256(data)),
    assets: [],
    content,
    batchRoot: transferBatchRoot(content),
    vaultCount,
    leftOut: [],
    unnamed: [],
    malformed: null,
    slots: Array.from({ length: vaultCount }, () => null),
    tree,
    blobs: null,
    transfers,
  };
}

/** Whether the blobs in a batch's data are those that L1 has committed to. */
export async function hasBlobs(
  data: Uint8Array,
  versionedHashes: readonly Hash[],
  kzg: Kzg,
): Promise<boolean> {
  const blobs = blobBatches.blobsIn(blobBatches.readBlobBatchData(data));
  if (blobs.length !== versionedHashes.length) return false;
  const hashes = await versionedHashesOf(blobs, kzg);
  return hashes.every((hash, i) => hash === versionedHashes[i]);
}

/** Hashes of blobs as L1 has them: about 50 ms for each. */
export function versionedHashesOf(
  blobs: readonly Uint8Array[],
  kzg: Pick<Kzg, "commitment">,
): Promise<Hash[]> {
  return Promise.all(blobs.map(async (blob) => versionedHash(await kzg.commitment(blob))));
}

/** The vaults of a batch, without void slots. */
export function vaultsOf({ slots }: Pick<DerivedBatch, "slots">): VaultContent[] {
  return slots.filter((vault) => vault !== null);
}

/** The vault at its slot. Throws `vault_not_found` for a void or missing slot. */
export function vaultIn({ slots }: DerivedBatch, vaultId: VaultId): VaultContent {
  const vault = slots[unpackBatchVaultId(vaultId).slot] ?? null;
  if (vault === null)
    throw new MintmarkError("vault_not_found", `The batch holds no vault ${vaultId}.`);
  return vault;
}

async function opened(
  batch: DerivedBatch,
  blobs: DerivedBlobs,
  vault: VaultContent,
  kzg: Kzg,
): Promise<VaultProof> {
  const places = blobBatches.elementPlaces(blobs, unpackBatchVaultId(vault.vaultId).slot);
  const all = blobBatches.blobsIn(blobs);
  const openings = await Promise.all(
    places.map(async (place) => {
      const blob = all[Math.floor(place / blobBatches.BLOB_ELEMENTS)] as Uint8Array;
      return kzg.openings(blob, await kzg.commitment(blob), [place % blobBatches.BLOB_ELEMENTS]);
    }),
  );
  const proof = openedProof({ ...blobs, leftOut: batch.leftOut }, vault, openings.flat());
  if (verifyVaultProof(batch.batchRoot, proof)) return proof;
  throw invalid("the blobs do not hold this vault at its slot");
}

/** The operator or L1 tells a batch from others of its number by these. */
export type BatchSummary = Pick<DerivedBatch, "dataHash" | "batchRoot" | "vaultCount">;

/** Whether the derived batch is the one that the operator or L1 names. */
export function isBatch(
  batch: BatchSummary,
  { dataHash, batchRoot, vaultCount }: BatchSummary,
): boolean {
  return (
    batch.dataHash === dataHash && batch.batchRoot === batchRoot && batch.vaultCount === vaultCount
  );
}

/**
 * The proof of a vault of a committed batch, with the transfers since its mint. The contract judges
 * the transfers.
 *
 * @param provenMade - proves a vault that L1 made by itself
 * @param kzg - opens the vault's elements of a batch in blobs, which takes about 0.2 s
 * @throws MintmarkError `vault_not_found`
 */
export async function chainProof(
  vaultId: VaultId,
  kzg: Kzg,
  provenMade: (vaultId: VaultId) => Promise<MadeVaultProof>,
  read: (
    mode: Mode,
    batchNumber: number,
  ) => Promise<{ readonly commit: BatchHeader; readonly batch: DerivedBatch }>,
): Promise<BatchVaultProof & { readonly header: BatchHeader }> {
  const hops: ProvenHop[] = [];
  for (let at = vaultId; ; ) {
    if (isMadeVaultId(at)) return { ...(await provenMade(at)), ...(hops.length > 0 && { hops }) };
    const { mode, batchNumber, slot } = unpackBatchVaultId(at);
    const { commit, batch } = await read(mode, batchNumber);
    const { batchRoot, vaultCount, committedAt, sequence } = commit;
    const header = { batchRoot, vaultCount, committedAt, sequence };
    const { transfers, blobs } = batch;
    const tree = batch.tree as BatchTree;
    if (transfers === null) {
      const vault = vaultIn(batch, at);
      const proof =
        blobs === null
          ? proveVault({ ...batch, tree }, vault)
          : await opened(batch, blobs, vault, kzg);
      return {
        ...proof,
        batchRoot,
        leaf: bytesToHex(vaultLeaf(vault, proof.assetPath.index)),
        header,
        ...(hops.length > 0 && { hops }),
      };
    }
    const output = transferOutputs(transfers, batchNumber)[slot];
    if (output === undefined || hops.length === MAX_TRANSFER_HOPS)
      throw new MintmarkError("vault_not_found", `No valid transfer makes vault ${vaultId}.`);
    hops.unshift(hopOf(transfers, output, { header, siblings: unpackHashes(tree.siblings(slot)) }));
    at = output.transfer.vaultId;
  }
}
