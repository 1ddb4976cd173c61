import type { VaultId } from "../model.ts";
import type { L1Reader, L1Voider, ProvenVault } from "../ports.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import type { Archive } from "./archive.ts";

/** Two vaults of one ERC-721 token, the later of which L1 has voided on our word. */
export interface VoidedDuplicate {
  readonly earlier: VaultId;
  readonly later: VaultId;
  readonly txHash: `0x${string}`;
}

export interface VoidOptions {
  readonly archive: Archive;
  readonly l1: Pick<L1Reader, "withdrawn"> & L1Voider;
  readonly onVoided?: (voided: VoidedDuplicate) => void;
  readonly signal?: AbortSignal;
}

/**
 * Exhausts on L1 the later of any two committed vaults of one ERC-721 token. Returns how many; one that L1 refuses does not hold up the
 * others, and is thrown at the end.
 */
export async function voidDuplicates({ archive, l1, onVoided, signal }: VoidOptions): Promise<number> {
  const failures: unknown[] = [];
  let voided = 0;
  for await (const pair of archive.duplicates()) {
    signal?.throwIfAborted();
    const ordered = await inL1Order(archive, pair);
    if (ordered === null) continue;
    const [earlier, later] = ordered;
    // It may be done, by another watcher a moment ago; or too late, when the later one was withdrawn before anyone looked.
    if ((await l1.withdrawn(later.vault.vaultId, "erc721")) > 0n) continue;
    try {
      const { txHash } = await l1.voidDuplicate(earlier, later, signal && { signal });
      voided++;
      onVoided?.({ earlier: earlier.vault.vaultId, later: later.vault.vaultId, txHash });
    } catch (error) {
      signal?.throwIfAborted();
      if ((await l1.withdrawn(later.vault.vaultId, "erc721")) === 0n) failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join("; "));
  return voided;
}

/** The two with their proofs, in the order in which L1 took them; null while L1 has not committed both. */
async function inL1Order(
  archive: Archive,
  pair: readonly [VaultId, VaultId],
): Promise<[ProvenVault, ProvenVault] | null> {
  const proven: ProvenVault[] = [];
  for (const vaultId of pair) {
    const { mode, batchNumber } = unpackVaultId(vaultId);
    if (!(await archive.holds(mode, batchNumber))) return null;
    const { vault, header, siblings } = await archive.vaultProof(vaultId);
    proven.push({ vault, header, siblings });
  }
  const [one, other] = proven as [ProvenVault, ProvenVault];
  const isOrdered =
    one.header.sequence === other.header.sequence
      ? one.vault.vaultId < other.vault.vaultId
      : one.header.sequence < other.header.sequence;
  return isOrdered ? [one, other] : [other, one];
}
