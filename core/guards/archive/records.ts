import type { Hash, Mode } from "../../model.ts";
import type { BatchHeader, CommittedBlobs } from "../../ports.ts";
import { fromText, toText } from "./keys.ts";

/** A batch as committed on L1. */
export interface Commit extends BatchHeader {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly dataHash: Hash;
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  /** Places in the batch's manifest of the assets that L1 has left out. */
  readonly leftOut: readonly number[];
  /** Places in the data's list of assets of those that the manifest lacks; absent when it has all. */
  readonly unnamed?: readonly number[];
  /** Its blobs, when L1 has the data in blobs. */
  readonly blobs?: CommittedBlobs;
}

/** The progress of reading L1: everything up to this event is applied. */
export interface Position {
  readonly block: bigint;
  /** -1 before the first event of the block; Infinity, stored as null, after the last. */
  readonly logIndex: number | null;
  /** Hash of the block once all its events are applied. */
  readonly hash: Hash | null;
}

/** As JSON; mode and number are in the record's key. */
export function commitToText({ mode: _mode, batchNumber: _number, ...rest }: Commit): string {
  return toText(rest);
}

export function commitFromText(mode: Mode, batchNumber: number, text: string | undefined): Commit | null {
  const stored = fromText<Omit<Commit, "mode" | "batchNumber">>(text);
  return stored && { mode, batchNumber, ...stored };
}
