import { blockRanges, overlapping } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import type { Hash, Mode } from "../model.ts";
import type { L1Event, L1Reader } from "../ports.ts";
import {
  countOf,
  type StateCounts,
  type StateLeafContent,
  type StateRoots,
  stateCommitment,
  stateLeaf,
} from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes, unpackHashes } from "../protocol/hex.ts";
import { StateHistory } from "../protocol/state-tree.ts";

/** The part of the source chain that a history is made from. */
export type SourceChain = Pick<L1Reader, "settlement" | "finalizedBlockNumber" | "events">;

/** A state that the source has had, with what stands for it. */
export type SourceState = StateRoots & { readonly commitment: Hash };

/** How one mode's tree grew, with the proof of consistency of docs/protocol.md 7. */
export interface Growth {
  readonly mode: Mode;
  /** Batches of the mode afterwards. */
  readonly count: number;
  readonly root: Hash;
  /** The new tree's leaf at the old count. */
  readonly leaf: Hash;
  /** The new tree's 32 siblings at the old count. */
  readonly atOld: readonly Hash[];
  /** The new tree's 32 siblings at its own count. */
  readonly atNew: readonly Hash[];
}

type Committed = L1Event & { readonly type: "batchCommitted" };

/**
 * Every state that a settlement contract has had by its chain's own finality, from its events alone: what a committee member compares with
 * before it vouches for one, and where the proofs for a mirror come from. In memory, about 250 bytes a batch; read anew from the
 * contract's deployment on by each process.
 *
 * @example
 * const source = new SourceHistory(l1, fromBlock);
 * const steps = await advanceMirror({ source, mirror, committee });
 */
