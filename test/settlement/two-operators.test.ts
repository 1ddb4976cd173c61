import fc from "fast-check";
import { MemoryLevel } from "memory-level";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/guards/committee/index.ts";
import { type Engine, MODES, type Mode, openEngine, type Standard, type VaultId } from "../../core/index.ts";
import { adoptFromL1, type Settler } from "../../core/l1/settlement/index.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { decodeBatchData } from "../../core/protocol/batch-decoder.ts";
import { keccak256 } from "../../core/protocol/hash.ts";
import { bytesToHex } from "../../core/protocol/hex.ts";
import { THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import type { World } from "./fixture.ts";
import {
  at,
  connectOperator,
  createChain,
  mine,
  mint,
  newSettler,
  openMembers,
  requestWithdrawal,
  seed,
} from "./fixture.ts";

type Store = MemoryLevel<Uint8Array, Uint8Array>;
const BYTES = { keyEncoding: "view", valueEncoding: "view" } as const;

/** One of two operators whose stores were the same once. */
interface Operator {
  readonly store: Store;
  engine: Engine;
  settler: Settler;
  readonly vaults: VaultId[];
}

type Step =
  | {
      readonly kind: "mint";
      readonly by: number;
      readonly standard: Standard;
      readonly mode: Mode;
      readonly token: number;
    }
  | { readonly kind: "seal"; readonly by: number; readonly mode: Mode }
  | { readonly kind: "withdraw"; readonly by: number; readonly vault: number }
  | { readonly kind: "round" | "restart" | "adopt"; readonly by: number }
  | { readonly kind: "race" };

const by = fc.integer({ min: 0, max: 1 });
const mode = fc.constantFrom<Mode>(...MODES);
/** Few tokens, so that both operators mint the same ones. */
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("mint" as const),
      by,
      standard: fc.constantFrom<Standard>("erc20", "erc721", "erc1155"),
      mode,
      token: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("seal" as const), by, mode }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("withdraw" as const), by, vault: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("round" as const), by }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), by }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("adopt" as const), by }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("race" as const) }) },
);

let chain: World["chain"];
let l1: World["l1"];
let members: World["members"];
let seeded: Awaited<ReturnType<typeof seed>>;
let operators: Operator[] = [];

beforeEach(setUp);
afterEach(tearDown);

async function setUp(): Promise<void> {
  chain = await createChain();
  l1 = await connectOperator(chain);
  members = await openMembers(l1);
  const store: Store = new MemoryLevel(BYTES);
  const engine = await openEngine({ store, settlement: l1.settlement, environment: "sandbox", createIfMissing: true });
  seeded = await seed(engine, chain);
  await engine.close();
  operators = [await operate(store), await operate(await copyOf(store))];
}

async function tearDown(): Promise<void> {
  for (const { engine } of operators.splice(0)) await engine.close();
  for (const member of members.splice(0)) await member.close();
  await chain.close();
}

async function copyOf(store: Store): Promise<Store> {
  await store.open();
  const copy: Store = new MemoryLevel(BYTES);
  for await (const [key, value] of store.iterator<Uint8Array, Uint8Array>(BYTES)) await copy.put(key, value, BYTES);
  return copy;
}

async function operate(store: Store): Promise<Operator> {
  const engine = await openEngine({ store, settlement: l1.settlement, environment: "sandbox" });
  const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 20_000 });
  return { store, engine, settler: newSettler({ engine, l1, committee }, chain), vaults: [] };
}

async function restart(operator: Operator): Promise<void> {
  await operator.engine.close();
  const { engine, settler } = await operate(operator.store);
  engine.operator.awaitComparison();
  Object.assign(operator, { engine, settler });
}

/** Adopts what is on L1, once it is final; members give the data of validium. */
async function adopt({ engine }: Operator): Promise<void> {
  await mine(chain, 30);
  const sources = members.map((member) => ({
    name: member.address,
    batchData: async (of: Mode, batchNumber: number) =>
      of === "validium" ? member.data("validium", batchNumber) : null,
  }));
  await adoptFromL1({ engine, l1, fromBlock: chain.settlement.deployedAtBlock, sources });
}

