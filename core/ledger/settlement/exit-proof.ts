import type { VaultId } from "../../model.ts";
import type { BatchHeader } from "../../ports.ts";
import type { VaultProof } from "../../proof-types.ts";
import type { VaultPlace } from "../../protocol/vault.ts";
import { decodeRecord } from "../../store/layout.ts";
import { importRecord } from "../../store/records.ts";
import { importKey } from "../../store/store-keys.ts";
import { vaultProof } from "../batches/proofs.ts";
import type { Ledger } from "../ledger.ts";
import { placeOf } from "../vaults/vaults.ts";

/** A vault's proof under the header by which the contract that pays it keeps its batch; no header while that contract does not know the batch. */
export async function exitProof(ledger: Ledger, vaultId: VaultId): Promise<VaultProof> {
  const proof = await vaultProof(ledger, vaultId);
  if (proof.header === null) return proof;
  return { ...proof, header: await headerAt(ledger, proof.vault.chainId, placeOf(vaultId), proof.header) };
}

/** A batch's header as the contract of a chain keeps it, from the settlement contract's own; null while that contract does not know the batch. */
export async function headerAt(
  ledger: Ledger,
  chainId: bigint,
  { mode, batchNumber }: Pick<VaultPlace, "mode" | "batchNumber">,
  header: BatchHeader,
): Promise<BatchHeader | null> {
  if (chainId === ledger.settlement.chainId) return header;
  const stored = await ledger.store.get(importKey(chainId, mode, batchNumber));
  if (stored === undefined) return null;
  const { committedAt, l1Sequence } = decodeRecord(importRecord, stored, "A mirror's batch");
  return { ...header, committedAt, sequence: l1Sequence };
}
