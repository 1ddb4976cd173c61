import { type Hex, parseGwei, parseTransaction } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { FaultyNode } from "../faulty-node.ts";
import { at, createWorld, type World } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

const CLIENTS = ["geth", "erigon", "nethermind", "crowded", "unheard"] as const;

async function sealed(): Promise<void> {
  world = await createWorld();
  await world.mint("erc721", "zk-rollup", "1");
  await world.engine.operator.seal("zk-rollup");
  await world.chain.rpc("evm_setAutomine", [false]);
}

/** Leaves a transaction of an earlier process at the operator's next nonce. */
async function leave(fee: bigint): Promise<Hex> {
  const { client, sentByOperator } = world.chain;
  const serializedTransaction = await OPERATOR.signTransaction({
    ...{ type: "eip1559", chainId: 31_337, nonce: await sentByOperator(), gas: 21_000n },
    ...{ to: OPERATOR.address, maxFeePerGas: fee, maxPriorityFeePerGas: fee },
  });
  return client.sendRawTransaction({ serializedTransaction });
}

describe.each(CLIENTS)("a node in the words of %s", (client) => {
  test("has a stuck transaction of an earlier process replaced, by a quarter more each time", async () => {
    await sealed();
    const { chain, engine, committee } = world;
    const left = await leave(parseGwei("20"));
    const node = new FaultyNode(chain);
    node.faults = { client };
    const l1 = await chain.connectOperator(node.request, { replaceAfterMs: 30 });
    const round = chain.newSettler({ engine, l1, committee }).round();
    await expect.poll(chain.pendingHashes).not.toContain(left);
    const fees = node.offered.map((raw) => parseTransaction(raw).maxFeePerGas ?? 0n);
    expect(fees.length).toBeGreaterThan(2);
    for (const [i, fee] of fees.slice(1).entries())
      expect(fee).toBe((at(fees, i) * 125n) / 100n + 1n);
    await chain.rpc("evm_setAutomine", [true]);
    await chain.mine(1);
    await round;
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
    expect(await chain.sentByOperator()).toBe(1);
  });

  test("whose answer was lost has the transaction that it was given, once", async () => {
    await sealed();
    const { chain, engine, committee } = world;
    const node = new FaultyNode(chain);
    const l1 = await chain.connectOperator(node.request, { replaceAfterMs: 60_000 });
    node.faults = { client, lostAnswers: true };
    const round = chain.newSettler({ engine, l1, committee }).round();
    await expect.poll(async () => (await chain.pendingHashes()).length).toBe(1);
    await expect
      .poll(async () => (await engine.batches.get("zk-rollup", 0)).status)
      .toBe("submitted");
    await chain.rpc("evm_setAutomine", [true]);
    await chain.mine(1);
    await round;
    expect(new Set(node.offered).size).toBe(1);
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
  });

  test("tells an account without money by the node's words", async () => {
    await sealed();
    const { chain, engine, committee } = world;
    await chain.rpc("hardhat_setBalance", [OPERATOR.address, "0x1"]);
    const node = new FaultyNode(chain);
    node.faults = { client };
    const l1 = await chain.connectOperator(node.request);
    const words = client === "unheard" ? "rejected" : /insufficient ?funds/i;
    await expect(chain.newSettler({ engine, l1, committee }).round()).rejects.toThrow(words);
  });
});
