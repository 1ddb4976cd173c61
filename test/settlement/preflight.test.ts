import hre from "hardhat";
import { createWalletClient, type Hex, pad, toHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import type { Mode, Standard } from "../../core/index.ts";
import { Preflight } from "../../core/settlement/preflight.ts";
import { send } from "../../scripts/deploy/deployer.ts";
import { deployToken, type TokenConfig } from "../../scripts/deploy/token.ts";
import { ADMIN } from "../../scripts/sandbox/accounts.ts";
import { at, createWorld, expectOneHistory, readyAsset, refusing, type World } from "./fixture.ts";

const CONTRACT = {
  erc20: "MintableERC20",
  erc721: "MintableERC721",
  erc1155: "MintableERC1155",
} as const;

let world: World;
afterEach(() => world.close());

/** A world in which the tokens of some standards are others, whose minter role is not locked. */
async function withToken(config: Pick<TokenConfig, "standard" | "cap">, blocksAbove = 20) {
  world = await createWorld();
  const { chain, engine, principal, l1, committee } = world;
  const token = { ...config, name: "Open", symbol: "OPN", admin: ADMIN.address, lockMinter: false };
  const { address, quantum } = await deployToken(chain.by, chain.settlement.address, token);
  await chain.mine(blocksAbove);
  const { standard } = config;
  const names = { name: "Open", symbol: "OPN" };
  const assetId = await readyAsset(engine, principal.applicationId, {
    standard,
    contractAddress: address,
    quantum,
    ...names,
  });
  let later = 0;
  const settler = chain.newSettler({ engine, l1, committee, clock: () => Date.now() + later });
  const role = await chain.client.readContract({
    abi: [
      {
        type: "function",
        name: "MINTER_ROLE",
        inputs: [],
        outputs: [{ type: "bytes32" }],
        stateMutability: "view",
      },
    ],
    address,
    functionName: "MINTER_ROLE",
  });
  return {
    settler,
    asset: () => engine.assets.get(principal.applicationId, assetId),
    mint: (text: string, amount = 1, mode: Mode = "validium") =>
      ({ ...world, assets: new Map<Standard, string>([[standard, assetId]]) }).mint(
        standard,
        mode,
        text,
        amount,
      ),
    assetId,
    call: (name: string, args: readonly unknown[]) =>
      send(chain.by, CONTRACT[standard], address, name, args),
    role,
    settlement: chain.settlement.address,
    pass: (ms: number) => {
      later += ms;
    },
  };
}

describe("a foreign ERC-1155 token", () => {
  /** A StarkExpress token that its owner has registered; 32 bytes are an id. */
  async function foreign() {
    let calls = 0;
    world = await createWorld({
      request: ({ request }) =>
        ((call: { method: string }) => {
          calls += call.method === "eth_call" ? 1 : 0;
          return request(call as never);
        }) as typeof request,
    });
    const { chain, engine, principal } = world;
    const { abi, bytecode } = await hre.artifacts.readArtifact("StarkExpressERC1155");
    const wallet = createWalletClient({ account: ADMIN, transport: chain.transport });
    const deployment = {
      abi,
      bytecode: bytecode as Hex,
      args: [chain.settlement.address],
      chain: null,
    } as const;
    const hash = await wallet.deployContract(deployment);
    const { contractAddress } = await chain.client.waitForTransactionReceipt({ hash });
    const address = contractAddress ?? "0x";
    const registration = [3, BigInt(chain.by.chainId), address, 1n, 2] as const;
    await send(
      chain.by,
      "StateCommitment",
      chain.settlement.address,
      "registerAsset",
      registration,
    );
    await chain.mine(20);
    const names = { name: "Foreign", symbol: "FRN" };
    const facts = {
      standard: "erc1155",
      contractAddress: address,
      mintingBlobScheme: "raw32",
    } as const;
    const assetId = await readyAsset(engine, principal.applicationId, { ...facts, ...names });
    const mintIds = (ids: readonly number[], user = 0) =>
      engine.mint(principal, {
        users: [
          {
            userId: at(world.users, user).userId,
            mints: ids.map((id) => ({
              ...{
                assetId,
                mintingBlob: pad(toHex(id)),
                amount: 2,
                dataAvailabilityMode: "validium",
              },
            })),
          },
        ],
      } as unknown);
    const setLimit = (id: bigint) =>
      wallet.writeContract({ abi, address, functionName: "setLimit", args: [id], chain: null });
    let later = 0;
    const { l1, committee } = world;
    const settler = chain.newSettler({ engine, l1, committee, clock: () => Date.now() + later });
    const pass = (ms: number) => {
      later += ms;
    };
    return { mintIds, setLimit, settler, pass, asked: () => calls };
  }

  test("that refuses committed vaults has them shown so, until it takes them again or they are withdrawn", async () => {
    const { mintIds, setLimit, settler, pass } = await foreign();
    const { engine, chain, principal } = world;
    await mintIds([0, 1, 2, 3]);
    await mintIds([3], 1);
    await settler.round();
    await setLimit(2n);
    await chain.mine(30);
    await settler.round();
    const shown = async () => {
      const { data } = await engine.vaults.list(principal.applicationId);
      return data.map(
        ({ vaultId, status, refusal }) =>
          `${vaultId} ${status} ${refusal?.includes("limit") ?? "pays"}`,
      );
    };
    const [kept, refused] = [
      ["0 finalized pays", "1 finalized pays"],
      ["2", "3", "4"].map((id) => `${id} finalized true`),
    ];
    expect(await shown()).toEqual([...kept, ...refused]);
    expect((await engine.operator.verify()).problems).toEqual([]);
    await setLimit(3n);
    await chain.mine(30);
    pass(600_001);
    await settler.round();
    expect(await shown()).toEqual([...kept, "2 finalized pays", ...refused.slice(1)]);
    await setLimit(10n);
    await world.requestWithdrawal(3n);
    await settler.round();
    expect((await shown())[3]).toBe("3 finalized pays");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("has each of its ids tried before the commit in few calls; those that it refuses fail for all who hold them", async () => {
    const { mintIds, setLimit, asked } = await foreign();
    await setLimit(298n);
    await world.chain.mine(20);
    await mintIds(Array.from({ length: 300 }, (_, id) => id));
    await mintIds([5, 299], 1);
    const before = asked();
    expect((await world.settler.round()).committed).toBe(1);
    expect(asked() - before).toBeLessThan(120);
    const { applicationId } = world.principal;
    const { data } = await world.engine.transactions.list(applicationId, { status: "failed" });
    expect(data.map(({ vaultId }) => vaultId).toSorted()).toEqual([298n, 299n, 301n]);
    for (const { failure } of data) expect(failure).toContain("limit");
    expect((await world.engine.vaults.get(applicationId, 300n)).status).toBe("settled");
  });

  test("has at most 4,096 ids in a batch, so that all can be tried; a token of this project has more", async () => {
    const { mintIds } = await foreign();
    await mintIds(Array.from({ length: 4_096 }, (_, id) => id));
    await mintIds([7, 4_095], 1);
    expect(world.engine.batches.getOpen("validium")).toMatchObject({
      batchNumber: 0,
      vaultCount: 4_098,
    });
    await mintIds([4_096]);
    expect(world.engine.batches.getOpen("validium")).toMatchObject({
      batchNumber: 1,
      vaultCount: 1,
    });
  });
});

test("two hundred assets are looked at in few rounds of calls, and not one after another", async () => {
  const asked = { calls: 0, rounds: 0, underWay: 0 };
  let most = 0;
  world = await createWorld({
    request: ({ request }) =>
      (async (...args: Parameters<typeof request>) => {
        asked.calls++;
        if (++asked.underWay === 1) asked.rounds++;
        most = Math.max(most, asked.underWay);
        try {
          return await request(...args);
        } finally {
          asked.underWay--;
        }
      }) as typeof request,
  });
  const { engine, l1 } = world;
  const count = 200;
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const contractAddress = `0x${(0xabc000 + i).toString(16).padStart(40, "0")}` as const;
    const { assetId } = await engine.assets.add({
      standard: "erc721",
      contractAddress,
      name: "None",
      symbol: "NON",
    });
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId);
    ids.push(assetId);
  }
  Object.assign(asked, { calls: 0, rounds: 0 });
  most = 0;
  expect(await new Preflight(engine, l1, Date.now).checkAssets()).toBe(count + world.assets.size);
  // No token, so no minter role: one call each, beside the registrations, the block, and what the
  // world's own tokens are asked.
  expect(asked.calls).toBeLessThan(count + 20);
  expect(asked.rounds).toBeLessThan(count / 4);
  expect(most).toBeGreaterThan(8);
  expect(most).toBeLessThanOrEqual(16);
  for await (const { assetId, unavailableReason } of engine.operator.assets()) {
    if (ids.includes(assetId))
      expect(unavailableReason).toContain("has no final registration of it");
  }
});

describe("a mint that L1 would refuse", () => {
  test("is refused here while the settlement contract is not the token's minter, and taken again when it is", async () => {
    const token = await withToken({ standard: "erc721" });
    await token.settler.round();
    expect((await token.asset()).mintingAvailable).toBe(true);
    await token.call("revokeRole", [token.role, token.settlement]);
    token.pass(600_001);
    await token.settler.round();
    expect(await token.asset()).toMatchObject({
      mintingAvailable: false,
      unavailableReason: expect.stringContaining("does not hold the minter role"),
    });
    await expect(token.mint("1")).rejects.toMatchObject({ code: "mint_unwithdrawable" });
    await token.call("grantRole", [token.role, token.settlement]);
    token.pass(60_001);
    await token.settler.round();
    expect((await token.asset()).mintingAvailable).toBe(true);
    await token.mint("1");
  });

  test("is refused here until the token's registration is final, since one that is lost may come again too late", async () => {
    const token = await withToken({ standard: "erc721" }, 0);
    await token.settler.round();
    expect((await token.asset()).unavailableReason).toContain("has no final registration of it");
    await expect(token.mint("1")).rejects.toMatchObject({ code: "mint_unwithdrawable" });
    await world.chain.mine(20);
    token.pass(60_001);
    await token.settler.round();
    await token.mint("1");
    await token.settler.round();
    expect(world.engine.batches.state().countValidium).toBe(1);
  });

  test.each([
    ["loops for ever", "0x5b600056", "out of gas"],
    ["is no code", "0xfe", "invalid opcode"],
    [
      "says more than anybody reads, over many lines",
      refusing("No.\n\u0000".repeat(2_000)),
      "No. ",
    ],
  ] as const)(
    "because the token %s makes the token unavailable, and nothing else",
    async (_, code, reason) => {
      const token = await withToken({ standard: "erc20" });
      await token.settler.round();
      const { contractAddress } = await token.asset();
      const before = await world.chain.client.getCode({ address: contractAddress });
      await world.chain.rpc("hardhat_setCode", [contractAddress, code]);
      await token.mint("", 1, "zk-rollup");
      await world.mint("erc721", "zk-rollup", "1");
      expect((await token.settler.round()).committed).toBe(1);
      expect(await token.asset()).toMatchObject({
        mintingAvailable: false,
        unavailableReason: expect.stringContaining(reason),
      });
      await world.chain.rpc("hardhat_setCode", [contractAddress, before]);
      token.pass(60_001);
      await token.settler.round();
      expect((await token.asset()).mintingAvailable).toBe(true);
    },
  );

  test("because the token is on L1 already fails with its owner named, and the batch goes on without it", async () => {
    const token = await withToken({ standard: "erc721" });
    await token.call("grantRole", [token.role, ADMIN.address]);
    await token.call("mintFor", [ADMIN.address, 1n, toHex("7")]);
    await world.chain.mine(25);
    const [taken, free] = [await token.mint("7"), await token.mint("8")];
    await token.settler.round();
    const { applicationId } = world.principal;
    expect((await world.engine.batches.get("validium", 0)).status).toBe("settled");
    expect((await world.engine.vaults.get(applicationId, free)).status).toBe("settled");
    const { data } = await world.engine.transactions.list(applicationId, { vaultId: taken });
    expect(at(data, 0)).toMatchObject({
      status: "failed",
      failure: expect.stringContaining("exists on L1 already"),
    });
    expect((await token.asset()).mintingAvailable).toBe(true);
    await expectOneHistory(world);
  });

  test("is found among hundreds in one batch", async () => {
    const token = await withToken({ standard: "erc721" });
    await token.call("grantRole", [token.role, ADMIN.address]);
    await token.call("mintFor", [ADMIN.address, 1n, toHex("299")]);
    await world.chain.mine(25);
    const minted = [];
    for (let id = 0; id < 300; id++) minted.push(await token.mint(`${id}`));
    expect((await token.settler.round()).committed).toBe(1);
    const { applicationId } = world.principal;
    const { data } = await world.engine.transactions.list(applicationId, { status: "failed" });
    expect(data.map(({ vaultId }) => vaultId)).toEqual([at(minted, 299)]);
  });

  test("because the token's cap leaves too little for all of the batch stops further mints", async () => {
    const token = await withToken({ standard: "erc20", cap: 100n });
    await token.call("grantRole", [token.role, ADMIN.address]);
    await token.call("mintFor", [ADMIN.address, 60n, "0x"]);
    await token.mint("", 30);
    await token.settler.round();
    expect((await token.asset()).mintingAvailable).toBe(true);
    await token.mint("", 50);
    await token.settler.round();
    expect((await token.asset()).unavailableReason).toContain("ERC20ExceededCap(110, 100)");
    await expect(token.mint("", 1)).rejects.toMatchObject({ code: "mint_unwithdrawable" });
  });

  test("because batches that fit one by one are together more than its cap, is found when the last is sealed", async () => {
    const token = await withToken({ standard: "erc20", cap: 100n });
    const { engine, chain, l1, committee } = world;
    await token.mint("", 60, "zk-rollup");
    await token.settler.round();
    expect((await token.asset()).mintingAvailable).toBe(true);
    await token.mint("", 60, "zk-rollup");
    await token.settler.round();
    const reason = "120 base units have been minted in all batches, more than its cap of 100";
    expect((await token.asset()).unavailableReason).toContain(reason);
    await expect(token.mint("", 1)).rejects.toMatchObject({ code: "mint_unwithdrawable" });
    // A new process knows nothing of it, and counts the same again.
    await engine.operator.recordMintingFault(token.assetId, null);
    await chain.newSettler({ engine, l1, committee }).round();
    expect((await token.asset()).unavailableReason).toContain(reason);
  });

  test("for its cap, after its batch was sealed, holds up no batch: members would sign nothing of it, so it becomes void", async () => {
    const token = await withToken({ standard: "erc20", cap: 100n });
    const { engine, principal } = world;
    const kept = await token.mint("", 60);
    await token.settler.round();
    const lost = await token.mint("", 60);
    const beside = await world.mint("erc721", "validium", "1");
    for (let round = 0; round < 4; round++) {
      await token.settler.round().catch(() => {});
      await world.chain.mine(25);
    }
    const statusOf = async (vaultId: bigint) =>
      (await engine.vaults.get(principal.applicationId, vaultId)).status;
    expect(await Promise.all([kept, beside].map(statusOf))).toEqual(["finalized", "finalized"]);
    const { data } = await engine.transactions.list(principal.applicationId, { vaultId: lost });
    expect(at(data, 0)).toMatchObject({
      status: "failed",
      failure: expect.stringContaining("cap of 100"),
    });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
