import type { WaitOptions } from "../../abort.ts";
import { MintmarkError } from "../../errors.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { PortalIdentity } from "../../ports.ts";
import { MAX_UINT64, requireBigint } from "../../protocol/bounds.ts";
import type { PortalRecord } from "../../store/records.ts";
import { requireAddress } from "../../validate.ts";

/** The contract that pays on a chain, in the writer's view. Throws `chain_not_supported`. */
export function latestPortal(ledger: Ledger, chainId: bigint): PortalRecord {
  return requirePortal(ledger.portals.latest(chainId), chainId);
}

/** The same in the readers' view. */
export function portalOf(ledger: Ledger, chainId: bigint): FollowedPortal {
  return requirePortal(ledger.portals.get(chainId), chainId);
}

/** All paying contracts in the readers' view: the settlement contract, then the mirrors. */
export function portals(ledger: Ledger): readonly FollowedPortal[] {
  const { chainId } = ledger.settlement;
  const mirrors = [...ledger.portals.values()].filter((portal) => portal.chainId !== chainId);
  return [portalOf(ledger, chainId), ...mirrors];
}

function requirePortal(portal: PortalRecord | undefined, chainId: bigint): PortalRecord {
  if (portal === undefined) {
    throw new MintmarkError("chain_not_supported", `No mirror of the state on chain ${chainId} is known here.`);
  }
  return portal;
}

/**
 * Adds a mirror. Does nothing when it is known. A chain keeps its mirror for ever, because owners sign for its address.
 */
export async function addMirror(ledger: Ledger, mirror: PortalIdentity, wait?: WaitOptions): Promise<void> {
  const { chainId } = mirror;
  requireBigint("chainId", chainId, 1n, MAX_UINT64);
  const contract = requireAddress("contract", mirror.contract);
  await ledger.writer.alone(async (group) => {
    const known = ledger.portals.latest(chainId);
    if (known?.contract === contract && chainId !== ledger.settlement.chainId) return;
    if (known !== undefined) {
      throw new MintmarkError(
        "store_mismatch",
        `On chain ${chainId} this store's withdrawals are paid by ${known.contract}, not ${contract}.`,
      );
    }
    ledger.record(group, { kind: "mirrorAdded", chainId, contract });
    ledger.putPortal(group, { chainId, contract, observed: null, finalized: null });
  }, wait?.signal);
}

/** A contract that pays withdrawals of its chain's tokens, and how far that chain is followed. */
export interface FollowedPortal extends PortalIdentity {
  /** Last block whose events are applied; null before the first. */
  readonly observed: bigint | null;
  /** Last block that is recorded as final; null before the first. */
  readonly finalized: bigint | null;
}
