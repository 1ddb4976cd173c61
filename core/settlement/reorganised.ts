import type { WaitOptions } from "../abort.ts";
import { pause } from "../backoff.ts";
import { least } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import type { SettlementPort } from "../operator.ts";
import type { Portal } from "../ports.ts";

type Chain = Pick<Portal, "settlement" | "block">;

/**
 * Takes back what the engine read of blocks that are no longer on the chain, back to the newest
 * that still is. Returns the first block that was taken back; null for none. Final blocks are
 * looked at twice, because a node may speak for another chain for a while.
 *
 * @param fromBlock - the block of the contract's deployment
 */
export async function takeBackReorganised(
  engine: SettlementPort,
  portal: Chain,
  fromBlock: bigint,
  { secondLookMs = 0, signal }: WaitOptions & { readonly secondLookMs?: number } = {},
): Promise<bigint | null> {
  const { chainId } = portal.settlement;
  let gone = await replaced(engine, portal, fromBlock);
  if (gone?.reach === "below final") {
    await pause(secondLookMs, signal);
    gone = await replaced(engine, portal, fromBlock);
  }
  if (gone === null) return null;
  await engine.operator.recordReorg(chainId, gone.from, gone.reach);
  return gone.from;
}

/** The first recorded block that is no longer on the chain, and whether it was final. */
async function replaced({ operator }: SettlementPort, portal: Chain, fromBlock: bigint) {
  const { chainId } = portal.settlement;
  const { observed, finalized } = operator.portal(chainId);
  if (observed === null) return null;
  const final = least(observed, finalized ?? fromBlock - 1n);
  let common: bigint | null = null;
  let finalReplaced = false;
  for await (const { number, hash } of operator.checkpoints(chainId)) {
    const block = await portal.block(number);
    if (block?.hash === hash) {
      common = number;
      break;
    }
    if (number > final) continue;
    // A shorter chain proves nothing yet: nodes can lag far behind.
    if (block === null)
      throw new MintmarkError(
        "l1_failed",
        `the chain ends before block ${number}, which was final`,
      );
    finalReplaced = true;
  }
  const kept = finalReplaced
    ? (common ?? fromBlock - 1n)
    : common !== null && common > final
      ? common
      : final;
  if (kept === observed) return null;
  return { from: kept + 1n, reach: finalReplaced ? "below final" : "above final" } as const;
}
