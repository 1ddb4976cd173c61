import { type VoidingPortal, type VoidOptions, voidDuplicates } from "../archive/index.ts";
import type { ProvenVault } from "../ports.ts";
import { unpackVaultId } from "../protocol/vault.ts";
import { type MirrorContract, stepOf } from "./contract.ts";
import type { SourceHistory } from "./history.ts";
import { importBatch } from "./relay.ts";

/** Where duplicates are looked for, and the mirror that voids them. */
export interface MirrorVoidOptions extends Omit<VoidOptions, "portal"> {
  /** The state's own chain, which the archive follows. */
  readonly source: SourceHistory;
  readonly mirror: MirrorContract;
}

/**
 * Exhausts on a mirror every vault of an ERC-721 token of its chain but the first, as `voidDuplicates` does on the settlement chain. A vault
 * matures from when the mirror accepted its batch, whether or not its batch has been imported; so whoever waits for others to import it
 * comes too late, and both batches are imported here. Vaults whose batch the mirror has not accepted are left for another time.
 */
export function voidOnMirror({ source, mirror, ...options }: MirrorVoidOptions): Promise<number> {
  const asImported = async (proven: ProvenVault, signal?: AbortSignal): Promise<ProvenVault> => {
    const { mode, batchNumber } = unpackVaultId(proven.vault.vaultId);
    return { ...proven, header: await importBatch({ source, mirror }, mode, batchNumber, signal) };
  };
  const portal: VoidingPortal = {
    settlement: mirror.settlement,
    withdrawn: (...vault) => mirror.withdrawn(...vault),
    registration: (...asset) => mirror.registration(...asset),
    async sequenceOf({ mode, batchNumber }) {
      const step = await stepOf(mirror, mode, batchNumber);
      return step && BigInt(step.sequence);
    },
    async voidDuplicate(earlier, later, sending) {
      const [first, second] = [await asImported(earlier, sending?.signal), await asImported(later, sending?.signal)];
      return mirror.voidDuplicate(first, second, sending);
    },
  };
  return voidDuplicates({ ...options, portal });
}
