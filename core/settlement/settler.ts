import { type Backoff, repeat } from "../backoff.ts";
import type { Engine } from "../engine.ts";
import { MODES } from "../model.ts";
import type { Clock, Committee, L1Committer, L1Reader, L1Tokens } from "../ports.ts";
import { Checkpoints } from "./checkpoints.ts";
import { commitSealed } from "./commit.ts";
import { Preflight } from "./preflight.ts";
import { RefusedSlots } from "./refused-slots.ts";
import { type SealingPolicy, sealDue } from "./seal.ts";
import { SecondLook } from "./second-look.ts";
import { applyL1Events } from "./watch.ts";
import { WithdrawalSender } from "./withdraw.ts";

export interface SettlerOptions {
  readonly engine: Engine;
  readonly l1: L1Reader & L1Committer & L1Tokens;
  readonly committee: Committee;
  /** Block of the settlement contract's deployment. */
  readonly fromBlock: bigint;
  /** Open them over a store of their own, so that a reorganisation while the process is down is seen; default in memory. */
  readonly checkpoints?: Checkpoints;
  readonly sealing?: SealingPolicy;
  /** Milliseconds between rounds; default 2 000. */
  readonly intervalMs?: number;
  /** Milliseconds that a node may be behind what was read before, until a shorter chain is believed; default 15 000. */
  readonly lagMs?: number;
  readonly clock?: Clock;
  /** Told what went wrong in a round; the next one tries again, later and later. */
  readonly onError?: (error: unknown) => void;
}

export interface Round {
  readonly sealed: number;
  readonly committed: number;
  readonly withdrawn: number;
}

const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/** Brings an engine's batches and withdrawals to L1, and L1's events to the engine. One per engine. */
export class Settler {
  readonly #options: SettlerOptions;
  readonly #checkpoints: Checkpoints;
  readonly #secondLook = new SecondLook();
  readonly #preflight: Preflight;
  readonly #refused: RefusedSlots;
  readonly #withdrawals: WithdrawalSender;
  #lastError: unknown = null;

  constructor(options: SettlerOptions) {
    this.#options = options;
    this.#checkpoints = options.checkpoints ?? new Checkpoints();
    const { engine, l1, clock = Date.now } = options;
    this.#preflight = new Preflight(engine, l1, clock);
    this.#refused = new RefusedSlots(engine, l1);
    this.#withdrawals = new WithdrawalSender(engine, l1, clock);
  }

  /** What went wrong in the last round; null when it went well. For readiness checks. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /**
   * One pass of everything there is to do: seal, watch, look at what L1 would refuse, commit, watch, withdraw, watch. A mode that cannot be committed, and
   * withdrawals that cannot be sent, do not hold up the rest: their errors are thrown at the end.
   */
  async round(signal?: AbortSignal): Promise<Round> {
    const { engine, l1, committee, fromBlock, sealing = {}, lagMs = 15_000, clock = Date.now } = this.#options;
    const known = { checkpoints: this.#checkpoints, secondLook: this.#secondLook };
    const watching = { engine, portal: l1, ...known, fromBlock, lagMs, ...(signal && { signal }) };
    const looking = { preflight: this.#preflight, refused: this.#refused };
    const failures: unknown[] = [];
    const attempt = async (step: () => Promise<number>): Promise<number> => {
      try {
        return await step();
      } catch (error) {
        signal?.throwIfAborted();
        failures.push(error);
        return 0;
      }
    };
    const sealed = await sealDue(engine, sealing, clock());
    await applyL1Events(watching);
    await attempt(() => this.#preflight.lookAtAssets());
    let committed = 0;
    for (const mode of MODES) {
      committed += await attempt(() =>
        commitSealed(mode, { engine, l1, committee, ...looking, ...(signal && { signal }) }),
      );
    }
    if (committed > 0) await applyL1Events(watching);
    const withdrawn = await attempt(() => this.#withdrawals.sendReady(signal));
    if (withdrawn > 0) await applyL1Events(watching);
    if (failures.length > 1) throw new AggregateError(failures, failures.map(messageOf).join("; "));
    if (failures.length === 1) throw failures[0];
    return { sealed, committed, withdrawn };
  }

  /** Rounds until the signal aborts; then resolves. A failing round is told to `onError` and repeated with back-off. */
  async run(signal: AbortSignal): Promise<void> {
    const { intervalMs = 2_000, onError = () => {} } = this.#options;
    const onRound = (error: unknown) => {
      this.#lastError = error;
      if (error !== null) onError(error);
    };
    return repeat((aborted) => this.round(aborted), { intervalMs, backoff: BACKOFF, onRound }, signal);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
