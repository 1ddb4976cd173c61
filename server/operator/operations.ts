import type { z } from "zod";
import { type Engine, type Issue, MintmarkError } from "../../core/index.ts";
import { LEDGER_OPERATIONS } from "./ledger.ts";
import type { Operation, Running } from "./operation.ts";
import { SETTLEMENT_OPERATIONS } from "./settlement.ts";
import { TENANT_OPERATIONS } from "./tenants.ts";

/** All that an operator can do to an engine, by name; the same over a socket to a running server and on a store of one's own. */
const OPERATIONS = { ...TENANT_OPERATIONS, ...LEDGER_OPERATIONS, ...SETTLEMENT_OPERATIONS } as const;

export type OperationName = keyof typeof OPERATIONS;

/**
 * Does one thing and resolves with JSON.
 *
 * @param name - untrusted
 * @param input - untrusted; checked against the operation's schema
 * @throws MintmarkError `validation_failed` with every bad field, or whatever the engine refuses with
 */
export async function operate(engine: Engine, name: string, input: unknown, running: Running): Promise<unknown> {
  if (!Object.hasOwn(OPERATIONS, name)) {
    throw new MintmarkError("validation_failed", "The server knows no such operation; is it of another version?");
  }
  const { input: schema, run }: Operation = OPERATIONS[name as OperationName];
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw new MintmarkError("validation_failed", undefined, { issues: issuesOf(parsed.error) });
  return run(engine, parsed.data, running);
}

function issuesOf({ issues }: z.ZodError): Issue[] {
  return issues.map(({ path, message }) => {
    return { pointer: `/${path.map(String).join("/")}`, code: "validation_failed", detail: message };
  });
}
