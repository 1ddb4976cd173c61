import type { LocalAccount } from "viem";
import { sharedRuns } from "../at-once.ts";
import { blockRanges, least, overlapping } from "../blocks.ts";
import { RemoteService, signatureIn } from "../committee/member-service.ts";
import { MintmarkError } from "../errors.ts";
import type { Address, Hash, Hex, Mode } from "../model.ts";
import type { CommitEvent, L1Reader, Settlement } from "../ports.ts";
import type { StateCounts, StateLeafContent, StateRoots } from "../protocol/commitment.ts";
import { countOf, stateCommitment, stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes, unpackHashes } from "../protocol/hex.ts";
import { StateHistory } from "../protocol/state-tree.ts";
import { mirroredStateTypedData } from "../protocol/typed-data.ts";

/** The part of the source chain that a history reads. */
type SourceChain = Pick<L1Reader, "settlement" | "finalizedBlockNumber" | "events">;

/** A state of the source, with its commitment. */
type SourceState = StateRoots & { readonly commitment: Hash };

/** The growth of one mode's tree, with the consistency proof of docs/protocol.md 7. */
export interface Growth {
  readonly mode: Mode;
  /** Batches of the mode after it. */
  readonly count: number;
  readonly root: Hash;
  /** The new tree's leaf at the old count. */
  readonly leaf: Hash;
  /** The new tree's 32 siblings at the old count. */
  readonly atOld: readonly Hash[];
  /** The new tree's 32 siblings at the new count. */
  readonly atNew: readonly Hash[];
}

