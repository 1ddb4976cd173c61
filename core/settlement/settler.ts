import type { Engine } from "../engine.ts";
import type { Committee, L1Committer, L1Reader, L1Tokens } from "../ports.ts";
import { type BatchLook, commitSealed } from "./commit.ts";
import { Exits, type FollowOptions } from "./exits.ts";
import { Preflight } from "./preflight.ts";
import { RefusedSlots } from "./refused-slots.ts";
import { Attempts, Rounds, type RoundsOptions } from "./rounds.ts";
import { Sealing, type SealingPolicy } from "./seal.ts";

export interface SettlerOptions extends RoundsOptions, FollowOptions {
  readonly engine: Engine;
  readonly l1: L1Reader & L1Committer & L1Tokens;
  readonly committee: Committee;
  /** What looks at tokens of other chains; must neither reject nor take long. */
  readonly mirrors?: readonly BatchLook[];
  readonly sealing?: SealingPolicy;
}

export interface Round {
  readonly sealed: number;
  readonly committed: number;
  readonly withdrawn: number;
}

/** Brings an engine's batches, and the withdrawals of its chain's tokens, to L1, and L1's events to the engine. One per engine. */
export class Settler extends Rounds<Round> {
  readonly #options: SettlerOptions;
  readonly #sealing: Sealing;
  readonly #exits: Exits;
  readonly #preflight: Preflight;
  readonly #refused: RefusedSlots;
  /** A difference that only an operator can mend is thrown once, and nothing is done until then. */
  #toldOfDivergence = false;

  constructor(options: SettlerOptions) {
    super(options);
    const { engine, l1, clock = Date.now } = options;
    this.#options = options;
    this.#sealing = new Sealing(engine, options.sealing ?? {}, clock);
    this.#exits = new Exits(engine, l1, options);
    this.#preflight = new Preflight(engine, l1, clock);
    this.#refused = new RefusedSlots(engine, l1);
  }

  /**
   * Compares, watches, seals, looks at what L1 would refuse, commits, watches, withdraws, watches. A mode that cannot be committed, and withdrawals that
   * cannot be sent, do not hold up the rest: their errors are thrown at the end.
   */
  async round(signal?: AbortSignal): Promise<Round> {
    const { engine } = this.#options;
    if (engine.divergence() === null) this.#toldOfDivergence = false;
    else if (this.#toldOfDivergence) return { sealed: 0, committed: 0, withdrawn: 0 };
    try {
      return await this.#round(signal);
    } finally {
      this.#toldOfDivergence = engine.divergence() !== null;
    }
  }

  async #round(signal?: AbortSignal): Promise<Round> {
    const { engine, l1, committee, mirrors = [] } = this.#options;
    const looks = [this.#preflight, ...mirrors];
    const attempts = new Attempts(signal);
    await engine.compareState(await l1.state());
    await this.#exits.follow(signal);
    const sealed = await this.#sealing.sealDue();
    await attempts.of(() => this.#preflight.lookAtAssets());
    const options = { engine, l1, committee, looks, refused: this.#refused, ...(signal && { signal }) };
    const committed = await attempts.of(() => commitSealed(options, attempts));
    if (committed > 0) await this.#exits.follow(signal);
    const withdrawn = await attempts.of(() => this.#exits.send(signal));
    attempts.end();
    return { sealed, committed, withdrawn };
  }
}
