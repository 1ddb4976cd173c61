/** The public state of a settlement contract, from L1 and from sources of validium data. */
export { Archive } from "./archive.ts";
export type { ArchiveOptions } from "./archive-reads.ts";
export type { InvalidTransfer, OutputVault, RecordFault, Spending } from "./archive-transfers.ts";
export { type BatchSource, HttpBatchSource } from "./batch-source.ts";
export { BeaconNode, BlobFolder, type BlobPlace, type BlobSource } from "./blob-source.ts";
export type { DataSources } from "./committed-data.ts";
export { type DerivedBatch, deriveBatch } from "./derive.ts";
export { type VoidedDuplicate, type VoidingPortal, type VoidOptions, voidDuplicates } from "./duplicates.ts";
export { type FollowOptions, follow, type Progress, Watcher, type WatcherOptions } from "./follow.ts";
export type { Commit, Position } from "./keys.ts";
export { type RebuildOptions, type RebuildReport, rebuild } from "./rebuild.ts";
