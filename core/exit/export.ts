import { CommittedData, type DataSources } from "../archive/committed-data.ts";
import { committedProof } from "../archive/derive.ts";
import { blockRanges } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { type Kzg, withKzg } from "../kzg/kzg.ts";
import { batchIdOf, type VaultId } from "../model.ts";
import type { L1Event, L1Reader } from "../ports.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import { type ExitKit, requireFittingParts } from "./kit.ts";

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
  requireFittingParts(kit);
  await l1.verifyVault(kit);
  return kit;
}

/** Options of {@link proveFromL1}. */
export interface ProveFromL1Options extends DataSources {
  readonly l1: Pick<L1Reader, "block" | "blockNumber" | "events" | "rollupData">;
  /** The deployment block of the settlement contract, or any block before the batch's commit. */
  readonly fromBlock: bigint;
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
  return withKzg(options.kzg, async (kzg) => {
    const faults: string[] = [];
    const onFault = ({ name }: { readonly name: string }, error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      faults.push(`${name}: ${error === null ? "does not have it" : why}`);
    };
    const found = await new CommittedData(options.l1, kzg, options).batch(commit, onFault, options.signal);
    if (found !== null) return committedProof(found.batch, vaultId, commit, kzg);
    const asked = faults.length === 0 ? "name a member or the engine's server as a source" : faults.join("; ");
    const batchId = batchIdOf(commit.mode, commit.batchNumber);
    throw new MintmarkError("proof_not_ready", `No source gave the data of ${batchId}: ${asked}.`);
  });
}

type CommitEvent = L1Event & { readonly type: "batchCommitted" };

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
