import type { Hash, Hex, Mode } from "../../model.ts";
import type { L1Owner, L1Reader, L1Receipt, L1SendOptions, L1Voider, Portal } from "../../ports.ts";
import type { StateLeafContent, StateRoots } from "../../protocol/commitment.ts";
import type { Growth, MirrorIdentity } from "./history.ts";

/** One accepted step of the mirrored state. */
export interface MirrorStep {
  /** Position among the steps. Orders duplicates on the mirror's chain. */
  readonly sequence: number;
  readonly mode: Mode;
  /** Number of the first batch of the step. */
  readonly first: number;
  /** Batches of the mode after the step. */
  readonly count: number;
  readonly root: Hash;
  /** Seconds since 1970, by the mirror's chain. */
  readonly acceptedAt: bigint;
}

/** The reads of a mirror that an exit kit needs. No account. */
export type MirrorReader = Pick<MirrorContract, "stepCount" | "step" | "isImported" | "settlement" | "maturity"> &
  Pick<MirrorContract, "registration" | "token" | "verifyVault"> &
  Pick<L1Reader, "verifyTransferred" | "withdrawn" | "block" | "blockNumber" | "events" | "rollupData">;

/** The `StateMirror` contract. Every method rejects with `l1_failed` when its chain is unreachable or refuses. */
export interface MirrorContract
  extends Portal,
    L1Owner,
    L1Voider,
    Pick<
      L1Reader,
      "committee" | "opensBlobs" | "registration" | "registrations" | "token" | "supplyCap" | "verifyVault"
    > {
  readonly source: MirrorIdentity;
  /** The newest accepted state commitment of the source. */
  commitment(): Promise<Hash>;
  /** Number of accepted steps. */
  stepCount(): Promise<number>;
  /** The step with this sequence. */
  step(sequence: number): Promise<MirrorStep>;
  /** Whether vaults of the batch can be withdrawn here. */
  isImported(mode: Mode, batchNumber: number): Promise<boolean>;
  /** Advances the mirror by one run of batches of one mode. Resolves when mined. */
  advance(from: StateRoots, growth: Growth, attestation: Hex, options?: L1SendOptions): Promise<L1Receipt>;
  /** Imports the header of a batch of an accepted step. Resolves when mined. */
  importBatch(
    sequence: number,
    batch: StateLeafContent & { readonly siblings: readonly Hash[] },
    options?: L1SendOptions,
  ): Promise<L1Receipt>;
}

/**
 * The step that brought a batch to the mirror; null before. Searches from the newest, since most requests are recent.
 */
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
