import type { WaitOptions } from "../../abort.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Hash } from "../../model.ts";
import type { L1Block } from "../../ports.ts";
import type { Group } from "../../store/group.ts";
import { decodeRecord, encodeRecord } from "../../store/layout.ts";
import { checkpointRecord } from "../../store/records.ts";
import { blockOfCheckpoint, checkpointKey, checkpointsOf, endOf } from "../../store/store-keys.ts";

/** Final checkpoints that are kept: they tell where a chain parts that replaces final blocks. */
const FINAL_KEPT = 64;

/** A block whose events were applied, by the hash that it had then. */
export type Checkpoint = Pick<L1Block, "number" | "hash">;

/** What a caller knows of the block up to which it has read a chain. */
export interface ReadOptions extends WaitOptions {
  /** The block's hash: how a reorganisation is noticed, also after a restart or by another server. */
  readonly blockHash?: Hash | undefined;
}

/** Those of a chain, newest first. */
export async function* checkpoints(ledger: Ledger, chainId: bigint): AsyncGenerator<Checkpoint> {
  const prefix = checkpointsOf(chainId);
  for await (const [key, stored] of ledger.store.entries({ gte: prefix, lt: endOf(prefix), reverse: true })) {
    yield { number: blockOfCheckpoint(key), hash: decodeRecord(checkpointRecord, stored, "A checkpoint") };
  }
}

export function putCheckpoint(group: Group, chainId: bigint, block: bigint, hash: Hash): void {
  group.put(checkpointKey(chainId, block), encodeRecord(checkpointRecord, hash));
}

export async function dropCheckpoints(ledger: Ledger, group: Group, chainId: bigint, fromBlock: bigint): Promise<void> {
  const range = { gte: checkpointKey(chainId, fromBlock), lt: endOf(checkpointsOf(chainId)) };
  for await (const [key] of ledger.store.entries(range)) group.remove(key);
}

/** Forgets the final checkpoints but the newest ones, of which one at `finalized` itself is the first. */
export async function pruneCheckpoints(
  ledger: Ledger,
  group: Group,
  chainId: bigint,
  finalized: bigint,
): Promise<void> {
  let kept = 1;
  const range = { gte: checkpointsOf(chainId), lt: checkpointKey(chainId, finalized), reverse: true };
  for await (const [key] of ledger.store.entries(range)) if (++kept > FINAL_KEPT) group.remove(key);
}
