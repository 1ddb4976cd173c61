import type { VaultId } from "../model.ts";
import type { L1Reader, L1Voider } from "../ports.ts";
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
 * Exhausts on L1 every committed vault of an ERC-721 token but the first. Returns how many; one that L1 refuses does not hold up the others,
 * and is thrown at the end.
 */
export async function voidDuplicates({ archive, l1, onVoided, signal }: VoidOptions): Promise<number> {
  const failures: unknown[] = [];
  let voided = 0;
  for (const vaults of await vaultsByToken(archive)) {
    const [earlier, ...others] = await inL1Order(archive, vaults);
    if (earlier === undefined) continue;
    for (const later of others) {
      signal?.throwIfAborted();
      // It may be done, by another watcher a moment ago; or too late, when the later one was withdrawn before anyone looked.
      if ((await l1.withdrawn(later, "erc721")) > 0n) continue;
      const [first, second] = [await archive.vaultProof(earlier), await archive.vaultProof(later)];
      // Another chain's token is paid there, and voided there.
      if (second.vault.chainId !== archive.settlement.chainId) continue;
      try {
        const { txHash } = await l1.voidDuplicate(first, second, signal && { signal });
        voided++;
        onVoided?.({ earlier, later, txHash });
      } catch (error) {
        signal?.throwIfAborted();
        if ((await l1.withdrawn(later, "erc721")) === 0n) failures.push(error);
      }
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join("; "));
  return voided;
}

/** The vaults of each token that has several: the index notes for each one but the first the one that it found there. */
async function vaultsByToken(archive: Archive): Promise<Iterable<readonly VaultId[]>> {
  const byHolder = new Map<VaultId, VaultId[]>();
  for await (const [holder, vaultId] of archive.duplicates()) {
    const found = byHolder.get(holder);
    if (found === undefined) byHolder.set(holder, [holder, vaultId]);
    else found.push(vaultId);
  }
  return byHolder.values();
}

/**
 * Those that L1 has committed and whose data is here, as L1 took them. A member holds others: what it has signed and nobody has committed
 * must not stand before those that are.
 */
async function inL1Order(archive: Archive, vaultIds: readonly VaultId[]): Promise<VaultId[]> {
  const places: { readonly vaultId: VaultId; readonly sequence: bigint }[] = [];
  for (const vaultId of vaultIds) {
    const { mode, batchNumber } = unpackVaultId(vaultId);
    if (!(await archive.holds(mode, batchNumber))) continue;
    const commit = await archive.commit(mode, batchNumber);
    if (commit !== null) places.push({ vaultId, sequence: commit.sequence });
  }
  const isBefore = (a: (typeof places)[number], b: (typeof places)[number]) =>
    a.sequence === b.sequence ? a.vaultId < b.vaultId : a.sequence < b.sequence;
  return places.toSorted((a, b) => (isBefore(a, b) ? -1 : 1)).map(({ vaultId }) => vaultId);
}
