import { MemoryLevel } from "memory-level";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/committee/index.ts";
import { type Engine, openEngine } from "../../core/index.ts";
import type { Settler } from "../../core/settlement/index.ts";
import { THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import type { World } from "./fixture.ts";
import { connectOperator, createChain, mint, newSettler, openMembers, seed } from "./fixture.ts";

type Store = MemoryLevel<Uint8Array, Uint8Array>;

/** One operator of a store: its engine and what brings it to L1. */
interface Operator {
  readonly store: Store;
  readonly engine: Engine;
  readonly settler: Settler;
}

let chain: World["chain"];
let l1: World["l1"];
let members: World["members"];
let seeded: Awaited<ReturnType<typeof seed>>;
const open: Engine[] = [];

beforeEach(async () => {
  chain = await createChain();
  l1 = await connectOperator(chain);
  members = await openMembers(l1);
});

afterEach(async () => {
  for (const engine of open.splice(0)) await engine.close();
  for (const member of members) await member.close();
  await chain.close();
});

async function operate(store: Store): Promise<Operator> {
  const opened = { settlement: l1.settlement, environment: "sandbox", createIfMissing: true } as const;
  const engine = await openEngine({ store, ...opened });
  open.push(engine);
  const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 500 });
  return { store, engine, settler: newSettler({ engine, l1, committee }, chain) };
}

/** A second operator on a copy of the store as it is now. */
async function copyOf({ store }: Operator): Promise<Operator> {
  const copy: Store = new MemoryLevel({ keyEncoding: "view", valueEncoding: "view" });
  for await (const [key, value] of store.iterator({ keyEncoding: "view", valueEncoding: "view" })) {
    await copy.put(key, value, { keyEncoding: "view", valueEncoding: "view" });
  }
  return operate(copy);
}

async function first(): Promise<Operator> {
  const operator = await operate(new MemoryLevel());
  seeded = await seed(operator.engine, chain);
  return operator;
}

const mintAt = ({ engine }: Operator, ...args: Parameters<typeof mint> extends [unknown, ...infer R] ? R : never) =>
  mint({ ...seeded, engine }, ...args);

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error) => error.code,
  );
}

describe("two operators on copies of one store", () => {
  test.each(["validium", "zk-rollup"] as const)(
    "the loser of %s stops within one round, refuses mints and seals, and says so after a restart",
    async (mode) => {
      const winner = await first();
      await mintAt(winner, "erc721", mode, "1");
      await winner.settler.round();
      const loser = await copyOf(winner);
      await mintAt(winner, "erc721", mode, "2");
      await mintAt(loser, "erc721", mode, "3");
      await winner.settler.round();

      expect(await codeOf(loser.settler.round())).toBe("history_diverged");
      expect(loser.engine.divergence()?.detail).toMatch(/L1/);
      expect(await codeOf(mintAt(loser, "erc721", mode, "4"))).toBe("history_diverged");
      expect(await codeOf(loser.engine.seal(mode))).toBe("history_diverged");
      expect(await loser.settler.round()).toEqual({ sealed: 0, committed: 0, withdrawn: 0 });
      expect(await l1.state()).toEqual(await winner.engine.committedState());
      expect((await loser.engine.verify()).problems).toEqual([]);

      await loser.engine.close();
      const { engine } = await operate(loser.store);
      expect(await codeOf(mintAt({ ...loser, engine }, "erc721", mode, "4"))).toBe("history_diverged");
    },
  );

  test("a store behind L1 is found by the first comparison, before it mints", async () => {
    const winner = await first();
    const loser = await copyOf(winner);
    await mintAt(winner, "erc20", "zk-rollup", "", 5);
    await winner.settler.round();
    loser.engine.awaitComparison();
    expect(await codeOf(mintAt(loser, "erc20", "zk-rollup"))).toBe("l1_not_compared");
    expect(await codeOf(loser.settler.round())).toBe("history_diverged");
    expect(await codeOf(mintAt(loser, "erc20", "zk-rollup"))).toBe("history_diverged");
  });

  test("a store that holds L1's history mints as soon as it is compared", async () => {
    const operator = await first();
    operator.engine.awaitComparison();
    expect(await codeOf(mintAt(operator, "erc20", "validium"))).toBe("l1_not_compared");
    await operator.settler.round();
    expect(await codeOf(mintAt(operator, "erc20", "validium"))).toBe("done");
    expect(operator.engine.divergence()).toBeNull();
  });
});
