import type { BatchSource } from "../archive/batch-source.ts";
import { type BlobSource, batchesFrom } from "../archive/blob-source.ts";
import {
  committedProof,
  type DerivedBatch,
  deriveBatch,
  derivingOptions,
  hasBlobs,
  isBatch,
} from "../archive/derive.ts";
import { blockRanges } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { type Kzg, KzgThread } from "../kzg/kzg.ts";
import type { VaultId } from "../model.ts";
import type { L1Event, L1Reader } from "../ports.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import { type ExitKit, requireWholeKit } from "./kit.ts";

/** The chain that checks a new exit kit. */
export type KitChain = Pick<L1Reader, "settlement" | "registration" | "maturity" | "verifyVault">;

/**
 * The exit kit of a proven vault. The contract itself verifies the proof first. The proof comes from an engine, an
 * archive, or {@link proveFromL1}.
 *
 * @throws MintmarkError `proof_not_ready` while L1 has not committed the batch; `asset_not_registered`;
 *   `mint_unwithdrawable` when the batch came before the asset's registration; `l1_failed` with the contract's reason
 *
 * @example
 * const kit = await exportExitKit(await engine.proofs.exit(vaultId), l1);
 */
export async function exportExitKit(
  { vault, header, siblings, assetPath }: BatchVaultProof,
  l1: KitChain,
): Promise<ExitKit> {
  if (header === null) throw new MintmarkError("proof_not_ready", "L1 has not committed the vault's batch yet.");
  const registration = await l1.registration(vault.chainId, vault.assetType);
  if (registration === null) throw new MintmarkError("asset_not_registered");
  const { standard, token: address, quantum, blobScheme, since } = registration;
  if (header.sequence < since) {
    const detail = "The vault's batch came before its asset was registered, so the vault can never be withdrawn.";
    throw new MintmarkError("mint_unwithdrawable", detail);
  }
  const { chainId, contract } = l1.settlement;
  const kit: ExitKit = {
    settlement: { chainId, contract },
    token: { address, standard, quantum, blobScheme, tokenId: tokenIdOf(standard, blobScheme, vault.blob) },
    vault,
    header,
    siblings,
    assetPath,
    maturesAt: standard === "erc721" ? header.committedAt + (await l1.maturity()) : null,
  };
  requireWholeKit(kit);
  await l1.verifyVault(kit);
  return kit;
}

/** Options of {@link proveFromL1}. */
export interface ProveFromL1Options {
  readonly l1: Pick<L1Reader, "block" | "blockNumber" | "events" | "rollupData">;
  /** The deployment block of the settlement contract, or any block before the batch's commit. */
  readonly fromBlock: bigint;
  /** Sources of the blobs of a rollup batch, asked before {@link ProveFromL1Options.sources}. */
  readonly blobs?: readonly BlobSource[];
  /** Sources of the data of a validium batch, or of one in blobs, in this order. */
  readonly sources?: readonly BatchSource[];
  /** Checks and opens blobs. Default: a thread of its own. */
  readonly kzg?: Kzg;
  readonly signal?: AbortSignal;
}

/**
 * Proves a vault from L1 alone and, for validium, a source of the batch's data. Needs no store.
 *
 * @throws MintmarkError `batch_not_found` when L1 has no such batch; `vault_not_found`; `proof_not_ready` when no
 *   source has the data
 *
 * @example
 * const kit = await exportExitKit(await proveFromL1(vaultId, { l1, fromBlock }), l1);
 */
export async function proveFromL1(vaultId: VaultId, options: ProveFromL1Options): Promise<BatchVaultProof> {
  const commit = await findCommit(vaultId, options);
  if (options.kzg !== undefined) return proofFrom(commit, vaultId, options, options.kzg);
  const own = new KzgThread();
  try {
    return await proofFrom(commit, vaultId, options, own);
  } finally {
    await own.close();
  }
}

async function proofFrom(
  commit: CommitEvent,
  vaultId: VaultId,
  options: ProveFromL1Options,
  kzg: Kzg,
): Promise<BatchVaultProof> {
  const { mode, batchNumber } = commit;
  const faults: string[] = [];
  for (const [name, read] of readersOf(commit, options, kzg)) {
    try {
      const data = await read();
      const batch = data === null ? null : deriveBatch(mode, batchNumber, data, derivingOptions(commit));
      if (batch !== null && data !== null && (await isCommitted(batch, data, commit, kzg))) {
        return await committedProof(batch, vaultId, commit, kzg);
      }
      faults.push(`${name}: ${batch === null ? "does not have it" : "gave other data"}`);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      if (error instanceof MintmarkError && error.code === "vault_not_found") throw error;
      faults.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const asked = faults.length === 0 ? "name a member or the engine's server as a source" : faults.join("; ");
  throw new MintmarkError("proof_not_ready", `No source gave the data of ${mode}-${batchNumber}: ${asked}.`);
}

type CommitEvent = L1Event & { readonly type: "batchCommitted" };

async function isCommitted(batch: DerivedBatch, data: Uint8Array, commit: CommitEvent, kzg: Kzg): Promise<boolean> {
  const { blobs } = commit;
  return isBatch(batch, commit) && (blobs === undefined || hasBlobs(data, blobs.versionedHashes, kzg));
}

/** The sources of a batch's data, by name, in order. */
function readersOf(commit: CommitEvent, { l1, blobs = [], sources = [], signal }: ProveFromL1Options, kzg: Kzg) {
  const { mode, batchNumber, txHash } = commit;
  const inCalldata = mode === "zk-rollup" && commit.blobs === undefined;
  const onL1 = inCalldata ? [["L1", () => l1.rollupData(txHash)] as const] : [];
  const inBlobs = batchesFrom(blobs, { commit: async () => commit, kzg, l1 });
  const elsewhere = [...inBlobs, ...sources].map(
    (source) => [source.name, () => source.batchData(mode, batchNumber, signal)] as const,
  );
  return [...onL1, ...elsewhere];
}

async function findCommit(vaultId: VaultId, { l1, fromBlock, signal }: ProveFromL1Options): Promise<CommitEvent> {
  const { mode, batchNumber } = unpackVaultId(vaultId);
  const newest = await l1.blockNumber();
  for (const [from, to] of blockRanges(fromBlock, newest)) {
    signal?.throwIfAborted();
    for (const event of await l1.events(from, to)) {
      if (event.type === "batchCommitted" && event.mode === mode && event.batchNumber === batchNumber) return event;
    }
  }
  throw new MintmarkError("batch_not_found", `L1 has not committed ${mode}-${batchNumber}.`);
}
