import { type Backoff, repeat } from "../backoff.ts";
import {
  askable,
  blockRanges,
  commitsIn,
  eventsUpTo,
  least,
  overlapping,
  requireBlock,
  SECOND_LOOK_MS,
} from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { MODES, type Mode } from "../model.ts";
import type { CommitEvent, L1Event, L1Reader } from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import type { EngineState } from "../protocol/proof.ts";
import type { Archive } from "./archive.ts";
import type { InvalidTransfer } from "./archive-transfers.ts";
import { CommittedData, type DataSources } from "./committed-data.ts";
import { type VoidedDuplicate, type VoidingPortal, voidDuplicates } from "./duplicates.ts";
import { nextBlock } from "./keys.ts";

/** The part of L1 that an archive follows. */
export type FollowedChain = Pick<
  L1Reader,
  | "block"
  | "blockNumber"
  | "events"
  | "finalizedBlockNumber"
  | "registrations"
  | "rollupData"
  | "state"
>;

/** The progress of {@link follow}. */
export interface Progress {
  readonly block: bigint;
  readonly toBlock: bigint;
  readonly batches: number;
}

/** Options of {@link follow}. */
export interface FollowOptions extends DataSources {
  readonly archive: Archive;
  readonly l1: FollowedChain;
  /** Deployment block of the settlement contract. */
  readonly fromBlock: bigint;
  /**
   * Default: the newest final block. Other blocks can be replaced; then the archive must be
   * rebuilt.
   */
  readonly toBlock?: bigint;
  readonly onProgress?: (progress: Progress) => void;
  /** Called when a source fails or gives other data. The next source follows. */
  readonly onFault?: (source: { readonly name: string }, batchId: string, error: unknown) => void;
  /** Least milliseconds between two looks at what contradicts the archive; default 15,000. */
  readonly secondLookMs?: number;
  /**
   * Called once for each committed record that moves nothing: a committee that checks records signs
   * none.
   */
  readonly onInvalidTransfer?: (found: InvalidTransfer) => void;
  readonly signal?: AbortSignal;
}

/**
 * Brings an archive up to a block of L1: commits with their data, withdrawals, voided duplicates.
 * Rollup data comes from the commits' transactions or from sources of their blobs, validium data
 * from the sources. The next run retries missing data, and reads the blocks of this one again,
 * because a node can leave events out without an error. If L1 contradicts the archive in this run
 * and in a later one, the archive forgets what L1 told, and the run after it reads all of L1 again.
 *
 * @throws MintmarkError `l1_failed` when the chain is unreachable, or its logs left out a commit:
 *   the next run reads them again; `store_mismatch` for another chain than before
 *
 * @example
 * const archive = await Archive.open({ store, l1 }); await follow({ archive, l1, fromBlock,
 * sources: [new HttpBatchSource("https://member.example")] });
 */
export async function follow(options: FollowOptions): Promise<void> {
  const { archive, l1, fromBlock, onProgress, onInvalidTransfer = () => {}, signal } = options;
  const toBlock = options.toBlock ?? (await l1.finalizedBlockNumber());
  await requireSameChain(options);
  const next = archive.position === null ? fromBlock : nextBlock(archive.position);
  const once = archive.readOnce;
  const first = next <= toBlock ? least(overlapping(next, fromBlock), once ?? next) : next;
  for (const [from, to] of blockRanges(first, toBlock)) {
    signal?.throwIfAborted();
    const { events, block } = await eventsUpTo(l1, from, to);
    // The node may have begun to speak for another chain.
    await requireSameChain(options);
    for (const event of events) {
      signal?.throwIfAborted();
      if (archive.hasApplied(event)) continue;
      (await archive.apply(event, await dataOf(event, options))).forEach(onInvalidTransfer);
      if (event.type === "batchCommitted")
        onProgress?.(progressOf(archive, event.blockNumber, toBlock));
    }
    await archive.advance(block);
    // Until a range has been read, the next run must start as far back as this one.
    archive.readOnce = next;
    onProgress?.(progressOf(archive, to, toBlock));
  }
  await requireWhole(options);
  await supplyMissing(options);
  (await archive.judgeTransfers()).forEach(onInvalidTransfer);
}

