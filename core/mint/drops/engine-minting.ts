import { backoffDelay, pause } from "../../backoff.ts";
import { MintmarkError } from "../../errors.ts";
import type { Principal } from "../../model.ts";
import { countMints } from "../form.ts";
import type { MintResult } from "../mint-results.ts";
import type { MintOptions, Mints } from "../mints.ts";
import type { RequestLimits } from "../reader.ts";
import { type Minting, RequestRefused } from "./drop.ts";

/** Codes of temporary failures while the engine runs. */
const PASSING: ReadonlySet<string> = new Set([
  "backpressure",
  "l1_not_compared",
  "idempotency_in_progress",
  "journal_unavailable",
]);
/** Codes of failures that end with the next start, which resumes the drop. */
const ENDING: ReadonlySet<string> = new Set(["engine_closed", "store_failed", "not_leader"]);
const BACKOFF = { firstMs: 250, maxMs: 10_000 };

/** The engine of this process has ended. */
export class EngineEnded extends Error {
  override readonly name = "EngineEnded";
}

/** The parts of an engine that mint a drop. */
export interface DropEngine {
  mint(principal: Principal, request: unknown, options?: MintOptions): Promise<MintResult>;
  readonly mints: Pick<Mints, "check">;
  readonly limits: RequestLimits;
}

/**
 * Waits before each request of a drop. `tokens` is the number of its tokens; 0 for a request that is sent again. Rejects
 * with the signal's reason.
 */
export type Pace = (principal: Principal, tokens: number, signal: AbortSignal) => Promise<void>;

/** Mints in an engine of this process, with the key that uploaded the drop. A revoked key ends its drops. */
export function engineMinting(
  engine: DropEngine,
  pace: Pace,
  principal: Principal,
  dryRun: boolean,
  signal: AbortSignal,
): Minting {
  return {
    async mint(body, idempotencyKey) {
      const tokens = Math.min(countMints(body), engine.limits.mintsPerRequest);
      for (let attempt = 1; ; attempt++) {
        await pace(principal, attempt === 1 ? tokens : 0, signal);
        try {
          if (!dryRun) return await engine.mint(principal, body, { idempotencyKey });
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
