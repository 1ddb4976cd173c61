/**
 * The state on another chain: the signatures for it, the relay, and proofs for withdrawals there.
 */

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
  type MirrorContract,
  type MirrorReader,
  type MirrorStep,
  type MirrorVoidOptions,
  proofOnMirror,
  type RelayOptions,
  voidOnMirror,
} from "./relay.ts";
