import type { LocalAccount } from "viem";
import { RemoteAttester } from "../../core/guards/mirror/index.ts";
import { connectMirror, type FeeOptions } from "../../core/l1/index.ts";
import { chainOf, finalityOf } from "../jobs/chain.ts";
import type { MirrorSetting } from "./settings/settings.ts";

export type MirrorChain = ReturnType<typeof mirrorChainOf>;

/**
 * A mirror's chain, and the committee that signs the state for mirrors through its members' services.
 *
 * @param account - pays on that chain; needs no role there
 */
export function mirrorChainOf(setting: MirrorSetting, account: LocalAccount, fees: Pick<FeeOptions, "replaceAfterMs">) {
  const { chainId, contract, rpcUrl: rpc, fromBlock, confirmations, maxFeePerGas } = setting;
  const chain = chainOf({ chainId, contract }, () =>
    connectMirror({ rpc, contract, chainId, account, ...fees, finality: finalityOf(confirmations), maxFeePerGas }),
  );
  const { members = [], threshold = 0 } = setting;
  const committee = { members: members.map((member) => new RemoteAttester(member)), threshold };
  return { ...chain, fromBlock, committee };
}
