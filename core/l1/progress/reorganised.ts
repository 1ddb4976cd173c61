import { least } from "../../blocks.ts";
import { MintmarkError } from "../../errors.ts";
import type { SettlementPort } from "../../operator.ts";
import type { Portal } from "../../ports.ts";

/**
 * Takes back what the engine read of blocks that are no longer on the chain, back to the newest
 * that still is. Returns the first block that was taken back; null for none.
 *
 * @param fromBlock - the block of the contract's deployment
 */
export async function takeBackReorganised(
  { operator }: SettlementPort,
  portal: Pick<Portal, "settlement" | "block">,
  fromBlock: bigint,
): Promise<bigint | null> {
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
  await operator.recordReorg(chainId, kept + 1n, finalReplaced ? "below final" : undefined);
  return kept + 1n;
}
