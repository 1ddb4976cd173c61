import type { Hash, Hex, Mode } from "../model.ts";
import type { L1Owner, L1Reader, L1Receipt, L1SendOptions, L1Voider, Portal } from "../ports.ts";
import type { StateLeafContent, StateRoots } from "../protocol/commitment.ts";
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
export type MirrorReader = Pick<MirrorContract, "stepCount" | "step" | "isImported" | "settlement" | "maturity"> &
  Pick<MirrorContract, "registration" | "token" | "verifyVault">;

/** The `StateMirror` contract. Every method rejects with `l1_failed` when its chain cannot be asked, or refuses. */
export interface MirrorContract
  extends Portal,
    L1Owner,
    L1Voider,
    Pick<L1Reader, "registration" | "registrations" | "token" | "supplyCap" | "verifyVault"> {
  readonly source: MirrorIdentity;
  /** The newest accepted state commitment of the source. */
  commitment(): Promise<Hash>;
  /** The committee in force. */
  committee(): Promise<MirrorCommittee>;
  /** How many steps it has accepted. */
  stepCount(): Promise<number>;
  /** One of them, by its sequence. */
  step(sequence: number): Promise<MirrorStep>;
  /** Whether withdrawals of the batch's vaults can be paid here. */
  isImported(mode: Mode, batchNumber: number): Promise<boolean>;
  /** Brings the mirror from one state to the next, one run of batches of one mode. Resolves when mined. */
  advance(from: StateRoots, growth: Growth, attestation: Hex, options?: L1SendOptions): Promise<L1Receipt>;
  /** Makes a batch of an accepted step known here. Resolves when mined. */
  importBatch(
    sequence: number,
    batch: StateLeafContent & { readonly siblings: readonly Hash[] },
    options?: L1SendOptions,
  ): Promise<L1Receipt>;
}

/** The step that brought a batch to the mirror; null when it is not there yet. Looked for from the newest on: what is asked for is mostly recent. */
export async function stepOf(
  mirror: Pick<MirrorContract, "stepCount" | "step">,
  mode: Mode,
  batchNumber: number,
): Promise<MirrorStep | null> {
  for (let sequence = (await mirror.stepCount()) - 1; sequence >= 0; sequence--) {
    const step = await mirror.step(sequence);
    if (step.mode !== mode || step.first > batchNumber) continue;
    return batchNumber < step.count ? step : null;
  }
  return null;
}
