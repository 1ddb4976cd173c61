import fc from "fast-check";
import { MemoryLevel } from "memory-level";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MODES, type Mode, type Standard, type VaultId } from "../../core/index.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { decodeBatch } from "../../core/protocol/batch-data.ts";
import { at, copyOf, createStage, expectOneHistory, type Operator, seed } from "./fixture.ts";
import { decimalOf } from "./signed-batches.ts";

/** One of two operators whose stores were the same once, with the vaults that it minted. */
type Minting = Operator & { readonly vaults: VaultId[] };

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
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("withdraw" as const), by, vault: fc.nat(5) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("round" as const), by }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const), by }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("adopt" as const), by }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("race" as const) }) },
);

let stage: Awaited<ReturnType<typeof createStage>>;
let seeded: Awaited<ReturnType<typeof seed>>;
let operators: Minting[] = [];
beforeEach(setUp);
afterEach(() => stage.close());

async function setUp(): Promise<void> {
  stage = await createStage();
  const { store, engine } = await stage.operate(new MemoryLevel());
  seeded = await seed(engine, stage.chain);
  await engine.close();
  const stores = [store, await copyOf(store)];
  operators = await Promise.all(
    stores.map(async (each) => ({ ...(await stage.operate(each)), vaults: [] })),
  );
}

async function restart(operator: Minting): Promise<void> {
  await operator.engine.close();
  const { engine, settler } = await stage.operate(operator.store);
  engine.operator.awaitComparison();
  Object.assign(operator, { engine, settler });
}

/** Adopts what is on L1, once it is final. */
async function adopt({ engine }: Operator): Promise<void> {
  await stage.chain.mine(30);
  await stage.adopt(engine);
}

/**
 * Two texts of one id: an ERC-1155 is bound to whichever comes first, which the two operators may
 * see otherwise.
 */
const HEROES: Readonly<Record<number, string>> = { 5: "a hero", 6: decimalOf("a hero") };

/**
 * Two operators on one store may meet these refusals; everything else is a fault. A vault that is
 * asked for again once L1 has paid of it is another withdrawal.
 */
const REFUSED = new Set([
  "history_diverged",
  "l1_not_compared",
  "token_already_minted",
  "token_id_conflict",
  "l1_failed",
  "vault_not_found",
  "withdrawal_pending",
  "insufficient_balance",
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
    await allowing(
      { ...seeded, engine }
        .mint(standard, mode, text, amount)
        .then((vaultId) => vaults.push(vaultId)),
    );
  } else if (todo.kind === "seal") await allowing(engine.operator.seal(todo.mode));
  else if (todo.kind === "withdraw") {
    const vaultId = vaults[todo.vault];
    if (vaultId !== undefined) await allowing({ ...seeded, engine }.requestWithdrawal(vaultId));
  } else if (todo.kind === "round") await allowing(settler.round());
  else if (todo.kind === "restart") await restart(operator);
  else await allowing(adopt(operator));
}

/** Both operators end on L1's history, one after the other. */
async function settle(): Promise<void> {
  for (const operator of [...operators, ...operators.toReversed()]) {
    await allowing(operator.settler.round());
    if (operator.engine.operator.divergence() !== null) await adopt(operator);
    await operator.settler.round();
    await operator.settler.round();
  }
}

async function expectBothAlike(): Promise<void> {
  const { chain, l1 } = stage;
  for (const operator of operators) {
    expect(operator.engine.operator.divergence()).toBeNull();
    await expectOneHistory({ ...operator, l1 });
    await restart(operator);
    await expectOneHistory({ ...operator, l1 });
  }
  const there = await l1.state();
  const tokens: string[] = [];
  const { engine } = at(operators, 0);
  for (const mode of MODES) {
    const count = mode === "validium" ? there.countValidium : there.countRollup;
    for (let batchNumber = 0; batchNumber < count; batchNumber++) {
      const { data } = await engine.batches.getSealed(mode, batchNumber);
      const { standard, address, quantum } = at(chain.tokens, 1);
      const swords = assetType(standard, address, quantum);
      for (const vault of decodeBatch(data).slots) {
        if (vault !== null && vault.assetType === swords) tokens.push(vault.mintingBlob);
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
          await expectBothAlike();
        })
        .afterEach(async () => {
          await stage.close();
          await setUp();
        }),
      { numRuns: Number(process.env.RUNS ?? 5), endOnFailure: true },
    );
  });
});
