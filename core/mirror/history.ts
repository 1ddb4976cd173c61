import type { LocalAccount } from "viem";
import { sharedRuns } from "../at-once.ts";
import { blockRanges, least, overlapping, SECOND_LOOK_MS } from "../blocks.ts";
import { RemoteService, signatureIn } from "../committee/member-service.ts";
import { MintmarkError } from "../errors.ts";
import { type Address, type Hash, type Hex, MODES, type Mode } from "../model.ts";
import type { CommitEvent, L1Reader, Settlement } from "../ports.ts";
import type { StateCounts, StateLeafContent, StateRoots } from "../protocol/commitment.ts";
import { countOf, stateCommitment, stateLeaf } from "../protocol/commitment.ts";
import { bytesToHex, hexToBytes, unpackHashes } from "../protocol/hex.ts";
import { StateTree } from "../protocol/state-tree.ts";
import { mirroredStateTypedData } from "../protocol/typed-data.ts";

/** The part of the source chain that a history reads. */
type SourceChain = Pick<L1Reader, "settlement" | "finalizedBlockNumber" | "block" | "events">;

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
 * about 400 bytes a batch; each process reads it anew from the contract's deployment on.
 *
 * A node can speak for another chain for a while. So what was read is compared with what the node
 * says now, and nothing is read while they differ. If they still differ at a second look,
 * everything since they last agreed is read again.
 *
 * @example
 * const source = new SourceHistory(l1, fromBlock);
 * const steps = await advanceMirror({ source, mirror, committee });
 */
