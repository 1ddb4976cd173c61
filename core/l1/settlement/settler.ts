import type { IssuerClient } from "../../guards/issuer/index.ts";
import type { Address } from "../../model.ts";
import type { SettlementPort } from "../../operator.ts";
import type { Committee, IssuerReader, L1Committer, L1Reader, L1Tokens } from "../../ports.ts";
import { type BatchCheck, commitSealed, isUncommitted } from "./commit.ts";
import { Consents } from "./consents.ts";
import { Follower, type FollowOptions } from "./follower.ts";
import { Preflight } from "./preflight.ts";
import { RefusedSlots } from "./refused-slots.ts";
import { placeRollupData, type RollupData } from "./rollup-data.ts";
import { Attempts, Rounds, type RoundsOptions, steadyClock } from "./rounds.ts";
import { Sealing, type SealingPolicy } from "./seal.ts";
import { WithdrawalSender } from "./withdrawal-sender.ts";

/** An engine, its chain and committee, and the timing. */
export interface SettlerOptions extends RoundsOptions, FollowOptions {
  readonly engine: SettlementPort;
  readonly l1: L1Reader & L1Committer & L1Tokens & IssuerReader;
  readonly committee: Committee;
  /** Examines tokens of other chains. Must neither reject nor take long. */
  readonly mirrors?: readonly BatchCheck[];
  readonly sealing?: SealingPolicy;
  /** The tokens' issuers; default none. L1 leaves the assets of all other issuers out of each batch. */
  readonly issuers?: readonly IssuerClient[];
  /** Where the data of rollup batches go; default `auto`: into blobs where {@link L1Committer.takesBlobs} says so. */
  readonly rollupData?: RollupData;
  /** Milliseconds that a batch waits for its issuers; default 30 000. */
  readonly consentMs?: number;
  /** Milliseconds that rollup batches wait for members to sign transfers before them; default 600 000. */
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
 * Brings an engine's batches and withdrawals to L1, and L1's events to the engine. Seals and sends nothing until the
 * engine agrees with L1. One per engine.
 *
 * @example
 * await new Settler({ engine, l1, committee, fromBlock }).run(signal);
 */
export class Settler extends Rounds<Round, SettlerWork> {
  /** The issuers' answers about waiting batches. */
  readonly consents: Consents;
  protected readonly passes;
  readonly #engine: SettlementPort;
  readonly #chooseRollupData: () => Promise<void>;
  #rollupDataIsChosen = false;
  #compared = false;
  /** Only an operator can mend a difference between engine and L1, so it is thrown once. */
  #toldOfDivergence = false;

  constructor(options: SettlerOptions) {
    super(options);
    const { engine, l1, committee, mirrors = [], sealing = {}, clock = Date.now } = options;
    this.#engine = engine;
    const steady = steadyClock(options);
    const follower = new Follower(engine, l1, options);
    const sender = new WithdrawalSender(engine, l1, follower, steady);
    const due = new Sealing(engine, sealing, clock);
    this.#chooseRollupData = () => placeRollupData(engine, l1, options.rollupData ?? "auto");
    const preflight = new Preflight(engine, l1, steady);
    const refused = new RefusedSlots(engine, l1, steady, options.signingMs);
    const checks = [preflight, ...mirrors];
    const { issuers = [], consentMs, onIssuerRefusal } = options;
    const consents = new Consents({ engine, l1, issuers, waitMs: consentMs, onRefusal: onIssuerRefusal });
    this.consents = consents;
    this.passes = {
      follow: (signal?: AbortSignal) =>
        this.#tellingOnce(async () => {
          const isOne = await engine.operator.compareState(await l1.state());
          this.#compared = true;
          await follower.follow(signal);
          // Now the events of all commits are recorded.
          if (!isOne) await engine.operator.compareState(await l1.state());
          return 0;
        }),
      seal: () =>
        this.#ifAgreed(async () => {
          await this.chooseRollupData();
          return due.sealDue();
        }),
      assets: (signal?: AbortSignal) =>
        this.#ifAgreed(async () => (await preflight.checkAssets(signal)) + (await preflight.checkFinal(signal))),
      consents: (signal?: AbortSignal) => this.#ifAgreed(() => consents.gather(signal)),
      commit: (signal?: AbortSignal) =>
        this.#ifAgreed(async () => {
          if (!(await isUncommitted(engine))) return 0;
          // The next commit's history follows from the recorded commits. So nothing is committed while L1 cannot be
          // followed.
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
  }

  /**
   * Compares and follows, seals, examines assets, commits, follows, withdraws. A failing step does not stop the others:
   * their errors are thrown at the end.
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
   * Decides once where the data of rollup batches go, which otherwise the first round does. Rejects with
   * `kzg_unavailable` when `rollupData` asks for blobs that cannot be sent, and with `l1_failed`.
   */
  async chooseRollupData(): Promise<void> {
    if (!this.#rollupDataIsChosen) await this.#chooseRollupData();
    this.#rollupDataIsChosen = true;
  }

  /** Like {@link Rounds.run}. Asks no issuer after it has resolved. */
  override async run(signal: AbortSignal): Promise<void> {
    await super.run(signal);
    this.consents.stop();
  }

  async #ifAgreed(pass: () => Promise<number>): Promise<number> {
    return this.#compared && this.#engine.operator.divergence() === null ? this.#tellingOnce(pass) : 0;
  }

  async #tellingOnce(pass: () => Promise<number>): Promise<number> {
    if (this.#engine.operator.divergence() === null) this.#toldOfDivergence = false;
    else if (this.#toldOfDivergence) return 0;
    try {
      return await pass();
    } catch (error) {
      this.#toldOfDivergence = this.#engine.operator.divergence() !== null;
      throw error;
    }
  }
}
