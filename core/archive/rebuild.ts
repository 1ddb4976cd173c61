import { MintmarkError } from "../errors.ts";
import { MODES, type Mode } from "../model.ts";
import type { L1Reader } from "../ports.ts";
import type { EngineState } from "../protocol/proof.ts";
import { type FollowedChain, type FollowOptions, follow } from "./follow.ts";

/** What a state is rebuilt from. */
export interface RebuildOptions extends FollowOptions {
  readonly l1: FollowedChain & Pick<L1Reader, "state">;
}

/** What was rebuilt, with roots that L1 has confirmed. */
export interface RebuildReport {
  /** The state is that of this block. */
  readonly block: bigint;
  readonly batches: Readonly<Record<Mode, number>>;
  readonly vaults: Readonly<Record<Mode, number>>;
  /** Vaults of which something was withdrawn, or that were voided as duplicates. */
  readonly withdrawnVaults: number;
  /** Batches whose data nobody gave: their roots are known, their vaults are not. */
  readonly missing: readonly string[];
  readonly state: EngineState;
}

/**
 * Makes the public state from L1 (rollup) and from anyone who has the data (validium), and compares its roots with L1's own. Interrupted
 * at any moment, it goes on where it was when it is called again over the same store.
 *
 * @throws MintmarkError `l1_failed` when a root is not L1's, which only a fault of this code or of the node can cause
 *
 * @example
 * const { batches, missing } = await rebuild({ archive, l1, fromBlock, sources });
 */
export async function rebuild(options: RebuildOptions): Promise<RebuildReport> {
  const { archive, l1 } = options;
  const block = options.toBlock ?? (await l1.finalizedBlockNumber());
  // An archive that is further ahead stays there.
  const toBlock = archive.position !== null && archive.position.block > block ? archive.position.block : block;
  await follow({ ...options, toBlock });
  const [here, there] = [archive.state(), await l1.state(toBlock)];
  for (const key of Object.keys(here) as (keyof EngineState)[]) {
    if (here[key] !== there[key]) {
      throw new MintmarkError(
        "l1_failed",
        `${key} is ${here[key]} rebuilt, and ${there[key]} on L1 at block ${toBlock}`,
      );
    }
  }
  const missing = await archive.missing();
  return {
    block: toBlock,
    batches: { validium: here.countValidium, "zk-rollup": here.countRollup },
    vaults: byMode((mode) => archive.vaultCount(mode)),
    withdrawnVaults: await archive.withdrawnVaults(),
    missing: missing.map(({ mode, batchNumber }) => `${mode}-${batchNumber}`),
    state: here,
  };
}

function byMode<T>(of: (mode: Mode) => T): Record<Mode, T> {
  return Object.fromEntries(MODES.map((mode) => [mode, of(mode)])) as Record<Mode, T>;
}
