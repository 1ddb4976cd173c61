import { MintmarkError } from "../../errors.ts";
import { readBatchVaults } from "../../ledger/batch-vaults.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { batchIdOf, type Mode } from "../../model.ts";
import { tokenIdOf } from "../../protocol/blob.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import { runAt } from "../../sealing/void-runs.ts";
import type { StoredVault, VaultColumns } from "../../store/columns/vault-columns.ts";
import type { Group } from "../../store/group.ts";
import type { VoidRun } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";

/** Binds ERC-1155 ids as L1's history has them. */
export function bindIds(ledger: Ledger, group: Group, vaults: readonly StoredVault[], voids: readonly VoidRun[]): void {
  for (const [slot, vault] of vaults.entries()) {
    const key = runAt(voids, slot) === null ? bindingOf(ledger, vault) : null;
    if (key !== null) group.stage(key, Buffer.from(hexToBytes(vault.blob)));
  }
}

/** The binding record of a vault's ERC-1155 id; null for other standards. */
function bindingOf(ledger: Ledger, { assetIndex, blob }: Pick<StoredVault, "assetIndex" | "blob">): Buffer | null {
  const { standard, blobScheme } = ledger.assetAt(assetIndex);
  const tokenId = standard === "erc1155" ? tokenIdOf(standard, blobScheme, blob) : null;
  return tokenId === null ? null : keys.bindingKey(assetIndex, tokenId);
}

/**
 * The bindings of dropped batches that no kept batch needs. Reads kept batches only when there are such bindings.
 *
 * @param adopted - the first dropped batch of each mode
 */
export async function unboundBy(
  ledger: Ledger,
  adopted: readonly { readonly mode: Mode; readonly first: number }[],
  dropped: readonly VaultColumns[],
): Promise<Iterable<Buffer>> {
  const unbound = new Map<string, Buffer>();
  for (const vaults of dropped) {
    for (const key of bindingsIn(ledger, vaults)) unbound.set(keys.keyString(key), key);
  }
  for (const { mode, first } of adopted) {
    for (let number = 0; number < first && unbound.size > 0; number++) {
      const record = ledger.batches[mode].latest(number);
      if (record === undefined) throw new MintmarkError("store_corrupt", `${batchIdOf(mode, number)} is missing.`);
      const stays = await readBatchVaults(ledger, record);
      for (const key of bindingsIn(ledger, stays)) unbound.delete(keys.keyString(key));
    }
  }
  return unbound.values();
}

function* bindingsIn(ledger: Ledger, vaults: VaultColumns): Generator<Buffer, void, void> {
  for (let slot = 0; slot < vaults.count; slot++) {
    if (ledger.standards[vaults.assetIndex[slot] as number] !== "erc1155") continue;
    const key = bindingOf(ledger, vaults.at(slot));
    if (key !== null) yield key;
  }
}
