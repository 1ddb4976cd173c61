import { CommittedData, type DataSources } from "../archive/committed-data.ts";
import { chainProof } from "../archive/derive.ts";
import { blockRanges, commitsIn } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { batchIdOf, type Standard, type VaultId } from "../model.ts";
import type { CommitEvent, L1Reader, ProvenVault } from "../ports.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import { type Kzg, withKzg } from "../protocol/kzg/kzg-thread.ts";
import { type MadeVaultProof, proveMadeVault } from "../protocol/making.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { type TransferableVault, transferredVault } from "../protocol/transfer-rules.ts";
import { isMadeVaultId, unpackMadeVaultId } from "../protocol/vault.ts";
import { type ExitKit, type ExitTip, requireFittingParts } from "./kit.ts";
import {
  isSpentError,
  type SearchOptions,
  type StandingChain,
  standingOf,
  verified,
} from "./standing.ts";

/** The chain that checks a new exit kit. */
export type KitChain = StandingChain & Pick<L1Reader, "registration" | "maturity">;

/**
 * The exit kit of a proven vault. The contract itself verifies the proof first. The proof comes
 * from an engine, an archive, or {@link proveFromL1}.
 *
 * @param search - where to look for a record that spends the vault on L1 but does not count;
 *   default nowhere
 * @throws MintmarkError `proof_not_ready` while L1 has not committed the batch;
 *   `asset_not_registered`; `mint_unwithdrawable` when the batch came before the asset's
 *   registration; `vault_spent` after a transfer; `l1_failed` with the contract's reason
 *
 * @example
 * const kit = await exportExitKit(await engine.proofs.exit(vaultId), l1);
 */
export async function exportExitKit(
  proof: BatchVaultProof,
  l1: KitChain,
  search?: SearchOptions,
): Promise<ExitKit> {
  const { vault, header, siblings, assetPath, hops, refutation } = proof;
  if (header === null)
    throw new MintmarkError("proof_not_ready", "L1 has not committed the vault's batch yet.");
  const registration = await l1.registration(vault.chainId, vault.assetType);
  if (registration === null) throw new MintmarkError("asset_not_registered");
  const { standard, token: address, quantum, mintingBlobScheme, since } = registration;
  if (header.sequence < since) {
    const detail =
      "The vault's batch came before its asset was registered, so the vault can never be withdrawn.";
    throw new MintmarkError("mint_unwithdrawable", detail);
  }
  const { chainId, contract } = l1.settlement;
  const kit: ExitKit = {
    settlement: { chainId, contract },
    token: {
      address,
      standard,
      quantum,
      mintingBlobScheme,
      tokenId: tokenIdOf(standard, mintingBlobScheme, vault.mintingBlob),
    },
    vault,
    header,
    siblings,
    assetPath,
    ...(hops && { hops }),
    ...(refutation && { refutation }),
    maturesAt:
      standard === "erc721" && !isMadeVaultId(vault.vaultId)
        ? header.committedAt + (await l1.maturity())
        : null,
    tip: await tipOf({ ...proof, header }, l1, standard),
  };
  requireFittingParts(kit);
  if (search !== undefined) return (await standingOf(kit, l1, search)).kit;
  try {
    return (await verified(kit, l1)).kit;
  } catch (error) {
    throw isSpentError(error) ? new MintmarkError("vault_spent") : error;
  }
}

/** The vault that a kit pays. How many units transfers have left it, L1 tells. */
async function tipOf(
  { vault, hops = [] }: ProvenVault,
  l1: KitChain,
  standard: Standard,
): Promise<ExitTip> {
  const { vaultId, owner, amount, assetType } = vault;
  const minted = {
    vaultId,
    owner,
    amount,
    assetType,
    withdrawn: 0n,
    standard,
    transferable: true,
    hops: 0,
  };
  let tip: TransferableVault = minted;
  for (const hop of hops) {
    const spent = { ...tip, withdrawn: await l1.withdrawn(tip.vaultId, standard) };
    const transfer = { vaultId: tip.vaultId, amount: hop.amount, to: hop.to };
    tip = transferredVault(spent, { transfer }, hop);
  }
  if (tip.owner !== ZERO_ADDRESS)
    return { vaultId: tip.vaultId, owner: tip.owner, amount: tip.amount };
  throw new MintmarkError("vault_not_found", `Vault ${tip.vaultId} is redeemed, and nobody's.`);
}

/** The proof of a vault that L1 made by itself. Throws `vault_not_found`. */
async function proveMadeFromL1(
  vaultId: VaultId,
  { l1, fromBlock, signal }: ProveFromL1Options,
): Promise<MadeVaultProof> {
  const { making, slot } = unpackMadeVaultId(vaultId);
  const { chainId } = l1.settlement;
  for (const [first, last] of blockRanges(fromBlock, await l1.blockNumber())) {
    signal?.throwIfAborted();
    for (const event of await l1.events(first, last)) {
      if (event.type !== "made" || event.making !== making) continue;
      const { vaults, sequence } = event;
      return proveMadeVault({ chainId, making: Number(making), vaults, sequence }, slot);
    }
  }
  throw new MintmarkError("vault_not_found", `L1 has not made vault ${vaultId}.`);
}

/** Options of {@link proveFromL1}. */
export interface ProveFromL1Options extends DataSources {
  readonly l1: Pick<
    L1Reader,
    "settlement" | "block" | "blockNumber" | "events" | "registrations" | "rollupData"
  >;
  /** The deployment block of the settlement contract, or any block before the batch's commit. */
  readonly fromBlock: bigint;
  /** Checks and opens blobs. Default: a thread of its own. */
  readonly kzg?: Kzg;
  readonly signal?: AbortSignal;
}

/**
 * Proves a vault from L1 alone and, for validium, a source of the batch's data. Needs no store.
 * Transfers are always on L1; {@link exportExitKit} has the contract judge them.
 *
 * @throws MintmarkError `batch_not_found` when L1 has no such batch; `vault_not_found`;
 *   `proof_not_ready` when no source has the data
 *
 * @example
 * const kit = await exportExitKit(await proveFromL1(vaultId, { l1, fromBlock }), l1);
 */
export async function proveFromL1(
  vaultId: VaultId,
  options: ProveFromL1Options,
): Promise<BatchVaultProof> {
  const { l1, fromBlock, signal } = options;
  const rest = commitsIn(l1, fromBlock, await l1.blockNumber(), signal);
  const read = new Map<string, CommitEvent>();
  /**
   * Reads no further than the commit: a transfer comes after the batch of the vault that it spends.
   */
  const commitOf = async (batchId: string): Promise<CommitEvent> => {
    for (;;) {
      const known = read.get(batchId);
      if (known !== undefined) return known;
      const { value: next, done } = await rest.next();
      if (done) throw new MintmarkError("batch_not_found", `L1 has not committed ${batchId}.`);
      read.set(batchIdOf(next.mode, next.batchNumber), next);
    }
  };
  return withKzg(options.kzg, async (kzg) => {
    const data = new CommittedData(l1, kzg, options);
    const provenMade = (made: VaultId) => proveMadeFromL1(made, options);
    return chainProof(vaultId, kzg, provenMade, async (mode, batchNumber) => {
      const commit = await commitOf(batchIdOf(mode, batchNumber));
      return { commit, ...(await data.batch(commit, "proof_not_ready", signal)) };
    });
  });
}
