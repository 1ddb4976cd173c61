import type { LocalAccount } from "viem";
import type { Address, Hash, L1Reader, PortalIdentity } from "../core/index.ts";
import { connectMirror, type FeeOptions, type ViemMirror } from "../core/l1/index.ts";
import { type AttesterCommittee, RemoteAttester } from "../core/mirror/index.ts";
import type { MirrorSetting } from "./mirror-settings.ts";

/** Members who vouch for the state at mirrors, at their services. */
export function attestersOf(
  members: readonly { readonly address: Address; readonly url: string }[],
  threshold: number,
): AttesterCommittee {
  return { members: members.map((member) => new RemoteAttester(member)), threshold };
}

/** A mirror's chain, reached when it is first needed and not before: it may be down when the server starts. */
export class MirrorChain {
  readonly settlement: PortalIdentity;
  readonly fromBlock: bigint;
  /** Vouches for the state there; null where the state's own committee does. */
  readonly committee: AttesterCommittee | null;
  readonly #connect: () => Promise<ViemMirror>;
  #connected: Promise<ViemMirror> | null = null;

  /** @param account - pays on that chain; needs no role there */
  constructor(setting: MirrorSetting, account: LocalAccount, fees: Pick<FeeOptions, "replaceAfterMs">) {
    const { chainId, contract, rpcUrl: rpc, fromBlock, confirmations, maxFeePerGas } = setting;
    this.settlement = { chainId, contract };
    this.fromBlock = fromBlock;
    const { members, threshold } = setting;
    this.committee = members && threshold ? attestersOf(members, threshold) : null;
    this.#connect = () =>
      connectMirror({
        ...{ rpc, contract, chainId, account },
        ...fees,
        ...(confirmations !== undefined && { finality: { confirmations } }),
        ...(maxFeePerGas !== undefined && { maxFeePerGas }),
      });
  }

  /** Rejects with `l1_failed`; the next one who asks tries again. */
  connect = (): Promise<ViemMirror> => {
    this.#connected ??= this.#connect().catch((error) => {
      this.#connected = null;
      throw error;
    });
    return this.#connected;
  };

  verifySignature: L1Reader["verifySignature"] = async (...signed) => (await this.connect()).verifySignature(...signed);

  async blockNumber(): Promise<bigint> {
    return (await this.connect()).blockNumber();
  }

  async gasUsed(txHash: Hash): Promise<bigint> {
    return (await this.connect()).gasUsed(txHash);
  }

  async operatorBalance(): Promise<bigint> {
    return (await this.connect()).operatorBalance();
  }
}
