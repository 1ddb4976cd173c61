import { MintmarkError } from "../../errors.ts";
import type { Mode, VaultId } from "../../model.ts";
import type { BatchHeader, ProvenHop } from "../../ports.ts";
import type { BatchTree } from "../../protocol/batch-tree.ts";
import { unpackHashes } from "../../protocol/hex.ts";
import type { Kzg } from "../../protocol/kzg/kzg.ts";
import type { BatchVaultProof } from "../../protocol/proof.ts";
import { MAX_TRANSFER_HOPS } from "../../protocol/transfer.ts";
import { transferOutputs } from "../../protocol/transfer-data.ts";
import { hopOf } from "../../protocol/transfer-proof.ts";
import { unpackVaultId } from "../../protocol/vault.ts";
import { committedProof, type DerivedBatch } from "./derive.ts";

/** A committed batch with its data. */
interface ReadBatch {
  readonly commit: BatchHeader;
  readonly batch: DerivedBatch;
}

/**
 * The proof of a vault of a committed batch, with the transfers since its mint. The contract judges the transfers.
 *
 * @throws MintmarkError `vault_not_found`
 */
export async function chainProof(
  vaultId: VaultId,
  kzg: Kzg,
  read: (mode: Mode, batchNumber: number) => Promise<ReadBatch>,
): Promise<BatchVaultProof & { readonly header: BatchHeader }> {
  const hops: ProvenHop[] = [];
  for (let at = vaultId; ; ) {
    const { mode, batchNumber, slot } = unpackVaultId(at);
    const { commit, batch } = await read(mode, batchNumber);
    if (batch.transfers === null) {
      const proof = await committedProof(batch, at, commit, kzg);
      return hops.length === 0 ? proof : { ...proof, hops };
    }
    const output = transferOutputs(batch.transfers, batchNumber)[slot];
    if (output === undefined || hops.length === MAX_TRANSFER_HOPS) {
      throw new MintmarkError("vault_not_found", `No valid transfer makes vault ${vaultId}.`);
    }
    const { batchRoot, vaultCount, committedAt, sequence } = commit;
    const siblings = unpackHashes((batch.tree as BatchTree).siblings(slot));
    hops.unshift(
      hopOf(batch.transfers, output, { header: { batchRoot, vaultCount, committedAt, sequence }, siblings }),
    );
    at = output.transfer.vaultId;
  }
}
