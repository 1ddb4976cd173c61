import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hash } from "../model.ts";
import type { L1Block, PortalIdentity } from "../ports.ts";
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { checkpointRecord, type PortalRecord } from "../store/records.ts";
import { blockOfCheckpoint, endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { requireAddress } from "../validate.ts";

/** All paying contracts in the readers' view: the settlement contract, then the mirrors. */
export function portals(ledger: Ledger): readonly FollowedPortal[] {
  const { chainId } = ledger.services.settlement;
  const mirrors = [...ledger.l1.portals.durable.values()].filter(
    (portal) => portal.chainId !== chainId,
  );
  return [ledger.l1.portalOn(chainId, null), ...mirrors];
}

/** A chain keeps its mirror for ever, because owners sign for its address. */
export async function addMirror(
  ledger: Ledger,
  mirror: PortalIdentity,
  wait?: WaitOptions,
): Promise<void> {
  const { chainId } = mirror;
  requireBigint("chainId", chainId, 1n, MAX_UINT64);
  const contract = requireAddress("contract", mirror.contract);
  await ledger.writer.alone(async (group) => {
    const known = ledger.l1.portals.view(group).get(chainId);
    if (known?.contract === contract && chainId !== ledger.services.settlement.chainId) return;
    if (known !== undefined) {
      const detail = `On chain ${chainId} this store's withdrawals are paid by ${known.contract}, not ${contract}.`;
      throw new MintmarkError("store_mismatch", detail);
    }
    ledger.journal.record(group, { kind: "mirrorAdded", chainId, contract });
    ledger.l1.portals.set(group, { chainId, contract, observed: null, finalized: null });
  }, wait?.signal);
}

/** Final checkpoints that are kept: they tell where a chain parts that replaces final blocks. */
const FINAL_KEPT = 64;

/** A block whose events were applied, by the hash that it had then. */
export type Checkpoint = Pick<L1Block, "number" | "hash">;

/** A caller names the block up to which it has read a chain by these. */
export interface ReadOptions extends WaitOptions {
  /**
   * The block's hash: how a reorganisation is noticed, also after a restart or by another server.
   */
  readonly blockHash?: Hash | undefined;
}

/** The checkpoints of a chain, newest first. */
export async function* checkpoints(ledger: Ledger, chainId: bigint): AsyncGenerator<Checkpoint> {
  const prefix = prefixOf.checkpoint(chainId);
  for await (const [key, stored] of ledger.store.entries({
    gte: prefix,
    lt: endOf(prefix),
    reverse: true,
  }))
    yield {
      number: blockOfCheckpoint(key),
      hash: decodeRecord(checkpointRecord, stored, "A checkpoint"),
    };
}

export function putCheckpoint(group: Group, chainId: bigint, block: bigint, hash: Hash): void {
  group.put(keyOf.checkpoint(chainId, block), encodeRecord(checkpointRecord, hash));
}

export async function dropCheckpoints(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  fromBlock: bigint,
): Promise<void> {
  const range = {
    gte: keyOf.checkpoint(chainId, fromBlock),
    lt: endOf(prefixOf.checkpoint(chainId)),
  };
  for await (const [key] of ledger.store.entries(range)) group.remove(key);
}

/** Keeps the newest final checkpoints, of which one at `finalized` itself is the first. */
export async function pruneCheckpoints(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  finalized: bigint,
) {
  let kept = 1;
  const range = {
    gte: prefixOf.checkpoint(chainId),
    lt: keyOf.checkpoint(chainId, finalized),
    reverse: true,
  };
  for await (const [key] of ledger.store.entries(range)) if (++kept > FINAL_KEPT) group.remove(key);
}

/**
 * A contract that pays withdrawals of its chain's tokens, and how far that chain is followed: the
 * last block whose events are applied, and the last one that is recorded as final; null before the
 * first.
 */
export type FollowedPortal = PortalRecord;
