import { MintmarkError } from "../errors.ts";
import type { VaultId } from "../model.ts";
import type { BatchHeader, VaultContent } from "../ports.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import { type MadeVaultProof, proveMadeVault } from "../protocol/making.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { transferOutputs } from "../protocol/transfer-data.ts";
import type { TransferFault } from "../protocol/transfer-rules.ts";
import {
  isMadeVaultId,
  packVaultId,
  unpackBatchVaultId,
  unpackVaultId,
} from "../protocol/vault.ts";
import type { ArchiveReads } from "./archive-reads.ts";
import { chainProof, vaultIn } from "./derive.ts";
import type { Commit } from "./keys.ts";
import * as keys from "./keys.ts";
import type { ArchiveGround } from "./vault-index.ts";

/**
 * Why a record moves nothing. `no_vault`: L1 has no vault with this id, or a left-out or void one.
 */
export type RecordFault = TransferFault | "no_vault";

/** A vault that a valid record made. Its proof begins with the minted vault. */
export interface OutputVault extends VaultContent {
  /** The minted vault. */
  readonly origin: VaultId;
  /** The vault that the record spends. */
  readonly spent: VaultId;
  /** Records since the mint, at most 8. */
  readonly hops: number;
}

/** The committed record that spends a vault. There is at most one for ever. */
export interface Spending {
  /** The record's first output: the slot of its leaf. */
  readonly outId: VaultId;
  /**
   * Null for a record that moves the vault. Otherwise its owner withdraws by refuting the record.
   */
  readonly fault: RecordFault | null;
}

export type ArchiveVaults = ReturnType<typeof archiveVaults>;

/** Vaults of an archive as they are now, with their proofs. */
export function archiveVaults({ kzg }: ArchiveGround, reads: ArchiveReads) {
  const vaults = {
    /**
     * Throws `vault_not_found`, `vault_void`; `proof_not_ready` without the batch's data, or that
     * of a vault behind it.
     */
    async vaultContent(vaultId: VaultId): Promise<VaultContent> {
      const output = await vaults.output(vaultId);
      if (output !== null && output.owner !== ZERO_ADDRESS) {
        const { chainId, owner, assetType, amount, mintingBlob } = output;
        return { vaultId, chainId, owner, assetType, amount, mintingBlob };
      }
      if (isMadeVaultId(vaultId)) return (await provenMade(vaultId)).vault;
      const commit = await commitOf(vaultId);
      const batch = await reads.derived(commit);
      if (batch.transfers !== null && (await (await vaults.waitingIn(commit))(vaultId))) {
        const name = `${commit.mode}-${commit.batchNumber}`;
        const detail = `The data of vaults that ${name} transfers is missing; rebuild with a member that has it.`;
        throw new MintmarkError("proof_not_ready", detail);
      }
      const fault = await reads.text(keys.vaultKey("unpayable", vaultId));
      if (fault !== undefined)
        throw new MintmarkError("vault_void", `L1 never pays the vault: ${fault}.`);
      return vaultIn(batch, vaultId);
    },

    /**
     * The vault's proof with the transfers since the mint, verified. Throws as {@link
     * Archive.vaultContent}.
     */
    async vaultProof(
      vaultId: VaultId,
    ): Promise<BatchVaultProof & { readonly header: BatchHeader }> {
      await vaults.vaultContent(vaultId);
      return chainProof(vaultId, kzg, provenMade, async (mode, batchNumber) => {
        const commit = await commitOf(packVaultId({ mode, batchNumber, slot: 0 }));
        return { commit, batch: await reads.derived(commit) };
      });
    },

    /**
     * The vault that a valid record made; null for any other id. One that was redeemed belongs to
     * the zero address.
     */
    async output(vaultId: VaultId): Promise<OutputVault | null> {
      const stored = await reads.record<Omit<OutputVault, "vaultId">>(
        keys.vaultKey("output", vaultId),
      );
      return stored && { vaultId, ...stored };
    },

    /** Units that L1 has paid, or voided with the mint. Only ERC-721 mints are voided. */
    async withdrawn(vaultId: VaultId): Promise<bigint> {
      const origin = (await vaults.output(vaultId))?.origin ?? vaultId;
      return vaults.withdrawnBefore(vaultId, origin, null);
    },

    /**
     * The vault that holds an ERC-721 token after all its transfers; a redeemed one is nobody's.
     */
    async tipOf(minted: VaultId): Promise<VaultId> {
      let tip = minted;
      for (let spent = await vaults.spending(tip); spent?.fault === null; ) {
        tip = spent.outId;
        spent = await vaults.spending(tip);
      }
      return tip;
    },

    /** The committed record that spends a vault, valid or not; null while there is none. */
    spending(vaultId: VaultId): Promise<Spending | null> {
      return reads.record(keys.vaultKey("spent", vaultId));
    },

    /**
     * Whether data is missing without which nobody knows what a committed batch has under an id of
     * its own.
     */
    async waitingIn(commit: Commit): Promise<(vaultId: VaultId) => Promise<boolean>> {
      const { mode, batchNumber } = commit;
      if (!(await reads.holds(mode, batchNumber))) return async () => true;
      if (mode !== "zk-rollup" || !(await reads.has(keys.batchKey("unjudged", mode, batchNumber))))
        return async () => false;
      const { transfers } = await reads.derived(commit);
      const outputs = transferOutputs(transfers ?? [], batchNumber);
      return async (vaultId) => {
        const output = outputs[unpackBatchVaultId(vaultId).slot];
        return output !== undefined && (await vaults.spending(output.transfer.vaultId)) === null;
      };
    },

    /** Units that L1 has paid, or voided within so many commits; null counts every voided mint. */
    async withdrawnBefore(vaultId: VaultId, origin: VaultId, commits: bigint | null) {
      const paid = await reads.paid(vaultId);
      const voided = await reads.text(keys.vaultKey("voided", origin));
      if (paid > 0n || voided === undefined) return paid;
      return commits === null || BigInt(voided) <= commits ? 1n : 0n;
    },
  };
  return vaults;

  /** The proof of a vault that L1 made by itself. Throws `vault_not_found`. */
  async function provenMade(vaultId: VaultId): Promise<MadeVaultProof> {
    const { batchNumber, slot } = unpackVaultId(vaultId);
    const making = await reads.making(batchNumber);
    if (making === null || slot >= making.vaults.length)
      throw new MintmarkError(
        "vault_not_found",
        `L1 has not made vault ${vaultId}, or not finally.`,
      );
    return proveMadeVault(making, slot);
  }

  async function commitOf(vaultId: VaultId): Promise<Commit> {
    const { mode, batchNumber } = unpackBatchVaultId(vaultId);
    const commit = await reads.commit(mode, batchNumber);
    if (commit === null)
      throw new MintmarkError("vault_not_found", `L1 has no batch ${mode}-${batchNumber} yet.`);
    return commit;
  }
}
