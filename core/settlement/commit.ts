import { MintmarkError } from "../errors.ts";
import { type Hash, MODES, type Mode } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type {
  Committee,
  HistoryPoint,
  L1Committer,
  L1Reader,
  SealedBatch,
  StoredBatch,
} from "../ports.ts";
import { countOf, nextHistory, stateLeaf } from "../protocol/commitment.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import type { BatchPlace } from "../protocol/vault.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";
import type { Consents } from "./consents.ts";
import type { RefusedSlots } from "./refused-slots.ts";
import type { Attempts } from "./rounds.ts";

export interface CommitOptions {
  readonly engine: SettlementPort;
  readonly l1: L1Reader & L1Committer;
  readonly committee: Committee;
  readonly consents: Consents;
  /** Finds slots that could be committed and never withdrawn from. They become void first. */
  readonly checks: readonly BatchCheck[];
  readonly refused: RefusedSlots;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Most commits under way at once. When L1 refuses one, those behind it fail too, and cost the gas
 * of their calldata.
 */
const MOST_UNDER_WAY = 4;

/** The history that is known to be on L1. */
interface Progress {
  point: HistoryPoint;
  committed: number;
}

/**
 * Commits every sealed batch that the contract lacks, mode by mode, and returns their number. A
 * failing mode does not delay the other.
 *
 * Each commit names the history that it follows. The first one follows this store's record of L1's
 * commits, which must be L1's history too; otherwise nothing is sent. So two operators on copies of
 * one store cannot add to each other's batches. The next commits are sent while the first is under
 * way, because the history after it is known. When L1 refuses one, it refuses those behind it, and
 * they are sent again. {@link import("./follower.ts").followerOf} records commits from the
 * contract's own events.
 */
export async function commitSealed(options: CommitOptions, attempts: Attempts): Promise<number> {
  const { engine } = options;
  const progress: Progress = { point: await agreedHistory(options), committed: 0 };
  const onL1 = await engine.batches.committedState();
  for (const mode of MODES) {
    await attempts.of(async () => {
      const sealed = countOf(mode, engine.batches.state());
      let next = countOf(mode, onL1);
      while (next < sealed) next = await commitFrom(mode, next, sealed, progress, options);
      return 0;
    });
  }
  return progress.committed;
}

/**
 * The history in this store's record. Throws `history_diverged`, or `l1_failed` while L1 has
 * unrecorded commits.
 */
async function agreedHistory({ engine, l1 }: CommitOptions): Promise<HistoryPoint> {
  const onL1 = await l1.state();
  await engine.operator.compareState(onL1);
  const history = engine.operator.history();
  if (history === onL1.history)
    return { history, sequence: BigInt(onL1.countValidium + onL1.countRollup) };
  const counts = `${onL1.countValidium} validium and ${onL1.countRollup} rollup batches`;
  const differs = `L1's history of ${counts} is not the one that this store has recorded.`;
  throw new MintmarkError(
    "l1_failed",
    `${differs} Nothing is committed until L1's events are read again.`,
  );
}

/**
 * Commits the batches of a mode up to `end`, until one fails. Returns the number of the first one
 * that is not on L1 when an immediate retry makes sense; otherwise throws the reason.
 */
async function commitFrom(
  mode: Mode,
  first: number,
  end: number,
  progress: Progress,
  options: CommitOptions,
) {
  const { engine, l1, signal } = options;
  const commits: Promise<unknown>[] = [];
  let mined = 0;
  let failed = 0;
  let { point } = progress;
  try {
    while (first + commits.length < end && failed === 0) {
      signal?.throwIfAborted();
      const payable = await withoutUnpayable(
        await engine.batches.getSealed(mode, first + commits.length),
        options,
      );
      const { batch, consents } = await withConsents(payable, options);
      // Members judge transfers from L1's own history, so all commits before them must be there.
      await (isTransferData(batch.mode, batch.data)
        ? Promise.all(commits)
        : commits.at(-MOST_UNDER_WAY));
      const attestation = await attestationOf(batch, point, options).catch(async (error) => {
        if (mined === commits.length) throw error;
        // A member that has not signed the earlier batches must first see them on L1.
        await Promise.all(commits);
        return attestationOf(batch, point, options);
      });
      const sent = Promise.withResolvers<void>();
      const onSent = async (txHash: Hash) => {
        await engine.operator.recordSubmitted(mode, batch.batchNumber, txHash);
        sent.resolve();
      };
      const isBehind = mined < commits.length;
      const receipt = l1.commit(batch, point.history, attestation, {
        signal,
        onSent,
        isBehind,
        consents,
      });
      commits.push(receipt);
      receipt.then(
        () => mined++,
        () => failed++,
      );
      // If this one was not sent, L1 would refuse the next one.
      await Promise.race([sent.promise, receipt]);
      point = pointAfter(batch, point);
    }
    await Promise.all(commits);
  } catch (error) {
    const ended = await Promise.allSettled(commits);
    signal?.throwIfAborted();
    const at = ended.findIndex(({ status }) => status === "rejected");
    const failure = ended[at] as PromiseRejectedResult | undefined;
    const batchNumber = first + (failure === undefined ? commits.length : at);
    return afterFailure(
      failure?.reason ?? error,
      { mode, batchNumber },
      { first, end },
      progress,
      options,
    );
  }
  progress.point = point;
  progress.committed += commits.length;
  return end;
}

async function afterFailure(
  error: unknown,
  { mode, batchNumber }: BatchPlace,
  { first, end }: { readonly first: number; readonly end: number },
  progress: Progress,
  { engine, l1, refused, signal }: CommitOptions,
): Promise<number> {
  const onL1 = await l1.state();
  await engine.operator.compareState(onL1);
  let { point } = progress;
  let next = first;
  for (; point.history !== onL1.history && next < end; next++)
    point = pointAfter(await engine.batches.getSealed(mode, next), point);
  if (point.history !== onL1.history) throw error;
  progress.point = point;
  progress.committed += next - first;
  // L1 may have it after all: a killed process sent it, or its receipt was lost.
  if (next > batchNumber) return next;
  if (next < batchNumber) throw error;
  if (!(await refused.voidOf(await engine.batches.getSealed(mode, next), signal))) throw error;
  return next;
}

function pointAfter(batch: StoredBatch, { history, sequence }: HistoryPoint): HistoryPoint {
  const leaf = stateLeaf({ ...batch, batchRoot: batch.rootOnL1 });
  return { history: nextHistory(history, batch.mode, leaf), sequence: sequence + 1n };
}

/**
 * The batch without slots that nobody could withdraw from; for transfers that L1 must not take,
 * what replaces them.
 */
async function withoutUnpayable(
  batch: StoredBatch,
  { engine, checks, refused, signal }: CommitOptions,
): Promise<StoredBatch> {
  const { mode, batchNumber } = batch;
  if (isTransferData(batch.mode, batch.data)) await refused.takeBackInvalid(batchNumber, signal);
  else {
    const voids: VoidSlots[] = await engine.operator.enteredSlots(mode, batchNumber);
    const isEntered = voids.length > 0;
    for (const check of checks) voids.push(...(await check.checkBatch(batch, signal)));
    if (voids.length === 0) return batch;
    if (isEntered || (await refused.mayBeSent(mode, batchNumber)))
      await refused.requireUnusable(batch, signal);
    voids.sort((a, b) => a.firstSlot - b.firstSlot);
    await engine.operator.voidSlots(mode, batchNumber, voids);
  }
  return engine.batches.getSealed(mode, batchNumber);
}

/** The batch with its consents. L1 will leave out the assets whose issuers have not consented. */
async function withConsents(batch: SealedBatch, { engine, consents, signal }: CommitOptions) {
  const { mode, batchNumber } = batch;
  const { consents: given, leftOut } = await consents.of(batch, signal);
  await engine.operator.leaveOut(mode, batchNumber, leftOut, { signal });
  return { batch: await engine.batches.getSealed(mode, batchNumber), consents: given };
}

/** The committee's signatures, where L1 asks for them. */
async function attestationOf(
  batch: SealedBatch,
  before: HistoryPoint,
  { committee, refused, signal }: CommitOptions,
) {
  const areTransfers = isTransferData(batch.mode, batch.data);
  if (batch.mode !== "validium" && !areTransfers) return "0x";
  return committee.attest(batch, before, { signal }).catch((error) => {
    if (areTransfers && !signal?.aborted) refused.notSigned(batch);
    throw error;
  });
}

/**
 * Examines a batch before anybody signs or sends it. Returns the slots to make void, from which
 * nobody could withdraw.
 */
export interface BatchCheck {
  checkBatch(batch: SealedBatch, signal?: AbortSignal): Promise<readonly VoidSlots[]>;
}
