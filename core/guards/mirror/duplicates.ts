import type { ProvenVault } from "../../ports.ts";
import { unpackVaultId } from "../../protocol/vault.ts";
import { type VoidingPortal, type VoidOptions, voidDuplicates } from "../archive/index.ts";
import { type MirrorContract, stepOf } from "./contract.ts";
import type { SourceHistory } from "./history.ts";
import { importBatch } from "./relay.ts";

/** Options of {@link voidOnMirror}. */
export interface MirrorVoidOptions extends Omit<VoidOptions, "portal"> {
  /** The chain of the state, which the archive follows. */
  readonly source: SourceHistory;
  readonly mirror: MirrorContract;
}

/**
 * Voids on a mirror every vault of an ERC-721 token of its chain but the first, like `voidDuplicates` on the settlement
 * chain. A vault matures from the time when the mirror accepted its batch, imported or not. Another's import could be
 * too late, so this imports both batches. Skips batches that the mirror has not accepted yet.
 *
 * @example
 * const voided = await voidOnMirror({ archive, source: new SourceHistory(l1, fromBlock), mirror });
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
