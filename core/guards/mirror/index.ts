/** The state on another chain: the signatures for it, the relay, and proofs for withdrawals there. */

export type { MirrorContract, MirrorReader, MirrorStep } from "./contract.ts";
export {
  type AttesterClient,
  type Growth,
  MirrorAttester,
  type MirrorIdentity,
  RemoteAttester,
  SourceHistory,
} from "./history.ts";
export {
  type AttesterCommittee,
  advanceMirror,
  type ImportProgress,
  importBatch,
  importBatches,
  type MirrorVoidOptions,
  proofOnMirror,
  type RelayOptions,
  voidOnMirror,
} from "./relay.ts";
