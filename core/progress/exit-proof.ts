import { headerOf, vaultProof } from "../batches/proofs.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { VaultId } from "../model.ts";
import type { BatchHeader } from "../ports.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { decodeRecord } from "../store/layout.ts";
import { importRecord } from "../store/records.ts";
import { importKey } from "../store/store-keys.ts";
import { batchOfRecord, placeOf } from "../vaults/vaults.ts";

/** A vault's proof under the header by which the contract that pays it keeps its batch; no header while that contract does not know the batch. */
export async function exitProof(ledger: Ledger, vaultId: VaultId): Promise<BatchVaultProof> {
  const proof = await vaultProof(ledger, vaultId);
  return { ...proof, header: await exitHeader(ledger, proof.vault.chainId, placeOf(vaultId)) };
}

/** A batch's header as the contract of a chain keeps it: the settlement contract, or a mirror, which has times and an order of its own. */
export async function exitHeader(ledger: Ledger, chainId: bigint, place: VaultPlace): Promise<BatchHeader | null> {
  const header = headerOf(batchOfRecord(ledger, place));
  if (header === null || chainId === ledger.settlement.chainId) return header;
  const stored = await ledger.store.get(importKey(chainId, place.mode, place.batchNumber));
  if (stored === undefined) return null;
  const { committedAt, l1Sequence } = decodeRecord(importRecord, stored, "A mirror's batch");
  return { ...header, committedAt, sequence: l1Sequence };
}
