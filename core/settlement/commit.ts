import type { VoidSlots } from "../batch-types.ts";
import type { Engine } from "../engine.ts";
import type { Mode } from "../model.ts";
import type { Committee, L1Committer, L1Reader, SealedBatch } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import type { RefusedSlots } from "./refused-slots.ts";

/** Sealed batches that have not been committed, brought to L1 in their order. */
export interface CommitOptions {
  readonly engine: Engine;
  readonly l1: L1Reader & L1Committer;
  readonly committee: Committee;
  /** Find slots that could be committed, and never withdrawn from: they become void first. */
  readonly looks: readonly BatchLook[];
  /** Makes slots void that L1 refuses. */
  readonly refused: RefusedSlots;
  readonly signal?: AbortSignal;
}

/**
 * Commits every sealed batch of a mode that the contract does not have yet, and returns how many it brought there. Where to go on is asked of the
 * contract each time, so a process that was killed between sending and recording neither commits twice nor skips. What was committed is
 * recorded by {@link import("./watch.ts").applyL1Events}, from the contract's own events.
 */
export async function commitSealed(mode: Mode, options: CommitOptions): Promise<number> {
  const { engine, l1, refused, signal } = options;
  const countOnL1 = async () => {
    const state = await l1.state();
    await engine.compareState(state);
    return countOf(mode, state);
  };
  const there = await countOnL1();
  const here = countOf(mode, engine.state());
  for (let batchNumber = there; batchNumber < here; batchNumber++) {
    signal?.throwIfAborted();
    const batch = await withoutVain(await engine.sealedBatch(mode, batchNumber), options);
    try {
      await commitBatch(batch, options);
    } catch (error) {
      signal?.throwIfAborted();
      // It may be there all the same: by what a killed process had sent, or by a transaction whose receipt was lost.
      if ((await countOnL1()) > batchNumber) continue;
      if (!(await refused.voidOf(batch, signal))) throw error;
      await commitBatch(await engine.sealedBatch(mode, batchNumber), options);
    }
  }
  return Math.max(0, here - there);
}

/** The batch without the slots that nobody could ever withdraw from. */
async function withoutVain(batch: SealedBatch, { engine, looks }: CommitOptions): Promise<SealedBatch> {
  const { mode, batchNumber } = batch;
  const voids: VoidSlots[] = [];
  for (const look of looks) voids.push(...(await look.lookAtBatch(batch)));
  if (voids.length === 0) return batch;
  await engine.voidSlots(
    mode,
    batchNumber,
    voids.sort((a, b) => a.firstSlot - b.firstSlot),
  );
  return engine.sealedBatch(mode, batchNumber);
}

async function commitBatch(batch: SealedBatch, { engine, l1, committee, signal }: CommitOptions): Promise<void> {
  const abort = signal ? { signal } : {};
  const onSent = async (txHash: `0x${string}`) => {
    await engine.recordSubmitted(batch.mode, batch.batchNumber, txHash);
  };
  if (batch.mode === "zk-rollup") await l1.commitRollup(batch, { ...abort, onSent });
  else await l1.commitValidium(batch, await committee.attest(batch, abort), { ...abort, onSent });
}

/** Looks at a batch that nobody has signed or sent yet: slots that are to become void, because nobody could ever withdraw from them. */
export interface BatchLook {
  lookAtBatch(batch: SealedBatch): Promise<readonly VoidSlots[]>;
}
