/** The settlement chain over viem: what reads it, and what commits and withdraws. */

export type { Trade, TradeSide } from "../protocol/trade.ts";
export { stateCommitmentAbi, stateMirrorAbi } from "./abi.ts";
export {
  cancellationCalldata,
  renewalCalldata,
  revocationCalldata,
  sessionCalldata,
  withdrawalCancellationCalldata,
  withdrawCalldata,
} from "./arguments.ts";
export {
  connectL1,
  connectPortal,
  connectWallet,
  type L1Options,
  type L1WriteOptions,
  type OwnerPortal,
  readL1,
  signatureChecks,
  type WalletOptions,
} from "./connect.ts";
export { type Finality, isUnreachable } from "./connection.ts";
export type { FeeOptions } from "./fees.ts";
export { connectMirror, readMirror, type ViemMirror } from "./mirror.ts";
export { httpSigner, type Signer, signerAccount } from "./signer.ts";
export { settleCalldata } from "./trades.ts";
