import { type Hash, MAX_BATCH_VAULTS, MODES, type Mode } from "../model.ts";
import type { BatchHeader, PortalIdentity } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { bytesToHex, hashOf } from "./hex.ts";
import { MAX_HEIGHT, zeroRoot } from "./merkle.ts";
import { MAX_BATCH_NUMBER } from "./vault.ts";

const STATE_LEAF_PREFIX = 0x02;
const COMMITMENT_PREFIX = 0x03;
const HEADER_PREFIX = 0x04;
const HISTORY_PREFIX = 0x09;
const COMMITMENT_VERSION = 0x01;

/** The content of a batch's leaf in its mode's state tree. */
export interface StateLeafContent {
  readonly batchNumber: number;
  readonly vaultCount: number;
  /** keccak-256 of the batch data. */
  readonly dataHash: Hash;
  readonly batchRoot: Hash;
}

/** Number of batches of each mode. */
export interface StateCounts {
  /** 0 to 2^32 - 1. */
  readonly countValidium: number;
  readonly countRollup: number;
}

export function countOf(mode: Mode, { countValidium, countRollup }: StateCounts): number {
  return mode === "validium" ? countValidium : countRollup;
}

/** Roots and counts of both state trees. */
export interface StateRoots extends StateCounts {
  readonly rootValidium: Hash;
  readonly rootRollup: Hash;
}

/**
 * `keccak256(0x02 ‖ batchNumber(8) ‖ vaultCount(4) ‖ dataHash(32) ‖ batchRoot(32))`. Throws
 * `validation_failed`.
 *
 * @example
 * const leaf = stateLeaf({ batchNumber: 12, vaultCount, dataHash, batchRoot });
 * tree.append(hexToBytes(leaf));
 */
export function stateLeaf({
  batchNumber,
  vaultCount,
  dataHash,
  batchRoot,
}: StateLeafContent): Hash {
  requireInteger("batchNumber", batchNumber, 0, MAX_BATCH_NUMBER);
  requireInteger("vaultCount", vaultCount, 1, MAX_BATCH_VAULTS);
  return hashOf([1, 8, 4, 32, 32], STATE_LEAF_PREFIX, batchNumber, vaultCount, dataHash, batchRoot);
}

/**
 * The commitment to everything that a settlement contract has accepted: `keccak256(0x03 ‖ 0x01 ‖
 * chainId(8) ‖ contract(20) ‖ rootValidium ‖ rootRollup ‖ countValidium(8) ‖ countRollup(8))`.
 * Throws `validation_failed`.
 *
 * @example
 * const state = await l1.state();
 * stateCommitment(l1.settlement, state) === state.commitment; // true
 */
export function stateCommitment(settlement: PortalIdentity, state: StateRoots): Hash {
  requireBigint("chainId", settlement.chainId, 0n, MAX_UINT64);
  requireInteger("countValidium", state.countValidium, 0, MAX_BATCH_NUMBER);
  requireInteger("countRollup", state.countRollup, 0, MAX_BATCH_NUMBER);
  const { rootValidium, rootRollup, countValidium, countRollup } = state;
  const contract = [COMMITMENT_PREFIX, COMMITMENT_VERSION, settlement.chainId, settlement.contract];
  return hashOf(
    [1, 1, 8, 20, 32, 32, 8, 8],
    ...contract,
    rootValidium,
    rootRollup,
    countValidium,
    countRollup,
  );
}

/**
 * The history before the first commit: the commitment to the empty state. Throws
 * `validation_failed`.
 *
 * @example
 * let history = emptyHistory(settlement);
 * for (const batch of commits) history = nextHistory(history, batch.mode, stateLeaf(batch));
 */
export function emptyHistory(settlement: PortalIdentity): Hash {
  const root = bytesToHex(zeroRoot(MAX_HEIGHT));
  return stateCommitment(settlement, {
    rootValidium: root,
    rootRollup: root,
    countValidium: 0,
    countRollup: 0,
  });
}

/**
 * The history after one more commit: `keccak256(0x09 ‖ history(32) ‖ mode(1) ‖ stateLeaf(32))`.
 * Each commit names the history before it; L1 refuses any other. Throws `validation_failed`.
 *
 * @example
 * const next = nextHistory(history, "validium", stateLeaf(batch));
 */
export function nextHistory(history: Hash, mode: Mode, leaf: Hash): Hash {
  return hashOf([1, 32, 1, 32], HISTORY_PREFIX, history, MODES.indexOf(mode), leaf);
}

/**
 * The hash that L1 stores of a committed batch: `keccak256(0x04 ‖ batchRoot(32) ‖ vaultCount(4) ‖
 * committedAt(8) ‖ sequence(8))`. Throws `validation_failed`.
 *
 * @example
 * const isCommitted = batchHeaderHash({ batchRoot, vaultCount, committedAt, sequence }) ===
 * hashFromL1;
 */
export function batchHeaderHash(header: BatchHeader): Hash {
  requireInteger("vaultCount", header.vaultCount, 1, MAX_BATCH_VAULTS);
  requireBigint("committedAt", header.committedAt, 0n, MAX_UINT64);
  requireBigint("sequence", header.sequence, 0n, MAX_UINT64);
  const { batchRoot, vaultCount, committedAt, sequence } = header;
  return hashOf([1, 32, 4, 8, 8], HEADER_PREFIX, batchRoot, vaultCount, committedAt, sequence);
}
