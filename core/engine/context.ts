import { MintmarkError } from "../errors.ts";
import type { Cursors } from "../ledger/cursor.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { ENVIRONMENTS, type Environment, MODES, type Mode, type Principal, type Scope } from "../model.ts";

/** What every method of an engine works on. */
export class EngineContext {
  readonly cursors: Cursors;
  readonly #ledger: Ledger;

  constructor(ledger: Ledger, cursors: Cursors) {
    this.#ledger = ledger;
    this.cursors = cursors;
  }

  /** Throws `engine_closed`, or `store_failed` once its store has failed. */
  get ledger(): Ledger {
    this.#ledger.writer.ensureUsable();
    return this.#ledger;
  }
}

export function requireScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.includes(scope))
    throw new MintmarkError("scope_missing", `The key does not carry the scope ${scope}.`);
}

export function requireEnvironment(environment: Environment): void {
  if (ENVIRONMENTS.includes(environment)) return;
  throw new MintmarkError("validation_failed", `environment must be one of ${ENVIRONMENTS.join(", ")}`);
}

export function requireMode(mode: Mode): Mode {
  if (!MODES.includes(mode)) throw new MintmarkError("validation_failed", `mode must be one of ${MODES.join(", ")}`);
  return mode;
}
