import { least } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import type { IssuerClient } from "../issuer/index.ts";
import { type Address, MODES, type Mode } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type {
  Clock,
  Committee,
  IssuerReader,
  L1Committer,
  L1Reader,
  L1State,
  L1Tokens,
} from "../ports.ts";
import { countOf } from "../protocol/commitment.ts";
import { type BatchCheck, commitSealed } from "./commit.ts";
import { Consents } from "./consents.ts";
import { type FollowerOptions, followerOf } from "./follower.ts";
import { Preflight } from "./preflight.ts";
import { RefusedSlots } from "./refused-slots.ts";
import type { RollupData } from "./rollup-data.ts";
import { Attempts, Rounds, type RoundsOptions } from "./rounds.ts";
import { WithdrawalSender } from "./withdrawal-sender.ts";

/** When to close an open batch that is not full. The engine's limits define full. */
export interface SealingPolicy {
  /** Milliseconds since its first mint, for both modes or for each; default 60 000. */
  readonly maxAgeMs?: number | Readonly<Record<Mode, number>>;
}

/** An engine, its chain and committee, and the timing. */
export interface SettlerOptions extends RoundsOptions, FollowerOptions {
  readonly engine: SettlementPort;
  readonly l1: L1Reader & L1Committer & L1Tokens & IssuerReader;
  readonly committee: Committee;
  /** Examines tokens of other chains. Must neither reject nor take long. */
  readonly mirrors?: readonly BatchCheck[];
  readonly sealing?: SealingPolicy;
  /**
   * The tokens' issuers; default none. L1 leaves the assets of all other issuers out of each batch.
   */
  readonly issuers?: readonly IssuerClient[];
  /**
   * Where the data of rollup batches go; default `auto`: into blobs where {@link
   * L1Committer.takesBlobs} says so.
   */
  readonly rollupData?: RollupData;
  /** Milliseconds that a batch waits for its issuers; default 30 000. */
  readonly consentMs?: number;
  /**
   * Milliseconds that rollup batches wait for members to sign transfers before them; default 600
   * 000.
   */
  readonly signingMs?: number;
  /** Called when an issuer gives a new reason not to consent. */
  readonly onIssuerRefusal?: (issuer: Address, batchId: string, error: unknown) => void;
}

/** Results of one round: batches sealed and committed, withdrawals sent. */
export interface Round {
  readonly sealed: number;
  readonly committed: number;
  readonly withdrawn: number;
}

/** Kinds of work of a settler, each in its own loop. */
export type SettlerWork = "follow" | "seal" | "assets" | "consents" | "commit" | "withdraw";

/**
 * Brings an engine's batches and withdrawals to L1, and L1's events to the engine. Seals and sends
 * nothing until the engine agrees with L1. One per engine.
 *
 * @example
 * await new Settler({ engine, l1, committee, fromBlock }).run(signal);
 */
export class Settler extends Rounds<Round, SettlerWork, SettlerOptions> {
  /** The issuers' answers about waiting batches. */
  readonly consents: Consents;
  protected readonly passes;
  protected override readonly words;
  #rollupDataIsChosen = false;
  #compared = false;
  /** Only an operator can mend a difference between engine and L1, so it is thrown once. */
  #toldOfDivergence = false;

