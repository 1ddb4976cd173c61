import { MemoryLevel } from "memory-level";
import { toHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { openEngine, restoreStore, WITHDRAWAL_EVENTS } from "../../core/index.ts";
import { NaiveJournal } from "../core/naive/naive-store.ts";
import { createWorld, expectOneHistory, type World } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

/** Replaces everything since the snapshot by `blocks` empty blocks of other times. */
async function reorganise({ chain }: World, snapshot: unknown, blocks: number): Promise<void> {
  await chain.rpc("evm_revert", [snapshot]);
  await chain.rpc("evm_increaseTime", [toHex(7)]);
  if (blocks > 0) await chain.mine(blocks);
}

/** An engine over a store that was made of the first engine's journal. */
async function restored({ engine, l1 }: World): Promise<Pick<World, "engine">> {
  const journal = new NaiveJournal();
  await engine.operator.backup(journal);
  await engine.close();
  const store = new MemoryLevel<Uint8Array, Uint8Array>();
  await restoreStore(journal, store);
  return { engine: await openEngine({ store, settlement: l1.settlement, environment: "sandbox" }) };
}

describe("a reorganisation below finality", () => {
  test.each([
    { name: "a shorter chain", blocks: 0 },
    { name: "a chain of the same height", blocks: 2 },
    { name: "a longer chain", blocks: 5 },
  ])(
    "of $name takes settled back to submitted, then the batch is committed again",
    async ({ blocks }) => {
      world = await createWorld();
      const { chain, engine, settler, l1 } = world;
      await settler.round();
      const vaultId = await world.mint("erc721", "zk-rollup", "1");
      await world.mint("erc20", "validium", "", 5);
      const snapshot = await chain.rpc("evm_snapshot");
      const reverted: string[] = [];
      engine.events.on("batch", ({ type, batch: { batchId, status } }) => {
        if (type === "batch.reverted") reverted.push(`${batchId} ${status}`);
      });

      await settler.round();
      const first = await engine.batches.get("zk-rollup", 0);
      expect(first.status).toBe("settled");
      await reorganise(world, snapshot, blocks);
      expect(await l1.state()).toMatchObject({ countValidium: 0, countRollup: 0 });

      await settler.round();
      expect(reverted.toSorted()).toEqual(["validium-0 submitted", "zk-rollup-0 submitted"]);
      const second = await engine.batches.get("zk-rollup", 0);
      expect(second).toMatchObject({ status: "settled", batchRoot: first.batchRoot });
      expect(second.committedAt).not.toBe(first.committedAt);
      await expectOneHistory(world);
      expect(await world.transactionStatus(vaultId)).toBe("settled");
    },
  );

  test("is noticed even when the watcher slept until other blocks were final in their place", async () => {
    world = await createWorld();
    const { chain, engine, settler, l1, committee } = world;
    await settler.round();
    const snapshot = await chain.rpc("evm_snapshot");
    await world.mint("erc20", "zk-rollup", "", 5);
    await settler.round();
    const first = await engine.batches.get("zk-rollup", 0);
    await reorganise(world, snapshot, 40);
    expect(await l1.finalizedBlockNumber()).toBeGreaterThan(first.l1BlockNumber ?? 0n);

    // In the process that slept, and after a restart.
    for (const each of [settler, chain.newSettler({ engine, l1, committee })]) await each.round();
    const second = await engine.batches.get("zk-rollup", 0);
    expect(second.committedAt).not.toBe(first.committedAt);
    await expectOneHistory(world);
  });

  test("takes a withdrawal back, and the settler sends it again", async () => {
    world = await createWorld();
    const { chain, engine, settler, principal } = world;
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await settler.round();
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
    const snapshot = await chain.rpc("evm_snapshot");
    await settler.round();
    const first = await engine.withdrawals.get(principal.applicationId, withdrawalId);
    expect(first.status).toBe("settled");

    await reorganise(world, snapshot, 3);
    const seen: string[] = [];
    engine.events.on(WITHDRAWAL_EVENTS, ({ event }) => seen.push(event.type));
    await settler.round();
    expect(seen).toContain("withdrawal.reverted");
    const second = await engine.withdrawals.get(principal.applicationId, withdrawalId);
    expect(second.status).toBe("settled");
    expect(second.l1BlockNumber).not.toBe(first.l1BlockNumber);
    expect(await engine.vaults.get(principal.applicationId, vaultId)).toMatchObject({
      withdrawnBalance: 20n,
    });
  });

  test("is noticed after a restart", async () => {
    world = await createWorld();
    const { chain, engine, l1, committee } = world;
    const restarted = () => chain.newSettler({ engine, l1, committee });
    await restarted().round();
    await world.mint("erc1155", "zk-rollup", "9", 3);
    const snapshot = await chain.rpc("evm_snapshot");
    await restarted().round();
    const first = await engine.batches.get("zk-rollup", 0);

    await reorganise(world, snapshot, 1);
    const reverted: string[] = [];
    engine.events.on(
      "batch.reverted",
      ({
        event: {
          data: { batchId },
        },
      }) => reverted.push(batchId),
    );
    await restarted().round();
    expect(reverted).toEqual(["zk-rollup-0"]);
    const second = await engine.batches.get("zk-rollup", 0);
    expect(second.status).toBe("settled");
    expect(second.l1TxHash === first.l1TxHash && second.committedAt === first.committedAt).toBe(
      false,
    );
    await expectOneHistory(world);
  });

  test("no reorganisation: after a restart nothing is taken back", async () => {
    world = await createWorld();
    const { chain, engine, l1, committee } = world;
    await world.mint("erc20", "validium", "", 5);
    await chain.newSettler({ engine, l1, committee }).round();
    const reverted: unknown[] = [];
    engine.events.on("batch.reverted", (batch) => reverted.push(batch));
    await chain.mine(3);
    await chain.newSettler({ engine, l1, committee }).round();
    expect(reverted).toEqual([]);
    expect((await engine.batches.get("validium", 0)).status).toBe("settled");
  });
});

describe("a reorganisation of blocks that were final", () => {
  test.each([
    { when: "while it runs", restarted: false },
    { when: "after a restart", restarted: true },
  ])(
    "is taken back $when, and headers and withdrawals follow the new chain, but nothing of before",
    async ({ restarted }) => {
      world = await createWorld();
      const { chain, engine, l1, committee, principal } = world;
      let { settler } = world;
      await world.mint("erc20", "validium", "", 50);
      await settler.round();
      const reverted: string[] = [];
      engine.events.on(
        "batch.reverted",
        ({
          event: {
            data: { batchId },
          },
        }) => reverted.push(batchId),
      );
      const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
      const snapshot = await chain.rpc("evm_snapshot");
      await settler.round();
      const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
      await settler.round();
      await chain.mine(30);
      await settler.round();
      const first = await engine.batches.get("zk-rollup", 0);
      expect(first.status).toBe("finalized");
      expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe(
        "finalized",
      );

      await reorganise(world, snapshot, 60);
      if (restarted) settler = chain.newSettler({ engine, l1, committee });
      await settler.round();
      await settler.round();
      expect(reverted).toEqual(["zk-rollup-0"]);
      const second = await engine.batches.get("zk-rollup", 0);
      expect(second.committedAt).not.toBe(first.committedAt);
      await expectOneHistory(world);
      expect(await engine.vaults.get(principal.applicationId, vaultId)).toMatchObject({
        withdrawnBalance: 20n,
      });
      await chain.mine(30);
      await settler.round();
      expect((await engine.batches.get("zk-rollup", 0)).status).toBe("finalized");
      expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe(
        "finalized",
      );
    },
  );

  test.each([
    { when: "while it runs", started: "running" },
    { when: "after a restart", started: "restarted" },
    { when: "by a store that was restored from a backup", started: "restored" },
  ])(
    "of a withdrawal alone is noticed $when, and it is paid again, but no batch is taken back",
    async ({ started }) => {
      world = await createWorld();
      const { chain, l1, principal } = world;
      const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
      await world.settler.round();
      // The withdrawal's block is no boundary of what is read: the rounds that follow it are.
      const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
      await chain.mine(25);
      const snapshot = await chain.rpc("evm_snapshot");
      await world.settler.round();
      await chain.mine(30);
      await world.settler.round();
      expect(
        (await world.engine.withdrawals.get(principal.applicationId, withdrawalId)).status,
      ).toBe("finalized");

      await reorganise(world, snapshot, 60);
      if (started === "restored") world = { ...world, ...(await restored(world)) };
      const { engine, committee } = world;
      const settler =
        started === "running" ? world.settler : chain.newSettler({ engine, l1, committee });
      const seen: string[] = [];
      engine.events.on(WITHDRAWAL_EVENTS, ({ event }) => seen.push(event.type));
      engine.events.on(
        "batch.reverted",
        ({
          event: {
            data: { batchId },
          },
        }) => seen.push(batchId),
      );
      await settler.round();
      expect(seen).toEqual(["withdrawal.reverted", "withdrawal.submitted", "withdrawal.settled"]);
      expect(await l1.withdrawn(vaultId, "erc20")).toBe(20n);
      expect((await engine.operator.verify()).problems).toEqual([]);
    },
  );

  test("is not believed of a chain that ends before what was final", async () => {
    world = await createWorld();
    const { chain, engine, settler } = world;
    await world.mint("erc20", "zk-rollup", "", 50);
    const snapshot = await chain.rpc("evm_snapshot");
    await settler.round();
    await chain.mine(30);
    await settler.round();
    await reorganise(world, snapshot, 0);
    await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("finalized");
  });
});
