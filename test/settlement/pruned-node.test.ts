import { encodeFunctionData, parseAbi, toHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { follow, rebuild } from "../../core/archive/index.ts";
import { MintmarkError } from "../../core/index.ts";
import type { CommitterOptions } from "../../core/l1/committer.ts";
import { openArchive, sourceOf } from "../archive/fixture.ts";
import { FaultyNode } from "../faulty-node.ts";
import { at, createWorld, type World } from "./fixture.ts";

const USUAL = { pruned: 128, finalized: 600 };

let world: World;
afterEach(() => world.close());

/** A chain of some hundred blocks behind a node that is no archive node. */
async function behindOrdinaryNode(): Promise<FaultyNode> {
  const nodes: FaultyNode[] = [];
  world = await createWorld({
    request: (chain) => {
      const node = new FaultyNode(chain);
      node.faults = { finalized: 0 };
      nodes.push(node);
      return node.request;
    },
    fees: { finality: "finalized" } as CommitterOptions,
  });
  await world.chain.mine(700);
  const node = at(nodes, 0);
  node.faults = USUAL;
  return node;
}

/** The settlement contract itself mints, as nobody else can. */
async function mintOnL1(text: string): Promise<void> {
  const { chain } = world;
  const from = chain.settlement.address;
  const to = at(chain.tokens, 1).address;
  const data = encodeFunctionData({
    abi: parseAbi(["function mintFor(address to, uint256 quantity, bytes mintingBlob)"]),
    args: [`0x${"4a".repeat(20)}`, 1n, toHex(text)],
  });
  await chain.rpc("hardhat_impersonateAccount", [from]);
  await chain.rpc("hardhat_setBalance", [from, toHex(10n ** 18n)]);
  await chain.rpc("eth_sendTransaction", [{ from, to, data }]);
}

describe("a node that keeps 128 states, with final blocks 600 behind,", () => {
  test("is enough for a server, its members, an archive and a rebuild", async () => {
    const node = await behindOrdinaryNode();
    const { engine, settler, l1, chain, members, principal } = world;
    await mintOnL1("900002");
    await chain.mine(120);
    const taken = await world.mint("erc721", "validium", "900002");
    const free = await world.mint("erc721", "validium", "900003");
    await world.mint("erc20", "zk-rollup", "", 50);
    await settler.round();
    expect(await world.transactionStatus(free)).toBe("settled");
    const { applicationId } = principal;
    const { data } = await engine.transactions.list(applicationId, { vaultId: taken });
    expect(at(data, 0)).toMatchObject({
      status: "failed",
      failure: expect.stringContaining("exists on L1 already"),
    });
    await chain.mine(650);
    await settler.round();
    await settler.round();
    expect(await world.transactionStatus(free)).toBe("finalized");
    const archive = await openArchive(world);
    const options = {
      archive,
      l1,
      fromBlock: chain.settlement.deployedAtBlock,
      sources: members.map(sourceOf),
    };
    await follow(options);
    const later = await world.mint("erc721", "zk-rollup", "900004");
    await settler.round();
    expect(await world.transactionStatus(later)).toBe("settled");
    expect((await rebuild(options)).batches).toEqual({ validium: 1, "zk-rollup": 1 });
    expect(node.asked.get("eth_call")).toBeGreaterThan(10);
  });

  test.each([
    ["nethermind", "No state available"],
    ["hosted", "Internal error"],
  ] as const)(
    "of which even newer states are gone holds commits back, until it has them (%s)",
    async (client, words) => {
      const node = await behindOrdinaryNode();
      const { settler } = world;
      const vaultId = await world.mint("erc721", "zk-rollup", "7");
      node.faults = { ...USUAL, pruned: 50, client };
      for (let round = 0; round < 3; round++) await expect(settler.round()).rejects.toThrow(words);
      expect(await world.transactionStatus(vaultId)).toBe("batched");
      node.faults = USUAL;
      await settler.round();
      expect(await world.transactionStatus(vaultId)).toBe("settled");
    },
  );

  test("that fails while a batch is examined leaves the examination to the next process", async () => {
    const node = await behindOrdinaryNode();
    const { chain, engine, settler, l1, committee } = world;
    await mintOnL1("900005");
    await chain.mine(700);
    const taken = await world.mint("erc721", "zk-rollup", "900005");
    const free = await world.mint("erc721", "zk-rollup", "900006");
    node.faults = { ...USUAL, pruned: 50, client: "hosted" };
    await expect(settler.round()).rejects.toThrow("Internal error");
    expect(await world.transactionStatus(taken)).toBe("batched");
    node.faults = USUAL;
    const next = chain.newSettler({ engine, l1, committee });
    // An earlier process may have sent the batch, so no slot of it becomes void before it cannot be
    // mined.
    await expect(next.round()).rejects.toThrow("become void when no earlier transaction");
    expect(await world.transactionStatus(taken)).toBe("batched");
    await chain.mine(700);
    await next.round();
    expect(await world.transactionStatus(taken)).toBe("failed");
    expect(await world.transactionStatus(free)).toBe("settled");
  });
});

describe("a node that answers small questions and fails at the owners of a token's ids", () => {
  /** A mint whose id is on L1 already, and a settler before that node. */
  async function beforeTaken() {
    world = await createWorld();
    const { chain, engine, l1, committee } = world;
    await mintOnL1("900002");
    await chain.mine(200);
    const taken = await world.mint("erc721", "zk-rollup", "900002");
    const node = { now: 0, fails: true };
    const { tokenOwners } = l1;
    Object.assign(l1, {
      tokenOwners: async (...question: Parameters<typeof tokenOwners>) => {
        if (node.fails) throw new MintmarkError("l1_failed", "asking for owners: HTTP 504");
        return tokenOwners.apply(l1, question);
      },
    });
    const settler = chain.newSettler({ engine, l1, committee, clock: () => node.now });
    return { node, settler, taken };
  }

  test("holds the batch back until they are known", async () => {
    const { node, settler, taken } = await beforeTaken();
    const free = await world.mint("erc721", "zk-rollup", "900003");
    for (node.now = 0; node.now < 300_000; node.now += 100_000)
      await expect(settler.round()).rejects.toThrow("HTTP 504");
    expect(await world.transactionStatus(taken)).toBe("batched");
    node.fails = false;
    await settler.round();
    expect(await world.transactionStatus(taken)).toBe("failed");
    expect(await world.transactionStatus(free)).toBe("settled");
  });

  test("holds the batch back for five minutes, because a token can be made to have no answer", async () => {
    const { node, settler, taken } = await beforeTaken();
    const other = await world.mint("erc20", "zk-rollup", "", 50);
    await expect(settler.round()).rejects.toThrow("HTTP 504");
    node.now = 300_000;
    await settler.round();
    expect(await world.transactionStatus(other)).toBe("settled");
    expect(await world.transactionStatus(taken)).toBe("settled");
    // A failure much later is another one. The asset is mintable again before it.
    node.now = 900_000;
    await settler.round();
    const later = await world.mint("erc721", "zk-rollup", "900004");
    await expect(settler.round()).rejects.toThrow("HTTP 504");
    expect(await world.transactionStatus(later)).toBe("batched");
  });
});
