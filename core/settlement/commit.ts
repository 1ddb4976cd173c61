import type { Engine } from "../engine.ts";
import { MintmarkError } from "../errors.ts";
import { MODES } from "../model.ts";
import type { Committee, HistoryPoint, L1Committer, L1Reader, SealedBatch } from "../ports.ts";

import { countOf, nextHistory, stateLeaf } from "../protocol/commitment.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";

import type { RefusedSlots } from "./refused-slots.ts";
import type { Attempts } from "./rounds.ts";

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
 * Commits every sealed batch that the contract does not have yet, mode by mode, and returns how many it brought there. A mode that fails does
 * not hold up the other one.
 *
 * Each commit names the history that it follows. The first one follows this store's own record of what L1 has committed, which must be
 * L1's history too: otherwise nothing is sent. So two operators on copies of one store cannot add to one another's batches. What was
 * committed is recorded by {@link import("./watch.ts").applyL1Events}, from the contract's own events.
 */
export async function commitSealed(options: CommitOptions, attempts: Attempts): Promise<number> {
  const { engine, signal } = options;
  let reached = await agreedHistory(options);
  const committed = await engine.batches.committedState();
  let count = 0;
  for (const mode of MODES) {
    await attempts.of(async () => {
      const sealed = countOf(mode, engine.batches.state());
      for (let batchNumber = countOf(mode, committed); batchNumber < sealed; batchNumber++) {
        signal?.throwIfAborted();
        reached = await commitNext(await engine.batches.getSealed(mode, batchNumber), reached, options);
        count++;
      }
      return 0;
    });
  }
  return count;
}

/** The history of this store's record. Throws `history_diverged`, or `l1_failed` while L1 has commits that are not recorded yet. */
async function agreedHistory({ engine, l1 }: CommitOptions): Promise<HistoryPoint> {
  const onL1 = await l1.state();
  await engine.operator.compareState(onL1);
  const history = engine.operator.history();
  if (history === onL1.history) return { history, sequence: BigInt(onL1.countValidium + onL1.countRollup) };
  const counts = `${onL1.countValidium} validium and ${onL1.countRollup} rollup batches`;
  throw new MintmarkError(
    "l1_failed",
    `L1's history of ${counts} is not the one that this store has recorded. Nothing is committed until L1's events are read again.`,
  );
}

/** Commits a batch after a history, and returns the history after it. */
async function commitNext(sealed: SealedBatch, before: HistoryPoint, options: CommitOptions): Promise<HistoryPoint> {
  const { engine, l1, refused, signal } = options;
  const batch = await withoutVain(sealed, options);
  const after = pointAfter(batch, before);
  try {
    await commitBatch(batch, before, options);
    return after;
  } catch (error) {
    signal?.throwIfAborted();
    const onL1 = await l1.state();
    await engine.operator.compareState(onL1);
    // This very batch may be there all the same: by what a killed process had sent, or by a transaction whose receipt was lost.
    if (onL1.history === after.history) return after;
    if (onL1.history !== before.history || !(await refused.voidOf(batch, signal))) throw error;
    const rest = await engine.batches.getSealed(batch.mode, batch.batchNumber);
    await commitBatch(rest, before, options);
    return pointAfter(rest, before);
  }
}

function pointAfter(batch: SealedBatch, { history, sequence }: HistoryPoint): HistoryPoint {
  return { history: nextHistory(history, batch.mode, stateLeaf(batch)), sequence: sequence + 1n };
}

/** The batch without the slots that nobody could ever withdraw from. */
async function withoutVain(batch: SealedBatch, { engine, looks }: CommitOptions): Promise<SealedBatch> {
  const { mode, batchNumber } = batch;
  const voids: VoidSlots[] = [];
  for (const look of looks) voids.push(...(await look.lookAtBatch(batch)));
  if (voids.length === 0) return batch;
  await engine.operator.voidSlots(
    mode,
    batchNumber,
    voids.sort((a, b) => a.firstSlot - b.firstSlot),
  );
  return engine.batches.getSealed(mode, batchNumber);
}

async function commitBatch(
  batch: SealedBatch,
  before: HistoryPoint,
  { engine, l1, committee, signal }: CommitOptions,
): Promise<void> {
  const abort = signal ? { signal } : {};
  const { history } = before;
  const onSent = async (txHash: `0x${string}`) => {
    await engine.operator.recordSubmitted(batch.mode, batch.batchNumber, txHash);
  };
  if (batch.mode === "zk-rollup") await l1.commitRollup(batch, history, { ...abort, onSent });
  else await l1.commitValidium(batch, history, await committee.attest(batch, before, abort), { ...abort, onSent });
}

/** Looks at a batch that nobody has signed or sent yet: slots that are to become void, because nobody could ever withdraw from them. */
export interface BatchLook {
  lookAtBatch(batch: SealedBatch): Promise<readonly VoidSlots[]>;
}