export class SourceHistory {
  readonly settlement: SourceChain["settlement"];
  readonly #chain: SourceChain;
  readonly #trees: Record<Mode, StateTree> = {
    validium: new StateTree(),
    "zk-rollup": new StateTree(),
  };
  readonly #leaves: Readonly<Record<Mode, StateLeafContent[]>> = { validium: [], "zk-rollup": [] };
  /** The commits in sequence. */
  readonly #order: KnownCommit[] = [];
  readonly #fromBlock: bigint;
  readonly #secondLookMs: number;
  #nextBlock: bigint;
  #readOnce: bigint; // The first block that was read only once
  /** When the chain was first seen to lack a known commit's block; null if it has it. */
  #blocksDoubtedAt: number | null = null;
  /** The known commit that the chain's logs deny; null if they deny none. */
  #logsDoubted: DoubtedCommit | null = null;
  /**
   * Reads the blocks that have become final since the last call. Rejects with `l1_failed`, also
   * while the chain differs from what was read before.
   */
  readonly follow: () => Promise<void> = sharedRuns(() => this.#follow());

  /**
   * @param fromBlock - the contract's deployment block
   * @param secondLookMs - least time between the two looks after which known commits are forgotten
   */
  constructor(chain: SourceChain, fromBlock: bigint, secondLookMs: number = SECOND_LOOK_MS) {
    this.settlement = chain.settlement;
    this.#chain = chain;
    this.#fromBlock = fromBlock;
    this.#secondLookMs = secondLookMs;
    this.#nextBlock = fromBlock;
    this.#readOnce = fromBlock;
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
    const isDoubted = this.#blocksDoubtedAt !== null || this.#logsDoubted !== null;
    if (final < this.#fromBlock || (this.#nextBlock === final + 1n && !isDoubted)) return;
    const agreed = await this.#agreed();
    if (agreed < this.#order.length) {
      this.#blocksDoubtedAt ??= performance.now();
      this.#forget(agreed, this.#blocksDoubtedAt);
    }
    // The rest may fail for hours, and a later lie must not count as the second look at this one.
    this.#blocksDoubtedAt = null;
    // The node lags, or has spoken for a longer chain.
    const next = least(this.#nextBlock, final + 1n);
    // Each block is read twice, because a node can leave events out without an error.
    const twice = least(overlapping(next, this.#fromBlock), this.#readOnce);
    // Only the doubted commit itself ends its doubt: logs without it do not speak for it.
    const first = least(twice, this.#logsDoubted?.block ?? twice);
    for (const [from, to] of blockRanges(first, final)) {
      for (const event of await this.#chain.events(from, to))
        if (event.type === "batchCommitted") this.#take(event);
      this.#nextBlock = to + 1n;
      // Until a range has been read, the next run must start as far back as this one.
      this.#readOnce = next;
    }
  }

  /** Number of commits of which the newest is in a block that the chain still has. */
  async #agreed(): Promise<number> {
    let count = this.#order.length;
    for (let step = 1; count > 0; step *= 2) {
      const { blockNumber, blockHash } = this.#order[count - 1] as KnownCommit;
      const isSame =
        blockHash === undefined || (await this.#chain.block(blockNumber))?.hash === blockHash;
      if (isSame) break;
      // After a long stay on another chain, many commits are not asked about one by one.
      count = Math.max(0, count - step);
    }
    return count;
  }

  /**
   * Forgets all commits but the first `count`, and reads on from the last of them. Throws
   * `l1_failed` until a second look finds the same as at `doubtedAt`.
   */
  #forget(count: number, doubtedAt: number): void {
    if (performance.now() - doubtedAt < this.#secondLookMs)
      throw new MintmarkError(
        "l1_failed",
        "the chain differs from what was final before; it is looked at again",
      );
    const countValidium = this.#order[count]?.validiumBefore ?? 0;
    const kept: Record<Mode, number> = {
      validium: countValidium,
      "zk-rollup": count - countValidium,
    };
    for (const mode of MODES) {
      this.#trees[mode].truncate(kept[mode]);
      this.#leaves[mode].length = kept[mode];
    }
    this.#order.length = count;
    if (this.#logsDoubted !== null && this.#logsDoubted.sequence >= count) this.#logsDoubted = null;
    this.#readFromLastCommit();
  }

  #readFromLastCommit(): void {
    const last = this.#order.at(-1)?.blockNumber ?? this.#fromBlock;
    this.#nextBlock = least(this.#nextBlock, last);
    this.#readOnce = least(this.#readOnce, last);
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
    blockHash,
  }: CommitEvent): void {
    const leaf = hexToBytes(stateLeaf({ batchNumber, vaultCount, dataHash, batchRoot }));
    if (sequence < BigInt(this.#order.length)) {
      const known = this.#leaves[mode][batchNumber];
      if (known !== undefined && stateLeaf(known) === bytesToHex(leaf)) {
        if (this.#logsDoubted?.sequence === sequence) this.#logsDoubted = null;
        return;
      }
      if (this.#logsDoubted?.sequence !== sequence)
        this.#logsDoubted = {
          sequence,
          block: least(blockNumber, this.#order[Number(sequence)]?.blockNumber ?? blockNumber),
          at: performance.now(),
        };
      // Its logs can have been wrong before, too, in blocks that are not read again.
      this.#forget(0, this.#logsDoubted.at);
      throw new MintmarkError("l1_failed", "the commits are read again from the first one on");
    }
    if (sequence !== BigInt(this.#order.length) || batchNumber !== this.#trees[mode].count) {
      this.#readFromLastCommit();
      throw new MintmarkError(
        "l1_failed",
        `the node left out commits before ${mode} batch ${batchNumber}`,
      );
    }
    this.#order.push({
      mode,
      validiumBefore: this.#trees.validium.count,
      blockNumber,
      blockHash,
    });
    this.#leaves[mode].push({ batchNumber, vaultCount, dataHash, batchRoot });
    this.#trees[mode].append(leaf);
  }
}

interface KnownCommit extends Pick<CommitEvent, "mode" | "blockNumber" | "blockHash"> {
  /** Number of the commits before it that were validium. */
  readonly validiumBefore: number;
}

interface DoubtedCommit {
  readonly sequence: bigint;
  /** The first block where the chain has told of it. */
  readonly block: bigint;
  /** When the chain's logs first denied it. */
  readonly at: number;
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

/** Milliseconds after which known states are compared with the chain again. */
const FOLLOW_MS = 12_000;

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
  #followedAt = -Infinity;

  /** @param source - the member's own, over its own node */
  constructor(account: LocalAccount, source: SourceHistory) {
    this.address = account.address.toLowerCase() as Address;
    this.#account = account;
    this.#source = source;
  }

  async attest(mirror: MirrorIdentity, counts: StateCounts, epoch: bigint): Promise<Hex> {
    // Anyone may ask, so the chain is seldom asked about known counts. It can have told lies.
    if (!this.#source.hasHad(counts) || performance.now() - this.#followedAt > FOLLOW_MS) {
      await this.#source.follow();
      this.#followedAt = performance.now();
    }
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
