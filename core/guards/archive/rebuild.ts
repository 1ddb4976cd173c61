import { MintmarkError } from "../../errors.ts";
import type { Mode } from "../../model.ts";
import type { L1Reader } from "../../ports.ts";
import type { EngineState } from "../../protocol/proof.ts";
import { type FollowedChain, type FollowOptions, follow } from "./follow.ts";

/** Options of {@link rebuild}. */
export interface RebuildOptions extends FollowOptions {
  readonly l1: FollowedChain & Pick<L1Reader, "state">;
}

/** The rebuilt state. L1 has confirmed its roots. */
export interface RebuildReport {
  /** The block of the state. */
  readonly block: bigint;
  readonly batches: Readonly<Record<Mode, number>>;
  readonly vaults: Readonly<Record<Mode, number>>;
  /** Number of vaults with withdrawals, or voided as duplicates. */
  readonly withdrawnVaults: number;
  /** Batches without data: their roots are known, their vaults are not. */
  readonly missing: readonly string[];
  /** Batches of transfers that wait for missing data of vaults that they spend. */
  readonly unjudged: readonly string[];
  /** Number of committed records that move nothing. A committee that checks records signs none. */
  readonly invalidTransfers: number;
  readonly state: EngineState;
}

/**
 * Rebuilds the public state from L1 (rollup) and from sources (validium), and compares its roots with L1's. An
 * interrupted rebuild resumes with the next call on the same store.
 *
 * @throws MintmarkError `l1_failed` when a root differs from L1's: a defect of this code or of the node
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
      const detail = `the rebuilt ${key} is ${here[key]}, but ${there[key]} on L1 at block ${toBlock}`;
      throw new MintmarkError("l1_failed", detail);
    }
  }
  const missing = await archive.missing();
  return {
    block: toBlock,
    batches: { validium: here.countValidium, "zk-rollup": here.countRollup },
    vaults: { validium: archive.vaultCount("validium"), "zk-rollup": archive.vaultCount("zk-rollup") },
    withdrawnVaults: await archive.withdrawnVaults(),
    missing: missing.map(({ mode, batchNumber }) => `${mode}-${batchNumber}`),
    unjudged: (await archive.unjudged()).map((batchNumber) => `zk-rollup-${batchNumber}`),
    invalidTransfers: (await Array.fromAsync(archive.invalidTransfers())).length,
    state: here,
  };
}
