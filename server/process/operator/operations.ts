import { type Engine, type Issue, MintmarkError } from "../../../core/index.ts";
import { check } from "../../routes/api/endpoint.ts";
import { APPLICATION_OPERATIONS } from "./application.ts";
import { LEDGER_OPERATIONS } from "./ledger.ts";
import type { Operation, Running } from "./operation.ts";
import { SETTLEMENT_OPERATIONS } from "./settlement.ts";
import { STORE_OPERATIONS } from "./store.ts";
import { TENANT_OPERATIONS } from "./tenants.ts";

/**
 * All operations by name: `keys.issue` is the command `mintmark keys issue`, over a socket or on a
 * free store.
 */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...TENANT_OPERATIONS,
  ...LEDGER_OPERATIONS,
  ...STORE_OPERATIONS,
  ...SETTLEMENT_OPERATIONS,
  ...APPLICATION_OPERATIONS,
};

/**
 * Runs one operation; its name and its input are untrusted. Rejects with `validation_failed`, or as
 * the engine does.
 */
export async function operate(
  engine: Engine,
  name: string,
  input: unknown,
  running: Running,
): Promise<unknown> {
  const found = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
  if (found === undefined) {
    throw new MintmarkError(
      "validation_failed",
      "The server does not have this operation. Check its version.",
    );
  }
  return found.run(engine.actingAsOperator(), requireInput(found, input), running);
}

/**
 * Reads an operation's input. Throws `validation_failed` with every bad field, but for those of
 * `except`.
 */
export function requireInput(
  { input }: Operation,
  given: unknown,
  except: readonly string[] = [],
): unknown {
  const found: Issue[] = [];
  const data = check(input, given, [], found);
  const issues = found.filter(({ pointer }) => !except.includes(pointer.slice(1)));
  if (issues.length > 0) throw new MintmarkError("validation_failed", undefined, { issues });
  return data;
}
