import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";
import { parseAst } from "vitest/node";

/**
 * Prints which functions of `core/` get the ledger, in the order of their first calls, as JSON: for
 * a withdrawal request, and for the close of a batch of transfers.
 */

/** `file name` of each function. */
export interface Ways {
  readonly withdrawal: readonly string[];
  readonly close: readonly string[];
}

const ROOT = new URL("../../..", import.meta.url).href;

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The named functions and methods of a module, with where their bodies begin. */
function functionsIn(node: unknown, found: { name: string; at: number }[] = []) {
  if (Array.isArray(node)) for (const one of node) functionsIn(one, found);
  if (typeof (node as Node | null)?.type !== "string") return found;
  const { type, kind, id, key, value, body } = node as Node;
  const add = (name: unknown, of: unknown) =>
    found.push({ name: String((name as Node).name), at: ((of as Node).start as number) + 1 });
  if (type === "FunctionDeclaration") add(id, body);
  if (type === "MethodDefinition" && kind === "method") add(key, (value as Node).body);
  for (const part of Object.values(node as Node)) functionsIn(part, found);
  return found;
}

registerHooks({
  load(url, context, next) {
    const file = url.startsWith(ROOT) ? url.slice(ROOT.length) : "";
    if (!/^core\/.*\.ts$/.test(file)) return next(url, context);
    let source = stripTypeScriptTypes(readFileSync(fileURLToPath(url), "utf8"));
    for (const { name, at } of functionsIn(parseAst(source)).sort((a, b) => b.at - a.at)) {
      const call = `globalThis.called(${JSON.stringify(`${file} ${name}`)}, this, arguments);`;
      source = `${source.slice(0, at)}${call}${source.slice(at)}`;
    }
    return { format: "module", source, shortCircuit: true };
  },
});

let way = new Set<string>();
let isLedger: (value: unknown) => boolean = () => false;
Object.assign(globalThis, {
  called(name: string, self: unknown, given: Iterable<unknown>) {
    if ([self, ...given].some(isLedger)) way.add(name);
  },
});
// Imported here, because the hook must see them.
const { Ledger } = await import("../../../core/ledger/ledger.ts");
const { EngineContext } = await import("../../../core/ledger/context.ts");
const { OWNERS } = await import("./fixture.ts");
const { signedList } = await import("./l1-fixture.ts");
const { signedTransfers, transferable } = await import("./transfers-fixture.ts");

const made = await transferable();
const { engine, tenant } = made;

/** The functions that get the ledger while the last of these works. The others come before it. */
async function wayOf(...works: readonly (() => Promise<unknown>)[]): Promise<string[]> {
  for (const work of works) {
    // Listeners of what came before get the ledger, too.
    await new Promise((resolve) => setTimeout(resolve, 50));
    way = new Set();
    isLedger = (value) => value instanceof Ledger || value instanceof EngineContext;
    await work();
    isLedger = () => false;
  }
  return [...way];
}
const withdraw = (vaultId: bigint) => async () =>
  engine.withdrawals.request(tenant.principal, await signedList(made, [vaultId]));
const give = (vaultId: bigint) => async () => {
  const to = OWNERS[1].address.toLowerCase() as `0x${string}`;
  const request = await signedTransfers(made, [{ vaultId, amount: 0n, to }]);
  return engine.transfers.request(tenant.principal, request);
};
const close = () => engine.operator.sealTransfers();
const ways: Ways = {
  withdrawal: await wayOf(withdraw(made.items)),
  close: await wayOf(give(made.units), close, give(made.token), close),
};
process.stdout.write(JSON.stringify(ways));
await engine.close();
process.exit(0);
