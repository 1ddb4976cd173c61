import { type Engine, MintmarkError } from "../../core/index.ts";

const claimed = new WeakMap<Engine, Refusal>();

/** What others are told while an engine has a settler. */
export interface Refusal {
  readonly code: MintmarkError["code"];
  readonly detail: string;
}

/**
 * Makes the caller an engine's only settler until it is disposed: two with one key would take each other's nonces. Throws what the present
 * one has others told.
 */
export function claimSettling(engine: Engine, refusal: Refusal): Disposable {
  const taken = claimed.get(engine);
  if (taken !== undefined) throw new MintmarkError(taken.code, taken.detail);
  claimed.set(engine, refusal);
  return { [Symbol.dispose]: () => void claimed.delete(engine) };
}

/** Of an engine that a process settles for as long as it runs. */
export const SETTLES_BY_ITSELF: Refusal = {
  code: "validation_failed",
  detail:
    "The server settles by itself, and commits soon whatever is sealed; `mintmark batches status` shows when it has.",
};
