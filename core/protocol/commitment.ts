import { type Hash, MAX_BATCH_VAULTS, MODES, type Mode } from "../model.ts";
import type { BatchHeader, Settlement } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import { keccak256 } from "./hash.ts";
import { bytesToHex, writeHex } from "./hex.ts";
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
 * `keccak256(0x02 ‖ batchNumber(8) ‖ vaultCount(4) ‖ dataHash(32) ‖ batchRoot(32))`. Throws `validation_failed`.
 *
 * @example
 * const leaf = stateLeaf({ batchNumber: 12, vaultCount, dataHash, batchRoot });
 * tree.append(hexToBytes(leaf));
 */
export function stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot }: StateLeafContent): Hash {
  requireInteger("batchNumber", batchNumber, 0, MAX_BATCH_NUMBER);
  requireInteger("vaultCount", vaultCount, 1, MAX_BATCH_VAULTS);
  const preimage = new Uint8Array(77);
  const view = new DataView(preimage.buffer);
  view.setUint8(0, STATE_LEAF_PREFIX);
  view.setBigUint64(1, BigInt(batchNumber));
  view.setUint32(9, vaultCount);
  writeHex(dataHash, 32, preimage, 13);
  writeHex(batchRoot, 32, preimage, 45);
  return bytesToHex(keccak256(preimage));
}

/**
 * The commitment to everything that a settlement contract has accepted: `keccak256(0x03 ‖ 0x01 ‖ chainId(8) ‖
 * contract(20) ‖ rootValidium ‖ rootRollup ‖ countValidium(8) ‖ countRollup(8))`. Throws `validation_failed`.
 *
 * @example
 * const state = await l1.state();
 * stateCommitment(l1.settlement, state) === state.commitment; // true
 */
export function stateCommitment(settlement: Pick<Settlement, "chainId" | "contract">, state: StateRoots): Hash {
  requireBigint("chainId", settlement.chainId, 0n, MAX_UINT64);
  requireInteger("countValidium", state.countValidium, 0, MAX_BATCH_NUMBER);
  requireInteger("countRollup", state.countRollup, 0, MAX_BATCH_NUMBER);
  const preimage = new Uint8Array(110);
  const view = new DataView(preimage.buffer);
  view.setUint8(0, COMMITMENT_PREFIX);
  view.setUint8(1, COMMITMENT_VERSION);
  view.setBigUint64(2, settlement.chainId);
  writeHex(settlement.contract, 20, preimage, 10);
  writeHex(state.rootValidium, 32, preimage, 30);
  writeHex(state.rootRollup, 32, preimage, 62);
  view.setBigUint64(94, BigInt(state.countValidium));
  view.setBigUint64(102, BigInt(state.countRollup));
  return bytesToHex(keccak256(preimage));
}

/**
 * The history before the first commit: the commitment to the empty state. Throws `validation_failed`.
 *
 * @example
 * let history = emptyHistory(settlement);
 * for (const batch of commits) history = nextHistory(history, batch.mode, stateLeaf(batch));
 */
export function emptyHistory(settlement: Pick<Settlement, "chainId" | "contract">): Hash {
  const root = bytesToHex(zeroRoot(MAX_HEIGHT));
  return stateCommitment(settlement, { rootValidium: root, rootRollup: root, countValidium: 0, countRollup: 0 });
}

/**
 * The history after one more commit: `keccak256(0x09 ‖ history(32) ‖ mode(1) ‖ stateLeaf(32))`. Each commit names the
 * history before it; L1 refuses any other. Throws `validation_failed`.
 *
 * @example
 * const next = nextHistory(history, "validium", stateLeaf(batch));
 */
export function nextHistory(history: Hash, mode: Mode, leaf: Hash): Hash {
  const preimage = new Uint8Array(66);
  preimage[0] = HISTORY_PREFIX;
  writeHex(history, 32, preimage, 1);
  preimage[33] = MODES.indexOf(mode);
  writeHex(leaf, 32, preimage, 34);
  return bytesToHex(keccak256(preimage));
}

/**
 * The hash that L1 stores of a committed batch:
 * `keccak256(0x04 ‖ batchRoot(32) ‖ vaultCount(4) ‖ committedAt(8) ‖ sequence(8))`. Throws `validation_failed`.
 *
 * @example
 * const isCommitted = batchHeaderHash({ batchRoot, vaultCount, committedAt, sequence }) === hashFromL1;
 */
export function batchHeaderHash(header: BatchHeader): Hash {
  requireInteger("vaultCount", header.vaultCount, 1, MAX_BATCH_VAULTS);
  requireBigint("committedAt", header.committedAt, 0n, MAX_UINT64);
  requireBigint("sequence", header.sequence, 0n, MAX_UINT64);
  const preimage = new Uint8Array(53);
  const view = new DataView(preimage.buffer);
  view.setUint8(0, HEADER_PREFIX);
  writeHex(header.batchRoot, 32, preimage, 1);
  view.setUint32(33, header.vaultCount);
  view.setBigUint64(37, header.committedAt);
  view.setBigUint64(45, header.sequence);
  return bytesToHex(keccak256(preimage));
}
