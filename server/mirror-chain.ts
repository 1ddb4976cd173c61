import type { LocalAccount } from "viem";
import type { L1Reader, PortalIdentity } from "../core/index.ts";
import { connectMirror, type FeeOptions, type ViemMirror } from "../core/l1/index.ts";
import type { MirrorSetting } from "./mirror-settings.ts";

/** A mirror's chain, reached when it is first needed and not before: it may be down when the server starts. */
export class MirrorChain {
  readonly settlement: PortalIdentity;
  readonly fromBlock: bigint;
  readonly #connect: () => Promise<ViemMirror>;
  #connected: Promise<ViemMirror> | null = null;

  /** @param account - pays on that chain; needs no role there */
  constructor(setting: MirrorSetting, account: LocalAccount, fees: Pick<FeeOptions, "replaceAfterMs">) {
    const { chainId, contract, rpcUrl: rpc, fromBlock, confirmations, maxFeePerGas } = setting;
    this.settlement = { chainId, contract };
    this.fromBlock = fromBlock;
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

  async operatorBalance(): Promise<bigint> {
    return (await this.connect()).operatorBalance();
  }
}
