import { MemoryLevel } from "memory-level";
import { CommitteeMember, type MemberOptions } from "../../core/committee/member.ts";
import type { Hex, L1Reader, SealedBatch } from "../../core/index.ts";
import type { HistoryPoint, L1State } from "../../core/ports.ts";
import { committeeHash } from "../../core/protocol/attestation.ts";
import {
  emptyHistory,
  nextHistory,
  stateCommitment,
  stateLeaf,
} from "../../core/protocol/commitment.ts";
import { bytesToHex, hexToBytes } from "../../core/protocol/hex.ts";
import { StateTree } from "../../core/protocol/state-tree.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import { COMMITTEE, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { at } from "./fixture.ts";
import { entry, registry, sealed } from "./signed-batches.ts";

const IN_FORCE = {
  threshold: THRESHOLD,
  members: COMMITTEE.map(({ address }) => lower(address)).toSorted(),
};

/** L1's commits, in its order; each test empties it first. */
export const onL1: SealedBatch[] = [];

/** The state that the settlement contract keeps. */
export function stateOf(commits: readonly SealedBatch[]): L1State {
  const trees = { validium: new StateTree(), "zk-rollup": new StateTree() };
  let history = emptyHistory(registry.settlement);
  for (const batch of commits) {
    trees[batch.mode].append(hexToBytes(stateLeaf(batch)));
    history = nextHistory(history, batch.mode, stateLeaf(batch));
  }
  const { validium, "zk-rollup": rollup } = trees;
  const counts = { countValidium: validium.count, countRollup: rollup.count };
  const roots = {
    ...counts,
    rootValidium: bytesToHex(validium.root()),
    rootRollup: bytesToHex(rollup.root()),
  };
  return { ...roots, commitment: stateCommitment(registry.settlement, roots), history };
}

/** The point that the next batch of an operator follows that sees these commits. */
export function pointOf(commits: readonly SealedBatch[] = onL1): HistoryPoint {
  return { history: stateOf(commits).history, sequence: BigInt(commits.length) };
}

/** L1 as far as a committee needs it. */
export const l1: MemberOptions["l1"] & Pick<L1Reader, "committee"> = {
  ...registry,
  state: async () => stateOf(onL1),
  blockNumber: async () => 0n,
  block: async () => null,
  events: async () => [],
  committee: async () => ({ committeeHash: committeeHash(0n, IN_FORCE), epoch: 0n }),
};

/** The data that a member has stored of a batch. */
export async function hexOf(member: CommitteeMember, batchNumber: number): Promise<Hex | null> {
  const data = await member.data("validium", batchNumber);
  return data === null ? null : bytesToHex(data);
}

export const newMember = (index = 0, store: MemberOptions["store"] = new MemoryLevel()) =>
  CommitteeMember.open({ account: at(COMMITTEE, index), store, l1, lagMs: 0 });

export const sign = (member: CommitteeMember, batch: SealedBatch, epoch = 0n) =>
  member.sign(batch, { ...pointOf(), epoch });

/** Signed, and committed then. */
export async function take(member: CommitteeMember, batch: SealedBatch): Promise<void> {
  await sign(member, batch);
  onL1.push(batch);
}

/** A commit of the other mode, which moves L1's history; to another one for each amount. */
export function moveHistory(amount = 1n): void {
  onL1.push(sealed(stateOf(onL1).countRollup, [entry("erc20", "", amount)], "zk-rollup"));
}
