import { type Engine, MintmarkError } from "../../../core/index.ts";

const claimed = new WeakMap<AbortSignal, Refusal>();

/** The error for others while an engine has a settler. */
export interface Refusal {
  readonly code: MintmarkError["code"];
  readonly detail: string;
}

/** Makes the caller an engine's only settler until disposed, because two would use the same nonces. */
export function claimSettling(engine: Engine, refusal: Refusal): Disposable {
  const taken = claimed.get(engine.ended);
  if (taken !== undefined) throw new MintmarkError(taken.code, taken.detail);
  claimed.set(engine.ended, refusal);
  return { [Symbol.dispose]: () => void claimed.delete(engine.ended) };
}

/** For an engine that a process settles as long as it runs. */
export const SETTLES_BY_ITSELF: Refusal = {
  code: "validation_failed",
  detail:
    "The server settles by itself and will soon commit all sealed batches; `mintmark batches status` shows their progress.",
};
