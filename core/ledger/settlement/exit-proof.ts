import type { VaultId } from "../../model.ts";
import type { VaultProof } from "../../proof-types.ts";
import { decodeRecord } from "../../store/layout.ts";
import { importRecord } from "../../store/records.ts";
import { importKey } from "../../store/store-keys.ts";
import { vaultProof } from "../batches/proofs.ts";
import type { Ledger } from "../ledger.ts";
import { placeOf } from "../vaults/vaults.ts";

/**
 * A vault's proof under the header by which the contract that pays it keeps its batch: the settlement contract's, or a mirror's own for a
 * token of another chain. No header while that contract does not know the batch.
 */
export async function exitProof(ledger: Ledger, vaultId: VaultId): Promise<VaultProof> {
  const proof = await vaultProof(ledger, vaultId);
  const { chainId } = proof.vault;
  if (proof.header === null || chainId === ledger.settlement.chainId) return proof;
  const { mode, batchNumber } = placeOf(vaultId);
  const stored = await ledger.store.get(importKey(chainId, mode, batchNumber));
  if (stored === undefined) return { ...proof, header: null };
  const { committedAt, l1Sequence } = decodeRecord(importRecord, stored, "A mirror's batch");
  return { ...proof, header: { ...proof.header, committedAt, sequence: l1Sequence } };
}
