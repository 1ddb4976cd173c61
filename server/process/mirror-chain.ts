import type { LocalAccount } from "viem";
import { type AttesterCommittee, RemoteAttester } from "../../core/guards/mirror/index.ts";
import { connectMirror, type FeeOptions, type ViemMirror } from "../../core/l1/index.ts";
import { Chain } from "../jobs/chain.ts";
import type { MirrorSetting } from "./settings/settings.ts";

/** A mirror's chain. */
export class MirrorChain extends Chain<ViemMirror> {
  readonly fromBlock: bigint;
  /** Signs the state for mirrors, through its members' services. */
  readonly committee: AttesterCommittee;

  /** @param account - pays on that chain; needs no role there */
  constructor(setting: MirrorSetting, account: LocalAccount, fees: Pick<FeeOptions, "replaceAfterMs">) {
    const { chainId, contract, rpcUrl: rpc, fromBlock, confirmations, maxFeePerGas } = setting;
    super({ chainId, contract }, () =>
      connectMirror({
        ...{ rpc, contract, chainId, account },
        ...fees,
        ...(confirmations !== undefined && { finality: { confirmations } }),
        ...(maxFeePerGas !== undefined && { maxFeePerGas }),
      }),
    );
    this.fromBlock = fromBlock;
    const { members = [], threshold = 0 } = setting;
    this.committee = { members: members.map((member) => new RemoteAttester(member)), threshold };
  }

  override async operatorBalance(): Promise<bigint> {
    return (await this.connect()).operatorBalance();
  }
}
