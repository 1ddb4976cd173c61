import { MemoryLevel } from "memory-level";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Engine, restoreStore } from "../../core/index.ts";
import { adoptFromL1 } from "../../core/settlement/index.ts";
import { LevelJournal } from "../../core/store/level-store.ts";
import { PREFIX } from "../../core/store/store-keys.ts";
import type { Operator, Store, World } from "./fixture.ts";
import { codeOf, copyOf, createStage, expectOneHistory, seed } from "./fixture.ts";
import { decimalOf } from "./signed-batches.ts";

let stage: Awaited<ReturnType<typeof createStage>>;
let chain: World["chain"];
let l1: World["l1"];
let seeded: Awaited<ReturnType<typeof seed>>;
beforeEach(async () => {
  stage = await createStage();
  ({ chain, l1 } = stage);
});
afterEach(() => stage.close());

/** A second operator on a copy of the store as it is now. */
const second = async ({ store }: Operator) => stage.operate(await copyOf(store));

async function first(): Promise<Operator> {
  const operator = await stage.operate(new MemoryLevel());
  seeded = await seed(operator.engine, chain);
  return operator;
}

const mintAt = ({ engine }: Operator, ...args: Parameters<World["mint"]>) =>
  ({ ...seeded, engine }).mint(...args);

describe("two operators on copies of one store", () => {
  test.each(["validium", "zk-rollup"] as const)(
    "the loser of %s stops within one round, refuses mints and seals, and says so after a restart",
    async (mode) => {
      const winner = await first();
      await mintAt(winner, "erc721", mode, "1");
      await winner.settler.round();
      const loser = await second(winner);
      await mintAt(winner, "erc721", mode, "2");
      await mintAt(loser, "erc721", mode, "3");
      await winner.settler.round();

      // Asked for while the store compares itself with L1.
      const compared = l1.state().then((state) => {
        const comparison = loser.engine.operator.compareState(state);
        return Promise.all([comparison, mintAt(loser, "erc721", mode, "5")].map(codeOf));
      });
      expect(await compared).toEqual(["history_diverged", "history_diverged"]);
      expect(await codeOf(loser.settler.round())).toBe("history_diverged");
      expect(loser.engine.operator.divergence()?.detail).toMatch(/L1/);
      expect(await codeOf(mintAt(loser, "erc721", mode, "4"))).toBe("history_diverged");
      expect(await codeOf(loser.engine.operator.seal(mode))).toBe("history_diverged");
      expect(await loser.settler.round()).toEqual({ sealed: 0, committed: 0, withdrawn: 0 });
      expect(await l1.state()).toEqual({
        ...(await winner.engine.batches.committedState()),
        history: winner.engine.operator.history(),
      });
      expect((await loser.engine.operator.verify()).problems).toEqual([]);

      await loser.engine.close();
      const { engine } = await stage.operate(loser.store);
      expect(await codeOf(mintAt({ ...loser, engine }, "erc721", mode, "4"))).toBe(
        "history_diverged",
      );
    },
  );

  test("a store behind L1 is found by the first comparison, before it mints", async () => {
    const winner = await first();
    const loser = await second(winner);
    await mintAt(winner, "erc20", "zk-rollup", "", 5);
    await winner.settler.round();
    loser.engine.operator.awaitComparison();
    expect(await codeOf(mintAt(loser, "erc20", "zk-rollup"))).toBe("l1_not_compared");
    expect(await codeOf(loser.settler.round())).toBe("history_diverged");
    expect(await codeOf(mintAt(loser, "erc20", "zk-rollup"))).toBe("history_diverged");
  });

  test("a store that holds L1's history mints as soon as it is compared", async () => {
    const operator = await first();
    operator.engine.operator.awaitComparison();
    expect(await codeOf(mintAt(operator, "erc20", "validium"))).toBe("l1_not_compared");
    await operator.settler.round();
    expect(await codeOf(mintAt(operator, "erc20", "validium"))).toBe("done");
    expect(operator.engine.operator.divergence()).toBeNull();
  });
});

/** The vaults that wait for L1, by the batches as anyone can read them. */
async function uncommitted(engine: Engine): Promise<number> {
  const { data } = await engine.batches.list({ limit: 100 });
  return data.reduce(
    (sum, { vaultCount, l1BlockNumber }) => (l1BlockNumber === null ? sum + vaultCount : sum),
    0,
  );
}

