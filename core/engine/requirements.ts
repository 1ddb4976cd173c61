import { MintmarkError } from "../errors.ts";
import { ENVIRONMENTS, type Environment, MODES, type Mode, type Principal, type Scope } from "../model.ts";

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
