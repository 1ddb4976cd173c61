import { type Engine, type Issue, MintmarkError } from "../../core/index.ts";
import { APPLICATION_OPERATIONS } from "./application.ts";
import { LEDGER_OPERATIONS } from "./ledger.ts";
import type { Operation, Running } from "./operation.ts";
import { SETTLEMENT_OPERATIONS } from "./settlement.ts";
import { TENANT_OPERATIONS } from "./tenants.ts";

/**
 * All that can be done to an engine from the command line, by name: `keys.issue` is the command `mintmark keys issue`.
 * It is the same over a socket to a running server and on a store that no server has open.
 */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...TENANT_OPERATIONS,
  ...LEDGER_OPERATIONS,
  ...SETTLEMENT_OPERATIONS,
  ...APPLICATION_OPERATIONS,
};

/**
 * Does one thing and resolves with JSON.
 *
 * @param name - untrusted
 * @param input - untrusted; checked against the operation's schema
 * @throws MintmarkError `validation_failed` with every bad field, or whatever the engine refuses with
 */
export async function operate(engine: Engine, name: string, input: unknown, running: Running): Promise<unknown> {
  const found = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
  if (found === undefined) {
    throw new MintmarkError("validation_failed", "The server knows no such operation; is it of another version?");
  }
  return found.run(engine, requireInput(found, input), running);
}

/**
 * Reads an operation's input, and throws `validation_failed` with every bad field.
 *
 * @param except - fields that are not there yet
 */
export function requireInput({ input }: Operation, given: unknown, except: readonly string[] = []): unknown {
  const { data, error } = input.safeParse(given);
  const issues = (error?.issues ?? [])
    .filter(({ path: [field] }) => !except.includes(String(field)))
    .map(({ path, message }): Issue => {
      return { pointer: `/${path.map(String).join("/")}`, code: "validation_failed", detail: message };
    });
  if (issues.length > 0) throw new MintmarkError("validation_failed", undefined, { issues });
  return data;
}
