/** The public state of a settlement contract, from L1 and from sources of validium data. */
export { Archive, type ArchiveOptions } from "./archive.ts";
export type { InvalidTransfer } from "./archive-transfers.ts";
export type { OutputVault, RecordFault, Spending } from "./archive-vaults.ts";
export type { DataSources } from "./committed-data.ts";
export { type DerivedBatch, deriveBatch } from "./derive.ts";
export {
  type VoidedDuplicate,
  type VoidingPortal,
  type VoidOptions,
  voidDuplicates,
} from "./duplicates.ts";
export type {
  FollowOptions,
  Progress,
  RebuildOptions,
  RebuildReport,
  WatcherOptions,
} from "./follow.ts";
export { follow, rebuild, Watcher } from "./follow.ts";
export type { Commit, Position } from "./keys.ts";
export type { BatchSource, BlobPlace, BlobSource } from "./sources.ts";
export { BeaconNode, BlobFolder, HttpBatchSource } from "./sources.ts";