/**
 * Every state that a settlement contract has had in its chain's final blocks, from its events
 * alone. A committee member checks it before signing; a mirror's proofs come from it. In memory,
 * about 250 bytes a batch; each process reads it anew from the contract's deployment on.
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
  /** The mode of each commit in sequence, and how many of the commits before it were validium. */
  readonly #order: { readonly mode: Mode; readonly validiumBefore: number }[] = [];
  readonly #fromBlock: bigint;
  #nextBlock: bigint;
  #readOnce: bigint; // The first block that was read only once
  #lastCommitBlock: bigint; // The block of the newest known commit
  /** Reads the blocks that have become final since the last call. Rejects with `l1_failed`. */
  readonly follow: () => Promise<void> = sharedRuns(() => this.#follow());

  /** @param fromBlock - the contract's deployment block */
  constructor(chain: SourceChain, fromBlock: bigint) {
    this.settlement = chain.settlement;
    this.#chain = chain;
    this.#fromBlock = fromBlock;
    this.#nextBlock = fromBlock;
    this.#readOnce = fromBlock;
    this.#lastCommitBlock = fromBlock;
  }

  /** The newest known state. */
  get newest(): StateCounts {
    return {
      countValidium: this.#trees.validium.count,
      countRollup: this.#trees["zk-rollup"].count,
    };
  }

  async #follow(): Promise<void> {
    const final = await this.#chain.finalizedBlockNumber();
    const next = this.#nextBlock;
    if (next > final) return;
    // Each block is read twice, because a node can leave events out without an error.
    const first = least(overlapping(next, this.#fromBlock), this.#readOnce);
    this.#readOnce = next;
    for (const [from, to] of blockRanges(first, final)) {
      for (const event of await this.#chain.events(from, to))
        if (event.type === "batchCommitted") this.#take(event);
      this.#nextBlock = to + 1n;
    }
  }

  /**
   * The state at these counts.
   *
   * @throws MintmarkError `l1_failed` when the source never had these counts together, or they are
   *   not final yet
   */
  stateAt({ countValidium, countRollup }: StateCounts): SourceState {
    if (!this.hasHad({ countValidium, countRollup })) {
      const detail = `the source has no final state of ${countValidium} validium and ${countRollup} rollup batches`;
      throw new MintmarkError("l1_failed", detail);
    }
    const rootValidium = bytesToHex(this.#trees.validium.root(countValidium));
    const rootRollup = bytesToHex(this.#trees["zk-rollup"].root(countRollup));
    const state = { rootValidium, rootRollup, countValidium, countRollup };
    return { ...state, commitment: stateCommitment(this.settlement, state) };
  }

  /**
   * The counts of the state with this commitment, searched from the newest.
   *
   * @throws MintmarkError `l1_failed` when the source has no such final state
   */
  countsAt(commitment: Hash): StateCounts {
    for (let made = this.#order.length; made >= 0; made--) {
      const countValidium = this.#order[made]?.validiumBefore ?? this.newest.countValidium;
      const counts = { countValidium, countRollup: made - countValidium };
      if (this.stateAt(counts).commitment === commitment) return counts;
    }
    throw new MintmarkError(
      "l1_failed",
      `the source has no final state with commitment ${commitment}`,
    );
  }

  /** Whether the known history has these counts together. */
  hasHad({ countValidium, countRollup }: StateCounts): boolean {
    const next = this.#order[countValidium + countRollup];
    const validium = next === undefined ? this.newest.countValidium : next.validiumBefore;
    return validium === countValidium && countRollup <= this.newest.countRollup;
  }

  /**
   * The longest step of a mirror from these counts: until the source changes mode. null when up to
   * date.
   */
  nextGrowth(from: StateCounts): Growth | null {
    const first = from.countValidium + from.countRollup;
    const mode = this.#order[first]?.mode;
    if (mode === undefined) return null;
    let run = 0;
    while (this.#order[first + run]?.mode === mode) run++;
    return this.growth(from, mode, countOf(mode, from) + run);
  }

  /** The growth of one mode's tree to `count` batches, which exceeds its count at `from`. */
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
   * A committed batch and its 32 siblings in its mode's tree of `count` batches.
   *
   * @throws MintmarkError `proof_not_ready` when the batch's commit is not final yet
   */
  batch(
    mode: Mode,
    batchNumber: number,
    count: number,
  ): StateLeafContent & { readonly siblings: readonly Hash[] } {
    const leaf = this.#leaves[mode][batchNumber];
    if (leaf === undefined)
      throw new MintmarkError(
        "proof_not_ready",
        `${mode} batch ${batchNumber} is not final on its chain yet`,
      );
    return { ...leaf, siblings: unpackHashes(this.#trees[mode].siblings(batchNumber, count)) };
  }

  /**
   * Takes the next commit; known ones change nothing. After a gap, the next read restarts at the
   * last known one.
   */
  #take({
    mode,
    batchNumber,
    vaultCount,
    dataHash,
    batchRoot,
    sequence,
    blockNumber,
  }: CommitEvent): void {
    const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot }));
    if (sequence < BigInt(this.#order.length)) {
      const known = this.#leaves[mode][batchNumber];
      if (known !== undefined && stateLeaf(known) === bytesToHex(leaf)) return;
      throw new MintmarkError(
        "l1_failed",
        `${mode} batch ${batchNumber} differs from the one that was final before`,
      );
    }
    if (sequence !== BigInt(this.#order.length) || batchNumber !== this.#trees[mode].count) {
      this.#nextBlock = this.#lastCommitBlock;
      throw new MintmarkError(
        "l1_failed",
        `the node left out commits before ${mode} batch ${batchNumber}`,
      );
    }
    this.#order.push({ mode, validiumBefore: this.#trees.validium.count });
    this.#leaves[mode].push({ batchNumber, vaultCount, dataHash, batchRoot });
    this.#trees[mode].append(leaf);
    this.#lastCommitBlock = blockNumber;
  }
}

/** The contract that mirrors a settlement contract on another chain. */
export type MirrorIdentity = Pick<Settlement, "chainId" | "contract">;

/** A client of one committee member, in this process or over its service. */
export interface AttesterClient {
  readonly address: Address;
  /**
   * 65 bytes, `r ‖ s ‖ v`. Rejects unless the member has seen this state of the source in a final
   * block.
   */
  attest(
    mirror: MirrorIdentity,
    counts: StateCounts,
    epoch: bigint,
    signal?: AbortSignal,
  ): Promise<Hex>;
}

/**
 * A committee member's signer for mirrors. It signs only states that it has read itself from final
 * blocks of the source chain. It refuses counts that the source never had together, so a signature
 * is always over a state between two commits.
 *
 * @example
 * const attester = new MirrorAttester(account, new SourceHistory(l1, fromBlock));
 */
export class MirrorAttester implements AttesterClient {
  readonly address: Address;
  readonly #account: LocalAccount;
  readonly #source: SourceHistory;

  /** @param source - the member's own, over its own node */
  constructor(account: LocalAccount, source: SourceHistory) {
    this.address = account.address.toLowerCase() as Address;
    this.#account = account;
    this.#source = source;
  }

  async attest(mirror: MirrorIdentity, counts: StateCounts, epoch: bigint): Promise<Hex> {
    // Anyone may ask, so the chain is asked only about unknown counts.
    if (!this.#source.hasHad(counts)) await this.#source.follow();
    return this.#account.signTypedData(stateTypedData(this.#source, mirror, counts, epoch));
  }
}

/**
 * The message about a state of the source that members sign. Rejects like {@link
 * SourceHistory.stateAt}.
 */
export function stateTypedData(
  source: SourceHistory,
  mirror: MirrorIdentity,
  counts: StateCounts,
  epoch: bigint,
) {
  const { countValidium, countRollup, commitment } = source.stateAt(counts);
  const { chainId: sourceChainId, contract: sourceContract } = source.settlement;
  const message = { sourceChainId, sourceContract, countValidium, countRollup, commitment, epoch };
  return mirroredStateTypedData(mirror, message);
}

/**
 * The client of a member's service that signs for mirrors.
 *
 * @example
 * const committee = { members: [new RemoteAttester({ address, url: "https://member.example" })],
 * threshold: 1 }; await advanceMirror({ source, mirror, committee });
 */
export class RemoteAttester extends RemoteService implements AttesterClient {
  async attest(
    { chainId, contract }: MirrorIdentity,
    { countValidium, countRollup }: StateCounts,
    epoch: bigint,
    signal?: AbortSignal,
  ): Promise<Hex> {
    const asked = {
      countValidium: `${countValidium}`,
      countRollup: `${countRollup}`,
      epoch: `${epoch}`,
    };
    const path = `/v1/mirrors/${chainId}/${contract}/attestation?${new URLSearchParams(asked)}`;
    return signatureIn(await this.ask(path, { signal: signal ?? null }));
  }
}