/** Adopts what is on L1, once it is final. */
async function adopt({ engine }: Operator) {
  await chain.mine(30);
  return stage.adopt(engine);
}

async function journalOf(store: Store): Promise<Uint8Array[]> {
  const entries: Uint8Array[] = [];
  const bytes = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
  for await (const [key, value] of store.iterator<Buffer, Buffer>(bytes)) {
    if (key[0] === PREFIX.journal) entries.push(value);
  }
  return entries;
}

describe("adopting L1's history", () => {
  test.each(["validium", "zk-rollup"] as const)(
    "of %s takes its vaults, fails the mints that it lacks, tells their application, and goes on",
    async (mode) => {
      const winner = await first();
      await mintAt(winner, "erc721", mode, "1");
      await winner.settler.round();
      // The open batch is in both stores: its mint is in both histories.
      const shared = await mintAt(winner, "erc721", mode, "2");
      const grown = await mintAt(winner, "erc20", mode, "", 10);
      const loser = await second(winner);
      const foreign = await mintAt(winner, "erc721", mode, "3");
      await mintAt(winner, "erc20", mode, "", 5);
      await mintAt(loser, "erc20", mode, "", 7);
      const lost = await mintAt(loser, "erc721", mode, "4");
      await mintAt(loser, "erc1155", mode, "5", 3);
      await winner.settler.round();
      await mintAt(winner, "erc721", mode, "6");
      await winner.settler.round();
      expect(await codeOf(loser.settler.round())).toBe("history_diverged");
      const { applicationId } = seeded.principal;
      const held = (await loser.engine.vaults.get(applicationId, lost)).amount;
      expect(held).toBe(1n);

      expect(await adopt(loser)).toEqual({ batches: 2, lostVaults: 3 });
      expect(loser.engine.batches.uncommittedVaults()).toBe(await uncommitted(loser.engine));
      expect(loser.engine.operator.divergence()).toBeNull();
      expect((await loser.engine.operator.verify()).problems).toEqual([]);
      await loser.settler.round();
      await loser.settler.round();
      await expectOneHistory({ ...loser, l1 });
      expect((await loser.engine.vaults.get(applicationId, shared)).status).toMatch(
        /settled|finalized/,
      );
      expect((await loser.engine.vaults.get(applicationId, grown)).amount).toBe(15n);
      // The winner's vault has an owner and a place in proofs; for the application of the lost mint
      // it is nobody's.
      expect((await loser.engine.proofs.vault(foreign)).vault).toEqual(
        (await winner.engine.proofs.vault(foreign)).vault,
      );
      expect(await codeOf(loser.engine.vaults.get(applicationId, foreign))).toBe("vault_not_found");
      const { data } = await loser.engine.transactions.list(applicationId, {});
      const failed = data.filter(({ status }) => status === "failed");
      expect(
        failed.map(({ amount, failure }) => [amount, /another history/.test(failure ?? "")]),
      ).toEqual([
        [3n, true],
        [1n, true],
        [7n, true],
      ]);
      const events = [];
      for await (const event of loser.engine.events.stream(applicationId)) events.push(event.type);
      expect(events.filter((type) => type === "mint.failed").length).toBe(2);
      const [user] = seeded.users;
      const balances = await loser.engine.vaults.balances(applicationId, user?.userId ?? "");
      expect(balances.data.map(({ amount }) => amount)).toEqual([1n, 1n, 10n]);

      // A lost token can be minted again, and one that L1 has cannot.
      expect(await codeOf(mintAt(loser, "erc721", mode, "3"))).toBe("token_already_minted");
      await mintAt(loser, "erc721", mode, "4");
      await mintAt(loser, "erc1155", mode, "5", 3);
      await loser.settler.round();
      await expectOneHistory({ ...loser, l1 });
      await loser.engine.close();
      const again = await stage.operate(loser.store);
      expect((await again.engine.operator.verify()).problems).toEqual([]);
      expect(await codeOf(mintAt(again, "erc721", mode, "4"))).toBe("token_already_minted");
      expect(
        (await again.engine.transactions.list(applicationId, { status: "failed" })).data,
      ).toHaveLength(3);
    },
  );

  test("frees the ERC-1155 ids of lost mints, and leaves bound what any other batch holds", async () => {
    const [hero, knight, wizard, monk] = ["a hero", "a knight", "a wizard", "a monk"];
    const winner = await first();
    await mintAt(winner, "erc1155", "zk-rollup", knight);
    await winner.settler.round();
    const loser = await second(winner);
    await mintAt(winner, "erc1155", "validium", wizard);
    await winner.settler.round();
    for (const text of [hero, knight, decimalOf(wizard)])
      await mintAt(loser, "erc1155", "validium", text);
    await mintAt(loser, "erc1155", "zk-rollup", monk);
    expect(await codeOf(loser.settler.round())).toBe("history_diverged");
    await adopt(loser);

    const again = async (operator: Operator) => {
      expect((await operator.engine.operator.verify()).problems).toEqual([]);
      for (const text of [knight, wizard])
        expect(await codeOf(mintAt(operator, "erc1155", "validium", decimalOf(text)))).toBe(
          "token_id_conflict",
        );
      for (const text of [knight, wizard, decimalOf(hero), decimalOf(monk)])
        expect(await codeOf(mintAt(operator, "erc1155", "validium", text))).toBe("done");
      for (const text of [hero, monk])
        expect(await codeOf(mintAt(operator, "erc1155", "zk-rollup", text))).toBe(
          "token_id_conflict",
        );
      expect((await operator.engine.operator.verify()).problems).toEqual([]);
    };
    await again(loser);
    const journal = await LevelJournal.open(new MemoryLevel());
    await journal.append(0, await journalOf(loser.store));
    const restored: Store = new MemoryLevel();
    await restoreStore(journal, restored);
    await loser.engine.close();
    await again(await stage.operate(loser.store));
    await again(await stage.operate(restored));
  });

  test.each([{ restarted: true }, { restarted: false }])(
    "that replaced batches which this store has seen final takes them back (restarted: $restarted)",
    async ({ restarted }) => {
      const winner = await first();
      const points = await mintAt(winner, "erc20", "validium", "", 10);
      await winner.settler.round();
      await chain.mine(30);
      await winner.settler.round();
      let loser = await second(winner);
      await loser.settler.round();
      const before = await chain.rpc("evm_snapshot");
      const { withdrawalId } = await { ...seeded, engine: loser.engine }.requestWithdrawal(
        points,
        4n,
      );
      await mintAt(loser, "erc721", "zk-rollup", "1");
      await loser.settler.round();
      await chain.mine(30);
      await loser.settler.round();
      const { applicationId } = seeded.principal;
      const asked = async () =>
        (await loser.engine.withdrawals.get(applicationId, withdrawalId)).status;
      expect(await asked()).toBe("finalized");
      expect((await loser.engine.batches.get("zk-rollup", 0)).status).toBe("finalized");

      await chain.rpc("evm_revert", [before]);
      await chain.mine(3);
      await mintAt(winner, "erc721", "zk-rollup", "2");
      await winner.settler.round();
      await chain.mine(60);
      if (restarted) {
        await loser.engine.close();
        loser = await stage.operate(loser.store);
      }
      expect(await codeOf(loser.settler.round())).toBe("history_diverged");
      expect(await adopt(loser)).toEqual({ batches: 1, lostVaults: 1 });
      expect((await loser.engine.operator.verify()).problems).toEqual([]);
      // The payment was in the blocks that are gone.
      await loser.settler.round();
      expect(await asked()).toBe("settled");
      expect(await l1.withdrawn(points, "erc20")).toBe(4n);
      await expectOneHistory({ ...loser, l1 });
    },
  );

  test("is refused while L1's batches are not final, and of a store that is not diverged", async () => {
    const winner = await first();
    const loser = await second(winner);
    await mintAt(winner, "erc20", "zk-rollup", "", 5);
    await winner.settler.round();
    await codeOf(loser.settler.round());
    const options = { l1, fromBlock: chain.settlement.deployedAtBlock, sources: [] };
    expect(await codeOf(adoptFromL1({ ...options, engine: loser.engine }))).toBe("l1_failed");
    await chain.mine(30);
    expect(await codeOf(adoptFromL1({ ...options, engine: winner.engine }))).toBe(
      "validation_failed",
    );
    expect(await codeOf(adoptFromL1({ ...options, engine: loser.engine }))).toBe("done");
  });
});
