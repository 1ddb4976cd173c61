import { erc20Abi, erc721Abi, toHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { at, createWorld, expectOneHistory, MATURITY, type World } from "./fixture.ts";

let world: World;
const start = async () => {
  world = await createWorld();
  return world;
};
afterEach(() => world.close());

describe("a settler", () => {
  test("brings mints of both modes to L1, and L1's roots are the engine's", async () => {
    const { settler, engine, chain } = await start();
    const rollup = await world.mint("erc721", "zk-rollup", "1");
    const validium = await world.mint("erc20", "validium", "", 500);
    expect(await settler.round()).toEqual({ sealed: 2, committed: 2, withdrawn: 0 });

    await expectOneHistory(world);
    expect(engine.batches.state()).toMatchObject({ countValidium: 1, countRollup: 1 });
    for (const vaultId of [rollup, validium])
      expect(await world.transactionStatus(vaultId)).toBe("settled");

    await chain.mine(30);
    await settler.round();
    for (const vaultId of [rollup, validium])
      expect(await world.transactionStatus(vaultId)).toBe("finalized");
  });

  test("withdraws on the owner's signature: ERC-20 at once, ERC-721 when its vault has matured", async () => {
    const { settler, engine, chain, principal, users } = await start();
    const sword = await world.mint("erc721", "validium", "77");
    const points = await world.mint("erc20", "zk-rollup", "", 500);
    await settler.round();
    const swordWithdrawal = await world.requestWithdrawal(sword);
    const pointsWithdrawal = await world.requestWithdrawal(points, 200n);
    expect((await settler.round()).withdrawn).toBe(1);

    const owner = at(users, 0).owner.address;
    const [erc20, erc721] = chain.tokens.map(({ address }) => address);
    const balance = { abi: erc20Abi, functionName: "balanceOf", args: [owner] } as const;
    expect(await chain.client.readContract({ ...balance, address: erc20 ?? "0x" })).toBe(200_000n);
    const statusOf = async (id: string) =>
      (await engine.withdrawals.get(principal.applicationId, id)).status;
    expect(await statusOf(pointsWithdrawal.withdrawalId)).toBe("settled");
    expect(await statusOf(swordWithdrawal.withdrawalId)).toBe("accepted");
    expect(await engine.vaults.get(principal.applicationId, points)).toMatchObject({
      withdrawnBalance: 200n,
      availableBalance: 300n,
    });

    await chain.passSeconds(MATURITY);
    expect((await settler.round()).withdrawn).toBe(1);
    const ownerOf = { abi: erc721Abi, functionName: "ownerOf", args: [77n] } as const;
    expect(await chain.client.readContract({ ...ownerOf, address: erc721 ?? "0x" })).toBe(owner);
    expect(await statusOf(swordWithdrawal.withdrawalId)).toBe("settled");
  });

  test("pays 20 vaults of one owner, who signed once, by one transaction; those that cannot be paid stop no other", async () => {
    const { settler, engine, chain, principal } = await start();
    const vaults = [];
    for (let id = 1; id <= 21; id++)
      vaults.push(await world.mint(id === 21 ? "erc721" : "erc1155", "validium", `${id}`));
    await settler.round();
    // The ERC-721 is immature and waits.
    await world.requestList(vaults);
    const before = await chain.sentByOperator();
    expect((await settler.round()).withdrawn).toBe(20);
    expect(await chain.sentByOperator()).toBe(before + 1);
    const { data } = await engine.withdrawals.list(principal.applicationId);
    expect(data.map(({ status }) => status)).toEqual(["accepted", ...Array(20).fill("settled")]);
    expect(new Set(data.slice(1).map(({ l1TxHash }) => l1TxHash)).size).toBe(1);
    await chain.passSeconds(MATURITY);
    expect((await settler.round()).withdrawn).toBe(1);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("relays what is ready in smaller groups where a block cannot carry a group of 20", async () => {
    const { settler, chain } = await start();
    const vaults = [];
    for (let id = 1; id <= 16; id++)
      vaults.push(await world.mint("erc1155", "zk-rollup", String(id)));
    await settler.round();
    for (const vaultId of vaults) await world.requestWithdrawal(vaultId);
    await chain.rpc("evm_setBlockGasLimit", [toHex(8_000_000)]);
    await chain.mine(1);
    expect((await settler.round()).withdrawn).toBe(16);
  });

  test("shows a withdrawal that the owner made on its own", async () => {
    const { settler, engine, principal } = await start();
    const points = await world.mint("erc20", "validium", "", 900);
    await settler.round();
    await world.withdrawAlone(points, 300n);
    await settler.round();
    expect(await engine.vaults.get(principal.applicationId, points)).toMatchObject({
      withdrawnBalance: 300n,
      availableBalance: 600n,
    });
  });
});
