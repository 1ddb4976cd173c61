import { afterEach, describe, expect, test } from "vitest";
import type { VaultId } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { Settler } from "../../core/settlement/settler.ts";
import { createWorld, type World, withdrawMany } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

/** A settler whose loops run until it is disposed. */
function running(
  { chain, engine, l1, committee }: World,
  failed: (error: unknown) => void = () => {},
) {
  const stopping = new AbortController();
  const settler = new Settler({
    ...{
      engine,
      l1,
      committee,
      lagMs: 0,
      secondLookMs: 0,
      rereadMs: 0,
      intervalMs: 10,
      onError: failed,
    },
    ...{ fromBlock: chain.settlement.deployedAtBlock, sealing: { maxAgeMs: 0 } },
  });
  const run = settler.run(stopping.signal);
  return {
    settler,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await run;
    },
  };
}

const commitOf = async ({ engine, principal }: World, vaultId: VaultId) =>
  (await engine.vaults.get(principal.applicationId, vaultId)).status;

describe("the loops of a settler", () => {
  test("seal, commit and follow while no withdrawal and no asset can be looked at, and end when told to", async () => {
    world = await createWorld();
    const { l1, settler: before } = world;
    const points = await world.mint("erc20", "zk-rollup", "", 5);
    await before.round();
    await world.requestWithdrawal(points, 5n);
    const over = Promise.withResolvers<never>();
    Object.assign(l1, { checkWithdrawal: () => over.promise, isMinter: () => over.promise });
    {
      await using _ = running(world);
      const sword = await world.mint("erc721", "zk-rollup", "1");
      await expect.poll(() => commitOf(world, sword)).toBe("settled");
      over.reject(new Error("the node gave up"));
    }
  });

  test("name the work that fails, while the others go on", async () => {
    world = await createWorld();
    const failed: unknown[] = [];
    Object.assign(world.l1, { isMinter: () => Promise.reject(new Error("the node gave up")) });
    await using loops = running(world, (error) => failed.push(error));
    const sword = await world.mint("erc721", "zk-rollup", "1");
    await expect.poll(() => commitOf(world, sword)).toBe("settled");
    await expect.poll(() => loops.settler.lastErrors.assets).not.toBeNull();
    expect(String(loops.settler.lastErrors.assets)).toContain("the node gave up");
    expect(loops.settler.lastErrors).toMatchObject({ follow: null, seal: null, commit: null });
    expect(loops.settler.lastError).toBe(loops.settler.lastErrors.assets);
    expect(failed.length).toBeGreaterThan(0);
  });

  test("bring a commit to L1 in the next block, however many withdrawals are ready", async () => {
    world = await createWorld();
    const { chain, engine, l1 } = world;
    const count = 130;
    await withdrawMany(world, count);
    await chain.rpc("evm_setAutomine", [false]);
    await using _ = running(world);
    for (let batch = 0; batch < 2; batch++) {
      // Withdrawals are under way when something is sealed.
      await expect
        .poll(async () => (await chain.pendingHashes()).length, { interval: 5 })
        .toBeGreaterThan(0);
      await world.mint("erc721", "zk-rollup", `${batch}`);
      const status = async () =>
        (await engine.batches.get("zk-rollup", batch).catch(() => null))?.status;
      await expect.poll(status).toBe("submitted");
      await chain.mine(1);
      expect((await l1.state()).countRollup).toBe(batch + 1);
    }
    const paid = await chain.client.getContractEvents({
      ...{
        abi: stateCommitmentAbi,
        address: chain.settlement.address,
        eventName: "Withdrawn",
        fromBlock: 0n,
      },
    });
    // The withdrawals were not done before.
    expect(paid.length).toBeLessThan(count);
    await chain.rpc("evm_setAutomine", [true]);
    await chain.mine(1);
  });
});