/** Two texts of one id: an ERC-1155 is bound to whichever comes first, which the two operators may see otherwise. */
const HEROES: Readonly<Record<number, string>> = {
  5: "a hero",
  6: BigInt(bytesToHex(keccak256(new TextEncoder().encode("a hero")))).toString(),
};

/** What two operators on one store may be refused; everything else is a fault. */
const REFUSED = new Set([
  "history_diverged",
  "l1_not_compared",
  "token_already_minted",
  "token_id_conflict",
  "l1_failed",
  "vault_not_found",
  "proof_not_ready",
  "validation_failed",
]);

async function allowing(work: Promise<unknown>): Promise<void> {
  await work.catch((error) => {
    const errors = error instanceof AggregateError ? error.errors : [error];
    if (!errors.every(({ code }) => REFUSED.has(code))) throw error;
  });
}

async function take(todo: Step): Promise<void> {
  if (todo.kind === "race") {
    await Promise.all(operators.map(({ settler }) => allowing(settler.round())));
    return;
  }
  const operator = at(operators, todo.by);
  const { engine, settler, vaults } = operator;
  if (todo.kind === "mint") {
    const { standard, mode, token } = todo;
    const text = standard === "erc20" ? "" : (HEROES[token] ?? String(token));
    const amount = standard === "erc721" ? 1 : token;
    await allowing(mint({ ...seeded, engine }, standard, mode, text, amount).then((vaultId) => vaults.push(vaultId)));
  } else if (todo.kind === "seal") await allowing(engine.operator.seal(todo.mode));
  else if (todo.kind === "withdraw") {
    const vaultId = vaults[todo.vault];
    if (vaultId !== undefined) await allowing(requestWithdrawal({ ...seeded, engine }, vaultId));
  } else if (todo.kind === "round") await allowing(settler.round());
  else if (todo.kind === "restart") await restart(operator);
  else await allowing(adopt(operator));
}

/** Both operators end on L1's history, one after the other. */
async function settle(): Promise<void> {
  for (const operator of operators) {
    await allowing(operator.settler.round());
    if (operator.engine.operator.divergence() !== null) await adopt(operator);
    await operator.settler.round();
    await operator.settler.round();
  }
  for (const operator of operators.toReversed()) {
    await allowing(operator.settler.round());
    if (operator.engine.operator.divergence() !== null) await adopt(operator);
    await operator.settler.round();
  }
}

async function expectOneHistory(): Promise<void> {
  const there = await l1.state();
  for (const operator of operators) {
    const { engine } = operator;
    expect(engine.operator.divergence()).toBeNull();
    expect({ ...engine.batches.state(), history: engine.operator.history() }).toEqual(there);
    expect(await engine.batches.committedState()).toEqual(engine.batches.state());
    expect((await engine.operator.verify()).problems).toEqual([]);
    await restart(operator);
    expect((await operator.engine.operator.verify()).problems).toEqual([]);
    expect({ ...operator.engine.batches.state(), history: operator.engine.operator.history() }).toEqual(there);
  }
  const tokens: string[] = [];
  const { engine } = at(operators, 0);
  for (const mode of MODES) {
    const count = mode === "validium" ? there.countValidium : there.countRollup;
    for (let batchNumber = 0; batchNumber < count; batchNumber++) {
      const { data } = await engine.batches.getSealed(mode, batchNumber);
      const { standard, address, quantum } = at(chain.tokens, 1);
      const swords = assetType(standard, address, quantum);
      for (const vault of decodeBatchData(data)) {
        if (vault !== null && vault.assetType === swords) tokens.push(vault.blob);
      }
    }
  }
  expect(tokens.length).toBe(new Set(tokens).size);
}

describe("two operators on copies of one store", () => {
  test("end with L1's one history, whatever they do in whichever order", async () => {
    const steps = fc.array(step, { minLength: 10, maxLength: 40 });
    await fc.assert(
      fc
        .asyncProperty(steps, async (list) => {
          for (const todo of list) await take(todo);
          await settle();
          await expectOneHistory();
        })
        .afterEach(async () => {
          await tearDown();
          await setUp();
        }),
      { numRuns: Number(process.env.RUNS ?? 5), endOnFailure: true },
    );
  });
});
