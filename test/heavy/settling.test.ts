import { toHex } from "viem";
import { describe, expect, test } from "vitest";
import type { Mode, Standard, VaultId } from "../../core/index.ts";
import { Settler } from "../../core/settlement/settler.ts";
import { at, createWorld, type World } from "../settlement/fixture.ts";

/** Mints so many vaults of one unit for the first user. */
async function mintMany(
  { engine, principal, users, assets }: Pick<World, "engine" | "principal" | "users" | "assets">,
  standard: Standard,
  mode: Mode,
  count: number,
) {
  const vaults: VaultId[] = [];
  while (vaults.length < count) {
    const mints = Array.from({ length: Math.min(1_000, count - vaults.length) }, (_, i) => ({
      ...{ mintingBlob: toHex(`${vaults.length + i}`), assetId: assets.get(standard), amount: 1 },
      dataAvailabilityMode: mode,
    }));
    const minted = await engine.mint(principal, {
      users: [{ userId: at(users, 0).userId, mints }],
    } as unknown);
    vaults.push(...minted.vaults.map(({ vaultId }) => vaultId));
  }
  return vaults;
}

describe("with 3,000 withdrawals that are ready", () => {
  test("each commit is in the next block but one at the latest", async () => {
    const world = await createWorld();
    const { chain, engine, l1, committee, settler } = world;
    const vaults = await mintMany(world, "erc1155", "validium", 3_000);
    await settler.round();
    for (const vaultId of vaults) await world.requestWithdrawal(vaultId);
    await chain.rpc("evm_setAutomine", [false]);
    const stopping = new AbortController();
    const { deployedAtBlock: fromBlock } = chain.settlement;
    const loops = new Settler({
      engine,
      l1,
      committee,
      fromBlock,
      lagMs: 0,
      secondLookMs: 0,
      rereadMs: 0,
      intervalMs: 10,
      sealing: { maxAgeMs: 0 },
    });
    const run = loops.run(stopping.signal);
    const underWay = async () =>
      ((await chain.rpc("eth_getBlockByNumber", ["pending", false])) as { transactions: unknown[] })
        .transactions.length;
    const delays: number[] = [];
    for (let batch = 0; batch < 20; batch++) {
      await expect.poll(underWay, { interval: 5 }).toBeGreaterThan(0);
      await world.mint("erc721", "zk-rollup", `${batch}`);
      await expect.poll(() => engine.batches.state().countRollup).toBe(batch + 1);
      let blocks = 0;
      for (; (await l1.state()).countRollup === batch; blocks++) {
        // A block of a real chain comes after seconds, in which everything is sent that can be.
        for (let before = -1; before !== (await underWay()); ) {
          before = await underWay();
          await new Promise((resolve) => setTimeout(resolve, 500));
        }
        await chain.mine(1);
      }
      delays.push(blocks);
    }
    console.log(`blocks until each commit: ${delays.join(" ")}`);
    for (const blocks of delays) expect(blocks).toBeLessThanOrEqual(2);
    const unpaid = await Array.fromAsync(
      engine.operator.pendingWithdrawals(engine.settlement.chainId),
    );
    expect(unpaid.length).toBeGreaterThan(0);
    stopping.abort();
    await run;
    await world.close();
  });
});
