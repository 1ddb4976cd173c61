import { type Engine, MintmarkError, type Principal } from "../../../core/index.ts";
import { backoffDelay, countMints, pause } from "../../../core/internal.ts";
import type { TokenBuckets } from "../../http/access/rate-limit.ts";
import type { Turns } from "../../http/turns.ts";
import { mintToWire } from "../../schemas/wire.ts";
import { type Minting, RequestRefused } from "./drop.ts";

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

interface Service {
  readonly engine: Pick<Engine, "mint" | "mints" | "limits">;
  readonly turns: Turns;
  /** The rate limit of each API key. */
  readonly rate: TokenBuckets;
}

/** Mints in this server's own engine, with the key that uploaded the drop. A revoked key ends its drops. */
export function engineMinting(
  { engine, turns, rate }: Service,
  principal: Principal,
  dryRun: boolean,
  signal: AbortSignal,
): Minting {
  /** Rows cost their key what a mint request costs. A drop waits where a request would be refused. */
  const pay = async (units: number): Promise<void> => {
    for (;;) {
      const { granted, retrySeconds } = rate.take(principal.keyId, units, principal.applicationId);
      if (granted) return;
      await pause(1_000 * retrySeconds, signal);
    }
  };
  return {
    async mint(body, idempotencyKey) {
      await pay(Math.min(countMints(body), engine.limits.mintsPerRequest));
      for (let attempt = 1; ; attempt++) {
        try {
          await turns.turn(principal.applicationId);
          if (!dryRun) return await mintToWire(await engine.mint(principal, body, { idempotencyKey }));
          await engine.mints.check(principal, body);
          return null;
        } catch (error) {
          if (!(error instanceof MintmarkError)) throw error;
          const { code, message: detail, issues } = error;
          if (ENDING.has(code)) throw new EngineEnded(detail, { cause: error });
          if (!PASSING.has(code)) throw new RequestRefused({ code, detail, issues });
        }
        await pause(backoffDelay(BACKOFF, attempt), signal);
      }
    },
  };
}