export class SourceHistory {
  readonly settlement: SourceChain["settlement"];
  readonly #chain: SourceChain;
  readonly #trees: Readonly<Record<Mode, StateHistory>> = {
    validium: new StateHistory(),
    "zk-rollup": new StateHistory(),
  };
  readonly #leaves: Readonly<Record<Mode, StateLeafContent[]>> = { validium: [], "zk-rollup": [] };
  /** By sequence: the mode of each commit, and how many of the commits before it were validium. */
  readonly #order: { readonly mode: Mode; readonly validiumBefore: number }[] = [];
  readonly #fromBlock: bigint;
  #nextBlock: bigint;
  /** Of the newest commit that is known. */
  #lastCommitBlock: bigint;
  #following: Promise<void> = Promise.resolve();
  /** A look that has not begun; whoever asks meanwhile shares it, so that many questions are not many looks. */
  #next: Promise<void> | null = null;

  /** @param fromBlock - of the contract's deployment */
  constructor(chain: SourceChain, fromBlock: bigint) {
    this.settlement = chain.settlement;
    this.#chain = chain;
    this.#fromBlock = fromBlock;
    this.#nextBlock = fromBlock;
    this.#lastCommitBlock = fromBlock;
  }

  /** The newest state that is known here. */
  get newest(): StateCounts {
    return { countValidium: this.#trees.validium.count, countRollup: this.#trees["zk-rollup"].count };
  }

  /** Reads what has become final since the last time. Rejects with `l1_failed`. */
  follow(): Promise<void> {
    this.#next ??= this.#following
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return this.#follow();
      });
    this.#following = this.#next;
    return this.#next;
  }

  async #follow(): Promise<void> {
    const final = await this.#chain.finalizedBlockNumber();
    if (this.#nextBlock > final) return;
    for (const [from, to] of blockRanges(overlapping(this.#nextBlock, this.#fromBlock), final)) {
      for (const event of await this.#chain.events(from, to)) {
        if (event.type === "batchCommitted") this.#take(event);
      }
      this.#nextBlock = to + 1n;
    }
  }

  /**
   * The state at these counts.
   *
   * @throws MintmarkError `l1_failed` when the source has not had it: the counts never stood together, or are not final yet
   */
  stateAt({ countValidium, countRollup }: StateCounts): SourceState {
    if (!this.hasHad({ countValidium, countRollup })) {
      throw new MintmarkError(
        "l1_failed",
        `the source has not had ${countValidium} validium and ${countRollup} rollup batches by its finality`,
      );
    }
    const rootValidium = bytesToHex(this.#trees.validium.root(countValidium));
    const rootRollup = bytesToHex(this.#trees["zk-rollup"].root(countRollup));
    const state = { rootValidium, rootRollup, countValidium, countRollup };
    return { ...state, commitment: stateCommitment(this.settlement, state) };
  }

  /**
   * The counts of a state by its commitment, looked for from the newest on.
   *
   * @throws MintmarkError `l1_failed` when the source has not had it by its finality
   */
  countsAt(commitment: Hash): StateCounts {
    for (let made = this.#order.length; made >= 0; made--) {
      const countValidium = this.#order[made]?.validiumBefore ?? this.newest.countValidium;
      const counts = { countValidium, countRollup: made - countValidium };
      if (this.stateAt(counts).commitment === commitment) return counts;
    }
    throw new MintmarkError("l1_failed", `the source has not had a state of commitment ${commitment} by its finality`);
  }

  /** Whether the source is known to have had these counts together. */
  hasHad({ countValidium, countRollup }: StateCounts): boolean {
    const next = this.#order[countValidium + countRollup];
    const validium = next === undefined ? this.newest.countValidium : next.validiumBefore;
    return validium === countValidium && countRollup <= this.newest.countRollup;
  }

  /** How far a mirror at these counts can grow in one step: until the source went on in the other mode. null when it is up to date. */
  nextGrowth(from: StateCounts): Growth | null {
    const first = from.countValidium + from.countRollup;
    const mode = this.#order[first]?.mode;
    if (mode === undefined) return null;
    let run = 0;
    while (this.#order[first + run]?.mode === mode) run++;
    return this.growth(from, mode, countOf(mode, from) + run);
  }

  /** How one mode's tree grows to `count` batches, more than it has at `from`. */
  growth(from: StateCounts, mode: Mode, count: number): Growth {
    const old = countOf(mode, from);
    const tree = this.#trees[mode];
    return {
      mode,
      count,
      root: bytesToHex(tree.root(count)),
      leaf: bytesToHex(tree.leaf(old)),
      atOld: unpackHashes(tree.siblings(old, count)),
      atNew: unpackHashes(tree.siblings(count, count)),
    };
  }

  /**
   * A committed batch and its 32 siblings in its mode's tree when that held `count` batches.
   *
   * @throws MintmarkError `proof_not_ready` when the batch's commit is not final yet
   */
  batch(mode: Mode, batchNumber: number, count: number): StateLeafContent & { readonly siblings: readonly Hash[] } {
    const leaf = this.#leaves[mode][batchNumber];
    if (leaf === undefined) {
      throw new MintmarkError("proof_not_ready", `${mode} batch ${batchNumber} is not final on its chain yet`);
    }
    return { ...leaf, siblings: unpackHashes(this.#trees[mode].siblings(batchNumber, count)) };
  }

  /** The next commit, or one that is known. When one is missing, everything behind the last that is known is read again the next time. */
  #take({ mode, batchNumber, vaultCount, dataHash, batchRoot, sequence, blockNumber }: Committed): void {
    const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot }));
    if (sequence < BigInt(this.#order.length)) {
      const known = this.#leaves[mode][batchNumber];
      if (known !== undefined && stateLeaf(known) === bytesToHex(leaf)) return;
      throw new MintmarkError("l1_failed", `${mode} batch ${batchNumber} is another one than was final before`);
    }
    if (sequence !== BigInt(this.#order.length) || batchNumber !== this.#trees[mode].count) {
      this.#nextBlock = this.#lastCommitBlock;
      throw new MintmarkError("l1_failed", `the node left out commits before ${mode} batch ${batchNumber}`);
    }
    this.#order.push({ mode, validiumBefore: this.#trees.validium.count });
    this.#leaves[mode].push({ batchNumber, vaultCount, dataHash, batchRoot });
    this.#trees[mode].append(leaf);
    this.#lastCommitBlock = blockNumber;
  }
}
