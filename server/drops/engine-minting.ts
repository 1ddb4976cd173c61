import { type Engine, MintmarkError, type Principal } from "../../core/index.ts";
import { backoffDelay, pause } from "../../core/internal.ts";
import type { Turns } from "../http/turns.ts";
import { mintToWire } from "../wire/wire.ts";
import { type MintedRows, type Minting, RequestRefused } from "./drop.ts";

/** Codes of temporary failures while the server runs. */
const PASSING: ReadonlySet<string> = new Set([
  "backpressure",
  "l1_not_compared",
  "idempotency_in_progress",
  "journal_unavailable",
]);
/** Codes of failures that end with the next start, which resumes the drop. */
const ENDING: ReadonlySet<string> = new Set(["engine_closed", "store_failed", "not_leader"]);
const BACKOFF = { firstMs: 250, maxMs: 10_000 };

/** The engine of this server has ended. */
export class EngineEnded extends Error {
  override readonly name = "EngineEnded";
}

/** Mints in this server's own engine, with the key that uploaded the drop. A revoked key ends its drops. */
export class EngineMinting implements Minting {
  readonly #engine: Pick<Engine, "mint" | "mints">;
  readonly #turns: Turns;
  readonly #principal: Principal;
  readonly #dryRun: boolean;
  readonly #signal: AbortSignal;

  constructor(
    { engine, turns }: { readonly engine: Pick<Engine, "mint" | "mints">; readonly turns: Turns },
    principal: Principal,
    dryRun: boolean,
    signal: AbortSignal,
  ) {
    this.#engine = engine;
    this.#turns = turns;
    this.#principal = principal;
    this.#dryRun = dryRun;
    this.#signal = signal;
  }

  async mint(body: object, idempotencyKey: string): Promise<MintedRows | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#turns.turn(this.#principal.keyId);
        if (!this.#dryRun) return await mintToWire(await this.#engine.mint(this.#principal, body, { idempotencyKey }));
        await this.#engine.mints.check(this.#principal, body);
        return null;
      } catch (error) {
        if (!(error instanceof MintmarkError)) throw error;
        const { code, message: detail, issues } = error;
        if (ENDING.has(code)) throw new EngineEnded(detail, { cause: error });
        if (!PASSING.has(code)) throw new RequestRefused({ code, detail, issues });
      }
      await pause(backoffDelay(BACKOFF, attempt), this.#signal);
    }
  }
}
