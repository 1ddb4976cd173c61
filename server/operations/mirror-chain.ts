import type { LocalAccount } from "viem";
import type { Address } from "../../core/index.ts";
import { connectMirror, type FeeOptions, type ViemMirror } from "../../core/l1/index.ts";
import { type AttesterCommittee, RemoteAttester } from "../../core/mirror/index.ts";
import type { MirrorSetting } from "../settings/mirror-settings.ts";
import { Chain } from "./chain.ts";

/** Members who vouch for the state at mirrors, at their services. */
export function attestersOf(
  members: readonly { readonly address: Address; readonly url: string }[],
  threshold: number,
): AttesterCommittee {
  return { members: members.map((member) => new RemoteAttester(member)), threshold };
}

/** A mirror's chain. */
export class MirrorChain extends Chain<ViemMirror> {
  readonly fromBlock: bigint;
  /** Vouches for the state there; null where the state's own committee does. */
  readonly committee: AttesterCommittee | null;

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
    const { members, threshold } = setting;
    this.committee = members && threshold ? attestersOf(members, threshold) : null;
  }

  override async operatorBalance(): Promise<bigint> {
    return (await this.connect()).operatorBalance();
  }
}
