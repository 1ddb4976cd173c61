import { createWalletClient, toHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import type { Mode } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { GUARDIAN } from "../../scripts/sandbox/accounts.ts";
import { at, createWorld, expectOneHistory, readyAsset, type World } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

/**
 * A token that the engine takes for registered and L1 does not know: what is left when its
 * registration is reorganised away.
 */
const unregisteredAsset = (at: World) =>
  readyAsset(at.engine, at.principal.applicationId, {
    standard: "erc1155",
    contractAddress: `0x${"99".repeat(20)}`,
    name: "Gone",
    symbol: "GONE",
  });

async function pauseCommits({ chain, l1 }: World, paused: boolean): Promise<void> {
  await createWalletClient({ transport: chain.transport, account: GUARDIAN }).writeContract({
    abi: stateCommitmentAbi,
    address: l1.settlement.contract,
    functionName: "pauseCommits",
    args: [paused],
    chain: null,
  });
}

/** One request: a good mint before the bad one and one behind it. */
async function mintAround(
  { engine, principal, users, assets }: World,
  bad: string,
  mode: Mode,
): Promise<bigint[]> {
  const entry = { amount: 2, dataAvailabilityMode: mode };
  const mints = [
    { ...entry, assetId: assets.get("erc1155"), mintingBlob: "0x31" },
    { ...entry, assetId: bad, mintingBlob: "0x35" },
    { ...entry, assetId: assets.get("erc20"), mintingBlob: "" },
  ];
  const { vaults } = await engine.mint(principal, {
    users: [{ userId: at(users, 0).userId, mints }],
  } as unknown);
  return vaults.map(({ vaultId }) => vaultId);
}

describe.each(["zk-rollup", "validium"] as const)(
  "a %s batch of which L1 refuses a slot",
  (mode) => {
    test("is committed without it once the refusal is final, and those behind it follow", async () => {
      world = await createWorld();
      const { engine, settler, chain, principal } = world;
      const bad = await unregisteredAsset(world);
      const [first = 0n, second = 0n, third = 0n] = await mintAround(world, bad, mode);
      await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
      const behind = await world.mint("erc721", mode, "8");
      await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });

      await chain.mine(25);
      expect((await settler.round()).committed).toBe(2);
      const { applicationId } = principal;
      const status = async (vaultId: bigint) =>
        (await engine.vaults.get(applicationId, vaultId)).status;
      expect(await Promise.all([first, second, third, behind].map(status))).toEqual([
        "settled",
        "failed",
        "settled",
        "settled",
      ]);
      await expectOneHistory(world);
      expect(await engine.proofs.vault(third)).toMatchObject({ header: expect.anything() });
      const { data } = await engine.transactions.list(applicationId, { status: "failed" });
      expect(data).toMatchObject([
        { vaultId: second, failure: "L1 has no registration of the asset" },
      ]);
      // Nothing more of the asset is taken, so that no later batch meets the same.
      expect(await engine.assets.get(applicationId, bad)).toMatchObject({
        mintingAvailable: false,
      });
      await expect(mintAround(world, bad, mode)).rejects.toMatchObject({
        code: "mint_unwithdrawable",
      });
    });

    test("is committed even if nothing of it is left", async () => {
      world = await createWorld();
      const { engine, settler, chain, principal, users } = world;
      const bad = await unregisteredAsset(world);
      const entry = { assetId: bad, mintingBlob: "0x35", amount: 1, dataAvailabilityMode: mode };
      await engine.mint(principal, { users: [{ userId: at(users, 0).userId, mints: [entry] }] });
      await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
      await chain.mine(25);
      expect((await settler.round()).committed).toBe(1);
      await expectOneHistory(world);
    });
  },
);

describe("a batch that was on its way", () => {
  test("loses a slot only when what was sent can no longer be mined", async () => {
    world = await createWorld();
    const { engine, settler, chain } = world;
    const bad = await unregisteredAsset(world);
    await mintAround(world, bad, "zk-rollup");
    await engine.operator.seal("zk-rollup");
    await engine.operator.recordSubmitted("zk-rollup", 0, `0x${"77".repeat(32)}`);
    const sent = () => chain.sentByOperator();
    const before = await sent();
    await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
    expect(await sent()).toBe(before + 8);
    await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
    expect(await sent()).toBe(before + 8);
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("submitted");
    await chain.mine(25);
    await settler.round();
    await expectOneHistory(world);
  });
});

describe("a batch that L1 refuses for other reasons", () => {
  test("keeps all its slots", async () => {
    world = await createWorld();
    const { engine, settler, chain } = world;
    const vaultId = await world.mint("erc721", "zk-rollup", "8");
    await pauseCommits(world, true);
    for (let i = 0; i < 2; i++) {
      await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
      await chain.mine(25);
    }
    await pauseCommits(world, false);
    expect((await settler.round()).committed).toBe(1);
    expect(await engine.proofs.vault(vaultId)).toMatchObject({ header: expect.anything() });
    await expectOneHistory(world);
  });
});

describe("a rollup batch that is more than a block can carry", () => {
  // A void slot costs nearly the gas of a vault, so making the last ones void would not help.
  test("waits with all its slots, and is committed once a block has room for it", async () => {
    world = await createWorld();
    const { engine, settler, chain, l1, principal, users, assets } = world;
    const vaults = 400;
    const mints = Array.from({ length: vaults }, (_, i) => ({
      assetId: assets.get(i % 2 === 0 ? "erc721" : "erc1155"),
      mintingBlob: `0x${Buffer.from(`${100_000 + i}`).toString("hex")}`,
      amount: 1,
      dataAvailabilityMode: "zk-rollup",
    }));
    const minted = await engine.mint(principal, {
      users: [{ userId: at(users, 0).userId, mints }],
    } as unknown);
    const limitBlocks = (gas: number) => chain.rpc("evm_setBlockGasLimit", [toHex(gas)]);
    await limitBlocks(187_500);
    for (let i = 0; i < 2; i++) {
      await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
      await chain.mine(25);
    }
    await limitBlocks(30_000_000);
    await chain.mine(1);
    expect((await settler.round()).committed).toBe(1);
    expect(await l1.state()).toMatchObject(engine.batches.state());

    const { applicationId } = principal;
    const statuses = await Promise.all(
      minted.vaults.map(
        async ({ vaultId }) => (await engine.vaults.get(applicationId, vaultId)).status,
      ),
    );
    expect(statuses).toEqual(Array(vaults).fill("settled"));
    await expectOneHistory(world);
  });
});
