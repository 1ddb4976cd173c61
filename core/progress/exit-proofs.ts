import { headerOf } from "../batches/batches.ts";
import type {
  BatchMultiproof,
  BatchTransition,
  ProofOptions,
  StateExtension,
} from "../batches/proofs.ts";
import * as proofs from "../batches/proofs.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Mode, VaultId } from "../model.ts";
import type { BatchHeader, VaultContent } from "../ports.ts";
import type { StateCounts } from "../protocol/commitment.ts";
import type { BatchVaultProof, VaultStateProof } from "../protocol/proof.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { BlobProof } from "../protocol/versioned-hash.ts";
import { decodeRecord } from "../store/layout.ts";
import { importRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireMode } from "../validate.ts";
import { headerOfMaking, lineageFaults, readMaking } from "../vaults/makings.ts";
import { originOf } from "../vaults/transfer-lists.ts";
import { batchOfRecord, placeOf, readVaults } from "../vaults/vaults.ts";

/** Throws `vault_void` for a vault whose token came back as another one, so it never counts. */
async function countedProof(
  ledger: Ledger,
  vaultId: VaultId,
  options?: ProofOptions,
): Promise<BatchVaultProof> {
  const proof = await proofs.vaultProof(ledger, vaultId, options);
  const [ended] = await lineageFaults(ledger, await readVaults(ledger, [placeOf(vaultId)], null));
  if (ended) throw ended;
  const refutation = await proofs.provenRefutation(ledger, vaultId);
  return { ...proof, ...(refutation && { refutation }) };
}

async function exitProof(
  ledger: Ledger,
  vaultId: VaultId,
  options?: ProofOptions,
): Promise<BatchVaultProof> {
  const proof = await countedProof(ledger, vaultId, options);
  const header = await exitHeader(ledger, proof.vault.chainId, placeOf(vaultId));
  return { ...proof, header };
}

/**
 * The header of a mint's batch on a chain; null unless the chain has that batch, and the batch of
 * the vault's last transfer. A mirror has its own times and order.
 */
export async function exitHeader(
  ledger: Ledger,
  chainId: bigint,
  place: VaultPlace,
): Promise<BatchHeader | null> {
  if (place.mode === "made") return headerOfMaking(await readMaking(ledger, place.batchNumber));
  const batch = batchOfRecord(ledger, place);
  const header = headerOf(batch);
  if (header !== null && batch.transfers) {
    const origin = await originOf(ledger, place);
    return origin.mode === "made"
      ? headerOfMaking(await readMaking(ledger, origin.batchNumber))
      : headerOf(batchOfRecord(ledger, origin));
  }
  if (header === null || chainId === ledger.services.settlement.chainId) return header;
  const stored = await ledger.store.get(keyOf.import(chainId, place.mode, place.batchNumber));
  if (stored === undefined) return null;
  const { committedAt, l1Sequence } = decodeRecord(importRecord, stored, "A mirror's batch");
  return { ...header, committedAt, sequence: l1Sequence };
}

export function proofsOf(context: EngineContext): Proofs {
  return {
    content: async (vaultId) => proofs.vaultContent(context.ledger, vaultId),
    vault: async (vaultId, options) => countedProof(context.ledger, vaultId, options),
    exit: async (vaultId, options) => exitProof(context.ledger, vaultId, options),
    vaults: async (vaultIds) => proofs.vaultMultiproof(context.ledger, vaultIds),
    vaultState: async (vaultId, at) => proofs.vaultStateProof(context.ledger, vaultId, at),
    blobs: async (mode, batchNumber, options) =>
      proofs.blobProofs(context.ledger, requireMode(mode), batchNumber, options),
    batch: async (mode, batchNumber) =>
      proofs.batchProof(context.ledger, requireMode(mode), batchNumber),
    consistency: async (older, newer) => proofs.consistencyProof(context.ledger, older, newer),
  };
}

/**
 * Proofs of sealed batches (docs/protocol.md 7): public, without tenants. The engine verifies each
 * proof with the functions of `mintmark/protocol` before it returns it. Until L1 has committed a
 * batch, slots can become void; earlier proofs of the batch are stale then.
 *
 * All reject with `proof_not_ready` while a batch is open, and with `vault_not_found`, `vault_void`
 * or `batch_not_found` when there is nothing to prove.
 *
 * @example
 * const proof = await engine.proofs.vault(vaultId);
 * verifyVaultProof(proof.batchRoot, proof); // true
 */
export interface Proofs {
  /** The content of a vault without a proof, which takes 50 ms of a core for a vault in blobs. */
  content(vaultId: VaultId): Promise<VaultContent>;
  /**
   * The path from a vault to the root of its batch. For a vault that transfers made: the path of
   * the minted vault, and the transfers since, in `hops`. When L1 has a record that spends the
   * vault but does not count, the proof holds it as `refutation`.
   */
  vault(vaultId: VaultId, options?: ProofOptions): Promise<BatchVaultProof>;
  /**
   * {@link Proofs.vault}'s proof, with the header of the contract that pays the vault: a mirror's
   * for a token of another chain. `header` is null while that contract does not know the batch.
   */
  exit(vaultId: VaultId, options?: ProofOptions): Promise<BatchVaultProof>;
  /**
   * One proof for many vaults of one batch, named in any order, with each shared sibling once.
   * Rejects with `validation_failed` for no vault, for a vault that is named twice, for vaults of
   * several batches, and for a vault that a transfer made.
   */
  vaults(vaultIds: readonly VaultId[]): Promise<BatchMultiproof>;
  /**
   * Rejects with `validation_failed` for a vault that a transfer made.
   *
   * @param at - batches of each mode that the commitment covers; default all sealed ones
   */
  vaultState(vaultId: VaultId, at?: StateCounts): Promise<VaultStateProof>;
  /**
   * The proof of each blob of a batch, in order, by which JavaScript alone checks the batch's data
   * (`verifyBlob`). Empty for a batch without blobs. The native code makes a proof in about 50 ms,
   * and the engine keeps it.
   */
  blobs(mode: Mode, batchNumber: number, options?: ProofOptions): Promise<readonly BlobProof[]>;
  /**
   * Shows that the batch was appended to the batches before it. Does not show that L1 accepted it.
   */
  batch(mode: Mode, batchNumber: number): Promise<BatchTransition>;
  /**
   * Rejects with `validation_failed` unless, in both modes, `older` <= `newer` <= the number of
   * sealed batches.
   *
   * @param newer - default all sealed batches
   */
  consistency(older: StateCounts, newer?: StateCounts): Promise<StateExtension>;
}
