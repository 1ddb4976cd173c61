import type { L1Options } from "../core/l1/index.ts";

/** The chain's own finality, unless a number of blocks is named. For chains without a finality gadget. */
export function finalityOf(confirmations: bigint | undefined): Pick<L1Options, "finality"> {
  return confirmations === undefined ? {} : { finality: { confirmations } };
}
