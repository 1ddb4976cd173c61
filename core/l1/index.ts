/** The settlement chain over viem: what reads it, and what commits and withdraws. */

export { stateCommitmentAbi, stateMirrorAbi } from "./abi.ts";
export { connectL1, type FeeOptions, type Finality, type L1Options, type L1WriteOptions, readL1 } from "./connect.ts";
export { connectMirror, type ViemMirror } from "./mirror.ts";