/** The errors of a contradiction end with this. */
const CONTRADICTED =
  "The node speaks for another chain now, or did before. If this stays, a process that runs on reads all of L1 again by itself; for a single command, give an empty folder.";

/**
 * Requires that the archive has every commit that the contract counts, but those of newer blocks,
 * and that they are the contract's own. Otherwise missing ones are read again from the last one on.
 */
async function requireWhole(options: FollowOptions): Promise<void> {
  const { archive, l1, secondLookMs = SECOND_LOOK_MS } = options;
  const there = await l1.state();
  const lacks = (here: EngineState) =>
    MODES.some((mode) => countOf(mode, there) > countOf(mode, here));
  let here = archive.state();
  if (lacks(here)) {
    here = archive.stateAfter(await newerCommits(archive, l1, await l1.blockNumber()));
    if (lacks(here)) {
      await archive.reread();
      throw new MintmarkError(
        "l1_failed",
        "the node's logs leave out commits that the contract counts; they will be read again",
      );
    }
  }
  // A node that lags, or commits between the two answers: the next round compares.
  if (MODES.some((mode) => countOf(mode, there) !== countOf(mode, here))) return archive.trust();
  if (there.commitment === here.commitment) return archive.trust();
  await archive.doubt(secondLookMs);
  throw new MintmarkError(
    "l1_failed",
    `The archive's commits give ${here.commitment}, but the contract says ${there.commitment}. ${CONTRADICTED}`,
  );
}

/** The commits of the blocks after those that the archive has read. */
function newerCommits(
  { position }: Archive,
  l1: FollowedChain,
  upTo: bigint,
): Promise<CommitEvent[]> {
  return Array.fromAsync(commitsIn(l1, position === null ? 0n : nextBlock(position), upTo));
}

/**
 * The calldata of a commit; null when the chain does not give it. Then the chain and the sources
 * are asked later.
 */
async function dataOf(event: L1Event, { l1 }: FollowOptions): Promise<Uint8Array | null> {
  if (event.type !== "batchCommitted" || event.mode !== "zk-rollup" || event.blobs !== undefined)
    return null;
  return l1.rollupData(event.txHash);
}

/** Asks for missing data. The next run retries, with new patience for each source. */
async function supplyMissing(options: FollowOptions): Promise<void> {
  const { archive, l1, onFault, onInvalidTransfer = () => {}, signal } = options;
  const committed = new CommittedData(l1, archive.kzg, options);
  // The newest first: beacon nodes have dropped old blobs, and an answer without data uses up their
  // time too.
  for (const { mode, batchNumber } of (await archive.missing()).reverse()) {
    const commit = await archive.commit(mode, batchNumber);
    if (commit === null) continue;
    await committed.find(
      commit,
      async (data) => (await archive.supply(mode, batchNumber, data)).forEach(onInvalidTransfer),
      (source, error) => {
        if (error !== null) onFault?.(source, `${mode}-${batchNumber}`, error);
      },
      signal,
    );
  }
}

/** The followed block must still exist: an archive takes only final blocks. */
async function requireSameChain(options: FollowOptions): Promise<void> {
  const { archive, l1, secondLookMs = SECOND_LOOK_MS } = options;
  const { position } = archive;
  if (position === null || position.hash === null) return;
  const { hash } = await requireBlock(l1, position.block);
  // The rest may fail for hours, and a later lie must not count as the second look at this one.
  if (hash === position.hash) return archive.trustBlock();
  await archive.doubtBlock(secondLookMs);
  throw new MintmarkError(
    "store_mismatch",
    `Block ${position.block} of this chain differs from the store's. ${CONTRADICTED}`,
  );
}

