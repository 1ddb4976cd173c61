import type { Engine } from "../engine.ts";
import type { Mode } from "../model.ts";
import type { Committee, L1Committer, L1Reader, SealedBatch } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import type { Preflight } from "./preflight.ts";
import type { RefusedSlots } from "./refused-slots.ts";

/** Sealed batches that have not been committed, brought to L1 in their order. */
export interface CommitOptions {
  readonly engine: Engine;
  readonly l1: L1Reader & L1Committer;
  readonly committee: Committee;
  /** Makes slots void that could be committed, and never withdrawn from. */
  readonly preflight: Pick<Preflight, "lookAtBatch">;
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
  const { engine, l1, preflight, refused, signal } = options;
  const countOnL1 = async () => countOf(mode, await l1.state());
  const [here, there] = [countOf(mode, engine.state()), await countOnL1()];
  for (let batchNumber = there; batchNumber < here; batchNumber++) {
    signal?.throwIfAborted();
    const sealed = await engine.sealedBatch(mode, batchNumber);
    const batch = (await preflight.lookAtBatch(sealed)) ? await engine.sealedBatch(mode, batchNumber) : sealed;
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

async function commitBatch(batch: SealedBatch, { engine, l1, committee, signal }: CommitOptions): Promise<void> {
  const abort = signal ? { signal } : {};
  const onSent = async (txHash: `0x${string}`) => {
    await engine.recordSubmitted(batch.mode, batch.batchNumber, txHash);
  };
  if (batch.mode === "zk-rollup") await l1.commitRollup(batch, { ...abort, onSent });
  else await l1.commitValidium(batch, await committee.attest(batch, abort), { ...abort, onSent });
}
