import { hexToBigInt, RpcError, toHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { type Chain, createWorld, type Request, type World } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

type Call = Parameters<Request>[0];
/** Answers in the chain's place; undefined lets the chain answer. */
type Answer = (call: Call, chain: Chain) => Promise<unknown> | undefined;

/** A chain behind an RPC that a test can make answer otherwise. */
async function behind(): Promise<{ answer: Answer }> {
  const rpc: { answer: Answer } = { answer: () => undefined };
  const request = (chain: Chain) =>
    (async (call: Call) => rpc.answer(call, chain) ?? chain.request(call as never)) as Request;
  world = await createWorld({ request });
  return rpc;
}

function logRange({ params }: Call): { fromBlock: bigint; toBlock: bigint } {
  const [{ fromBlock, toBlock }] = params as [{ fromBlock: `0x${string}`; toBlock: `0x${string}` }];
  return { fromBlock: hexToBigInt(fromBlock), toBlock: hexToBigInt(toBlock) };
}

describe("an RPC", () => {
  test("that takes few blocks a question for logs is asked for few", async () => {
    const rpc = await behind();
    const { chain, settler, engine } = world;
    const sizes: bigint[] = [];
    rpc.answer = (call) => {
      if (call.method !== "eth_getLogs") return undefined;
      const { fromBlock, toBlock } = logRange(call);
      if (toBlock - fromBlock < 10n) return void sizes.push(toBlock - fromBlock);
      return Promise.reject(
        new RpcError(new Error("ranges over 10 blocks need a paid plan"), {
          code: -32600,
          shortMessage: "",
        }),
      );
    };
    await world.mint("erc20", "zk-rollup", "", 5);
    await chain.mine(95);
    await settler.round();
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
    expect(sizes.length).toBeGreaterThan(10);
  });

  test("whose lagging node answered without the newest logs is found out when the block is final", async () => {
    const rpc = await behind();
    const { chain, settler, engine, principal } = world;
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await settler.round();
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
    rpc.answer = ({ method }) => (method === "eth_getLogs" ? Promise.resolve([]) : undefined);
    await settler.round();
    const statusOf = async () =>
      (await engine.withdrawals.get(principal.applicationId, withdrawalId)).status;
    expect(await statusOf()).toBe("submitted");
    rpc.answer = () => undefined;
    await chain.mine(40);
    await expect(settler.round()).rejects.toThrow("disagree on the events of block");
    await settler.round();
    expect(await statusOf()).toBe("finalized");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("whose nodes differ about the newest block gives the state of one of them", async () => {
    const rpc = await behind();
    const { settler, l1 } = world;
    const before = await l1.state();
    const older = toHex(await l1.blockNumber());
    await world.mint("erc20", "validium", "", 50);
    await settler.round();
    const after = await l1.state();
    expect(after).not.toEqual(before);
    // Every other question goes to a node on which the commit is not in this block.
    let asked = 0;
    rpc.answer = (call, chain) => {
      if (call.method !== "eth_call" || ++asked % 2 === 0) return undefined;
      const [request, , ...more] = call.params as unknown[];
      return chain.request({ method: "eth_call", params: [request, older, ...more] } as never);
    };
    expect([await l1.state(), await l1.state()]).toEqual([before, after]);
  });

  test("whose node is behind for a while takes nothing back", async () => {
    const rpc = await behind();
    const { chain, engine, l1, committee } = world;
    const settler = chain.newSettler({ engine, l1, committee, lagMs: 60_000 });
    await settler.round();
    const before = await l1.blockNumber();
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await settler.round();
    const reverted: string[] = [];
    engine.events.on("batchReverted", ({ batchId }) => reverted.push(batchId));
    let asked = 0;
    rpc.answer = ({ method, params }) => {
      if (asked >= 2 || method !== "eth_blockNumber") {
        const [block] = (params ?? []) as unknown[];
        return method === "eth_getBlockByNumber" && asked < 2 && block !== "latest"
          ? Promise.resolve(null)
          : undefined;
      }
      asked++;
      return Promise.resolve(`0x${before.toString(16)}`);
    };
    await settler.round();
    expect(asked).toBe(2);
    expect(reverted).toEqual([]);
    expect(await world.transactionStatus(vaultId)).toBe("settled");
  });
});
