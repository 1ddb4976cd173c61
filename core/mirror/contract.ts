import type { Hash, Hex, Mode } from "../model.ts";
import type { L1Owner, L1Reader, L1Receipt, L1SendOptions, L1Voider, Portal } from "../ports.ts";
import type { StateCounts, StateLeafContent, StateRoots } from "../protocol/commitment.ts";
import type { MirrorIdentity } from "./attester.ts";
import type { Growth } from "./history.ts";

/** One accepted growth of the mirrored state. */
export interface MirrorStep {
  /** Place among the steps: what duplicates are ordered by on the mirror's chain. */
  readonly sequence: number;
  readonly mode: Mode;
  /** Number of the first batch that came with it. */
  readonly first: number;
  /** Batches of the mode after it. */
  readonly count: number;
  readonly root: Hash;
  /** Seconds since 1970, of the mirror's chain. */
  readonly acceptedAt: bigint;
}

export interface MirrorCommittee {
  readonly committeeHash: Hash;
  readonly epoch: bigint;
}

/** What the exit kit of a vault on a mirror is made of, read without an account. */
export type MirrorReader = Pick<MirrorContract, "steps" | "isImported" | "settlement" | "maturity"> &
  Pick<MirrorContract, "registration" | "token" | "verifyVault">;

/** The `StateMirror` contract. Every method rejects with `l1_failed` when its chain cannot be asked, or refuses. */
export interface MirrorContract
  extends Portal,
    L1Owner,
    L1Voider,
    Pick<L1Reader, "registration" | "token" | "supplyCap" | "verifyVault"> {
  readonly source: MirrorIdentity;
  /** The newest accepted state commitment of the source. */
  commitment(): Promise<Hash>;
  committee(): Promise<MirrorCommittee>;
  /** All of them, the oldest first. */
  steps(): Promise<readonly MirrorStep[]>;
  isImported(mode: Mode, batchNumber: number): Promise<boolean>;
  advance(from: StateRoots, growth: Growth, attestation: Hex, options?: L1SendOptions): Promise<L1Receipt>;
  importBatch(
    sequence: number,
    batch: StateLeafContent & { readonly siblings: readonly Hash[] },
    options?: L1SendOptions,
  ): Promise<L1Receipt>;
}

/** The counts that a mirror of these steps has reached. */
export function countsOf(steps: readonly MirrorStep[]): StateCounts {
  const last = (mode: Mode) => steps.findLast((step) => step.mode === mode)?.count ?? 0;
  return { countValidium: last("validium"), countRollup: last("zk-rollup") };
}

/** The step that brought a batch to the mirror; undefined when it is not there yet. */
export function stepOf(steps: readonly MirrorStep[], mode: Mode, batchNumber: number): MirrorStep | undefined {
  return steps.find((step) => step.mode === mode && step.first <= batchNumber && batchNumber < step.count);
}
