import type { WaitOptions } from "../abort.ts";
import type { SettlementPort } from "../operator.ts";
import { followerOf, type Watched } from "./follower.ts";

/** The chain and the blocks that are read again. */
export interface RescanOptions extends WaitOptions {
  readonly engine: SettlementPort;
  /** The settlement contract, or a mirror that the engine knows. */
  readonly portal: Watched;
  /** The first block to read: that of the contract's deployment, or a later one. */
  readonly fromBlock: bigint;
  /**
   * Takes back what is recorded of these blocks first, whatever the node says of it now; default
   * false. For a store that recorded what was never on the chain.
   */
  readonly takeBack?: boolean;
}

/**
 * Reads a contract's events again, and adds those that are not recorded. Takes back only what a
 * reorganisation replaced.
 *
 * @returns the number of added events, and the last block that was read
 * @throws MintmarkError `l1_failed` when the node leaves out what it told of before
 *
 * @example
 * const { added } = await rescan({ engine, portal: l1, fromBlock });
 */
export async function rescan({ engine, portal, fromBlock, takeBack, signal }: RescanOptions) {
  const { operator } = engine;
  const { chainId } = portal.settlement;
  if (takeBack) await operator.recordReorg(chainId, fromBlock, "below final");
  const { follow, readAgain } = followerOf(engine, portal, { fromBlock });
  const added = takeBack ? 0 : await readAgain(fromBlock, signal);
  await follow(signal);
  return { added, toBlock: operator.portal(chainId).observed ?? fromBlock };
}