function progressOf(archive: Archive, block: bigint, toBlock: bigint): Progress {
  const { countValidium, countRollup } = archive.state();
  return { block, toBlock, batches: countValidium + countRollup };
}

/** Options of a {@link Watcher}. */
export interface WatcherOptions extends Omit<FollowOptions, "toBlock" | "signal"> {
  readonly l1: FollowedChain & VoidingPortal;
  /** Milliseconds between rounds; default 12,000, one block of Ethereum. */
  readonly intervalMs?: number;
  /**
   * The work of a round after following L1. Returns the number of things done. Default: voids
   * ERC-721 duplicates.
   */
  readonly work?: (signal?: AbortSignal) => Promise<number>;
  readonly onVoided?: (voided: VoidedDuplicate) => void;
  /** Called with the error of a failed round. The delay before the next round grows. */
  readonly onError?: (error: unknown) => void;
}

const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/**
 * Keeps an archive up to date with L1 and voids ERC-721 duplicates. Every committee member runs
 * one; anyone else may.
 *
 * @example
 * await new Watcher({ archive, l1, fromBlock }).run(signal);
 */
export class Watcher {
  readonly #options: WatcherOptions;
  #lastError: unknown = null;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  /** The error of the last round; null when it succeeded. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** One round. Returns the result of its work. */
  async round(signal?: AbortSignal): Promise<number> {
    const { archive, l1, onVoided, work } = this.#options;
    await follow({ ...this.#options, signal });
    if (work !== undefined) return work(signal);
    return voidDuplicates({ archive, portal: l1, onVoided, signal });
  }

  /** Runs rounds until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = 12_000, onError = () => {} } = this.#options;
    const onRound = (error: unknown) => {
      this.#lastError = error;
      if (error !== null) onError(error);
    };
    return repeat(
      (aborted) => this.round(aborted),
      { intervalMs, backoff: BACKOFF, onRound },
      signal,
    );
  }
}

/** Options of {@link rebuild}. */
export type RebuildOptions = FollowOptions;

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
 * Rebuilds the public state from L1 (rollup) and from sources (validium), and compares its roots
 * with L1's. An interrupted rebuild resumes with the next call on the same store.
 *
 * @throws MintmarkError `l1_failed` when a root differs from L1's: a defect of this code or of the
 *   node
 *
 * @example
 * const { batches, missing } = await rebuild({ archive, l1, fromBlock, sources });
 */
export async function rebuild(options: RebuildOptions): Promise<RebuildReport> {
  const { archive, l1 } = options;
  const block = options.toBlock ?? (await l1.finalizedBlockNumber());
  // An archive that is further ahead stays there.
  const toBlock =
    archive.position !== null && archive.position.block > block ? archive.position.block : block;
  await follow({ ...options, toBlock });
  // A node that keeps no old states is asked about a newer one, which later commits have changed.
  const asked = askable(toBlock, await l1.blockNumber());
  const newer = asked === toBlock ? [] : await newerCommits(archive, l1, asked);
  const [state, here, there] = [archive.state(), archive.stateAfter(newer), await l1.state(asked)];
  for (const key of Object.keys(here) as (keyof EngineState)[]) {
    if (here[key] !== there[key]) {
      const detail = `the rebuilt ${key} is ${here[key]}, but ${there[key]} on L1 at block ${asked}`;
      throw new MintmarkError("l1_failed", detail);
    }
  }
  const missing = await archive.missing();
  return {
    block: toBlock,
    batches: { validium: state.countValidium, "zk-rollup": state.countRollup },
    vaults: {
      validium: archive.vaultCount("validium"),
      "zk-rollup": archive.vaultCount("zk-rollup"),
    },
    withdrawnVaults: await archive.withdrawnVaults(),
    missing: missing.map(({ mode, batchNumber }) => `${mode}-${batchNumber}`),
    unjudged: (await archive.unjudged()).map((batchNumber) => `zk-rollup-${batchNumber}`),
    invalidTransfers: (await Array.fromAsync(archive.invalidTransfers())).length,
    state,
  };
}