  constructor(options: SettlerOptions) {
    super(options);
    const { engine, l1, committee, fromBlock, mirrors = [], sealing = {} } = options;
    const { clock: steady = () => performance.now(), clock = Date.now, secondLookMs } = options;
    const follower = followerOf(engine, l1, options);
    const sender = new WithdrawalSender({
      engine,
      portal: l1,
      follower,
      clock: steady,
      fromBlock,
      secondLookMs,
    });
    const sealDue = sealingOf(engine, sealing, clock);
    const preflight = new Preflight(engine, l1, steady, secondLookMs);
    const refused = new RefusedSlots(engine, l1, steady, options.signingMs, secondLookMs);
    const checks = [preflight, ...mirrors];
    const consents = new Consents(options);
    this.consents = consents;
    this.passes = {
      follow: (signal?: AbortSignal) =>
        this.#tellingOnce(async () => {
          const there = await l1.state();
          const isOne = await engine.operator.compareState(there);
          this.#compared = true;
          await follower.follow(signal);
          const agreed = await agreedBlock(there, options);
          if (agreed !== null) {
            await follower.readAgain(agreed, signal);
            if ((await agreedBlock(there, options)) !== null)
              throw new MintmarkError(
                "l1_failed",
                "L1 has commits that the node's logs leave out; they are asked for again",
              );
          }
          // Now the events of all commits are recorded.
          if (!isOne) await engine.operator.compareState(await l1.state());
          return 0;
        }),
      seal: () =>
        this.#ifAgreed(async () => {
          await this.chooseRollupData();
          return sealDue();
        }),
      assets: (signal?: AbortSignal) => this.#ifAgreed(() => preflight.check(signal)),
      consents: (signal?: AbortSignal) => this.#ifAgreed(() => consents.gather(signal)),
      commit: (signal?: AbortSignal) =>
        this.#ifAgreed(async () => {
          const [sealed, onL1] = [engine.batches.state(), await engine.batches.committedState()];
          if (MODES.every((mode) => countOf(mode, sealed) <= countOf(mode, onL1))) return 0;
          // The next commit's history follows from the recorded commits. So nothing is committed
          // while L1 cannot be followed.
          await l1.earlierMined(signal);
          await follower.follow(signal);
          const attempts = new Attempts(signal);
          const commit = { engine, l1, committee, consents, checks, refused, signal };
          const committed = await commitSealed(commit, attempts);
          attempts.end();
          return committed;
        }),
      withdraw: (signal?: AbortSignal) => this.#ifAgreed(() => sender.send(signal)),
    };
    this.words = {
      follow: async () => `${(await l1.block("latest"))?.hash}`,
      withdraw: async () => `${this.#compared} ${await sender.queue.word()}`,
    };
  }

  /**
   * Compares and follows, seals, examines assets, commits, follows, withdraws. A failing step does
   * not stop the others: their errors are thrown at the end.
   */
  async round(signal?: AbortSignal): Promise<Round> {
    const { follow, seal, assets, consents, commit, withdraw } = this.passes;
    const attempts = new Attempts(signal);
    await follow(signal);
    const sealed = await seal();
    await attempts.of(() => assets(signal));
    await attempts.of(() => consents(signal));
    const committed = await attempts.of(() => commit(signal));
    await follow(signal);
    const withdrawn = await attempts.of(() => withdraw(signal));
    attempts.end();
    return { sealed, committed, withdrawn };
  }

  /**
   * Decides once where the data of rollup batches go, which otherwise the first round does. Rejects
   * with `kzg_unavailable` when `rollupData` asks for blobs that cannot be sent, and with
   * `l1_failed`.
   */
  async chooseRollupData(): Promise<void> {
    const { engine, l1, rollupData = "auto" } = this.options;
    if (!this.#rollupDataIsChosen) await placeRollupData(engine, l1, rollupData);
    this.#rollupDataIsChosen = true;
  }

  /** Like {@link Rounds.run}. Asks no issuer after it has resolved. */
  override async run(signal: AbortSignal): Promise<void> {
    await super.run(signal);
    this.consents.stop();
  }

  async #ifAgreed(pass: () => Promise<number>): Promise<number> {
    return this.#compared && this.#isAgreed ? this.#tellingOnce(pass) : 0;
  }

  async #tellingOnce(pass: () => Promise<number>): Promise<number> {
    if (!this.#isDiverged) this.#toldOfDivergence = false;
    else if (this.#toldOfDivergence) return 0;
    try {
      return await pass();
    } catch (error) {
      this.#toldOfDivergence = this.#isDiverged;
      throw error;
    }
  }

  /** False while L1 contradicts the store, also before a second look has confirmed it. */
  get #isAgreed(): boolean {
    try {
      this.options.engine.operator.requirePromising();
      return true;
    } catch {
      return false;
    }
  }

  get #isDiverged(): boolean {
    return this.options.engine.operator.divergence() !== null;
  }
}

