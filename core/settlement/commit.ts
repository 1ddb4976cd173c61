import type { Engine } from "../engine.ts";
import { MODES, type Mode } from "../model.ts";
import type { Committee, L1Committer, L1Reader, SealedBatch } from "../ports.ts";

/** Sealed batches that have not been committed, brought to L1 in their order. */
export interface CommitOptions {
  readonly engine: Engine;
  readonly l1: L1Reader & L1Committer;
  readonly committee: Committee;
  readonly signal?: AbortSignal;
}

/**
 * Commits every sealed batch that the contract does not have yet, and returns how many it sent. Where to go on is asked of the contract each time,
 * so a process that was killed between sending and recording neither commits twice nor skips. What was committed is recorded by
 * {@link import("./watch.ts").applyL1Events}, from the contract's own events.
 */
export async function commitSealed(options: CommitOptions): Promise<number> {
  let sent = 0;
  for (const mode of MODES) sent += await commitMode(mode, options);
  return sent;
}

async function commitMode(mode: Mode, options: CommitOptions): Promise<number> {
  const { engine, l1, signal } = options;
  const [here, there] = [countOf(mode, engine.state()), countOf(mode, await l1.state())];
  for (let batchNumber = there; batchNumber < here; batchNumber++) {
    signal?.throwIfAborted();
    await commitBatch(await engine.sealedBatch(mode, batchNumber), options);
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

function countOf(mode: Mode, state: { readonly countValidium: number; readonly countRollup: number }): number {
  return mode === "validium" ? state.countValidium : state.countRollup;
}
