import type { Hash, Mode } from "../model.ts";
import type { BatchHeader } from "../ports.ts";

/** A batch as L1 has committed it. */
export interface Commit extends BatchHeader {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly dataHash: Hash;
  readonly txHash: Hash;
  readonly blockNumber: bigint;
}

/** How far L1 has been read: everything up to this event is applied. */
export interface Position {
  readonly block: bigint;
  /** -1 before the first event of the block; infinity, stored as null, behind the last. */
  readonly logIndex: number | null;
  /** Hash of the block once all of it is applied. */
  readonly hash: Hash | null;
}

/** JSON; mode and number are the record's key. */
export function commitToText({ mode: _mode, batchNumber: _number, ...rest }: Commit): string {
  return JSON.stringify(rest, bigintToText);
}

export function commitFromText(mode: Mode, batchNumber: number, text: string): Commit {
  const stored = JSON.parse(text);
  const { dataHash, batchRoot, vaultCount, txHash } = stored;
  return {
    mode,
    batchNumber,
    dataHash,
    batchRoot,
    vaultCount,
    txHash,
    committedAt: BigInt(stored.committedAt),
    sequence: BigInt(stored.sequence),
    blockNumber: BigInt(stored.blockNumber),
  };
}

export function positionFromText(text: string): Position {
  const { block, logIndex, hash } = JSON.parse(text);
  return { block: BigInt(block), logIndex, hash };
}

export function positionToText(position: Position): string {
  return JSON.stringify(position, bigintToText);
}

function bigintToText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