/**
 * The block from which logs left out commits that L1 has: that of the last recorded one. Null when
 * all are recorded.
 */
async function agreedBlock(
  there: L1State,
  { engine: { batches }, fromBlock }: Pick<SettlerOptions, "engine" | "fromBlock">,
): Promise<bigint | null> {
  const here = await batches.committedState();
  let agreed: bigint | null = null;
  for (const mode of MODES) {
    const count = countOf(mode, here);
    if (count >= countOf(mode, there)) continue;
    const last = count === 0 ? null : (await batches.get(mode, count - 1)).l1BlockNumber;
    agreed = least(agreed ?? last ?? fromBlock, last ?? fromBlock);
  }
  return agreed;
}

/** Most batches of transfers that one pass seals. */
const MOST_TRANSFER_BATCHES = 16;

/**
 * Seals open batches that are old enough, and waiting transfers by the policy of `zk-rollup`. The
 * age counts from the first mint or transfer, or from when this process first saw it if that is
 * longer ago by the clocks: a clock behind the journal's makes the former useless.
 *
 * @param monotonic - a monotonic clock in ms
 * @returns a pass, which returns the number of sealed batches
 */
export function sealingOf(
  { batches, operator }: SettlementPort,
  { maxAgeMs = 60_000 }: SealingPolicy,
  clock: Clock,
  monotonic: Clock = () => performance.now(),
): () => Promise<number> {
  const seen = new Map<Mode | "transfers", { readonly first: number; readonly at: number }>();
  /** @param first - identifies the open batch; a new value restarts the timer */
  const isDue = (kind: Mode | "transfers", first: number, openedAt: number) => {
    const now = monotonic();
    const known = seen.get(kind);
    const { at } = known?.first === first ? known : { at: now };
    seen.set(kind, { first, at });
    const allowed =
      typeof maxAgeMs === "number" ? maxAgeMs : maxAgeMs[kind === "transfers" ? "zk-rollup" : kind];
    return Math.max(clock() - openedAt, now - at) >= allowed;
  };
  return async () => {
    let sealed = 0;
    for (const mode of MODES) {
      const { batchNumber, vaultCount, timestamps } = batches.getOpen(mode);
      if (vaultCount === 0 || timestamps.open === undefined) continue;
      if (isDue(mode, batchNumber, timestamps.open) && (await operator.seal(mode)) !== null)
        sealed++;
    }
    const since = await operator.waitingTransfersSince();
    if (since === null || !isDue("transfers", since, since)) return sealed;
    // The later ones are younger, and each batch holds only what one commit carries.
    for (
      let made = 0;
      made < MOST_TRANSFER_BATCHES && (await operator.sealTransfers()) !== null;
      made++
    )
      sealed++;
    return sealed;
  };
}

/**
 * Chains that take blob transactions: Ethereum, Sepolia, Hoodi, Gnosis, Chiado, and local chains.
 * Others can have the fields and the precompile and still refuse them, and batches in blobs could
 * then never be committed.
 */
const BLOB_CHAINS: ReadonlySet<bigint> = new Set([
  1n,
  11_155_111n,
  560_048n,
  100n,
  10_200n,
  1_337n,
  31_337n,
  31_338n,
]);

/** Decides where the engine's rollup batches go. The next seal follows it. */
export async function placeRollupData(
  { operator, settlement }: SettlementPort,
  l1: Pick<L1Committer, "takesBlobs">,
  wanted: RollupData,
): Promise<void> {
  const isAsked = wanted === "blobs" || (wanted === "auto" && BLOB_CHAINS.has(settlement.chainId));
  const takesBlobs = isAsked && (await l1.takesBlobs());
  if (wanted === "blobs" && !takesBlobs) {
    const detail =
      "The settlement chain takes no blobs, or native KZG code does not run here. Choose `auto`.";
    throw new MintmarkError("kzg_unavailable", detail);
  }
  operator.placeInBlobs(settlement.chainId, takesBlobs);
}
