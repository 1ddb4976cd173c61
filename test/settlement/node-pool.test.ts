import { toHex } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { FaultyNode } from "../faulty-node.ts";
import { type Chain, createWorld, type Request, type World } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

/** A chain behind a node that a test can make faulty. */
async function behind(timeout?: number): Promise<FaultyNode> {
  let node: FaultyNode | undefined;
  const request = (chain: Chain) => {
    node ??= new FaultyNode(chain, timeout);
    return node.request;
  };
  world = await createWorld({ request });
  return node as unknown as FaultyNode;
}

describe("an RPC", () => {
  test("that takes few blocks a question for logs is asked for few", async () => {
    const node = await behind();
    const { chain, settler, engine } = world;
    node.faults = { logs: { blocks: 10, wider: "plan" } };
    await world.mint("erc20", "zk-rollup", "", 5);
    await chain.mine(95);
    await settler.round();
    expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
    expect(node.asked.get("eth_getLogs")).toBeGreaterThan(10);
  });

  test.each(["gateway", "silence", "infura"] as const)(
    "that answers a wide question for logs by %s is asked for less until the server is up to date",
    async (wider) => {
      const node = await behind(300);
      const { chain, settler, engine } = world;
      await chain.mine(150);
      await world.mint("erc20", "zk-rollup", "", 5);
      node.faults = { logs: { blocks: 20, wider } };
      await settler.round();
      expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
      // No wide question is asked twice: halved until it fits, then a few times more.
      expect(node.asked.get("eth_getLogs")).toBeLessThan(50);
    },
  );

  test.each([
    "crash",
    "badGateway",
    "overload",
    "cloudflare",
    "handshake",
    "nothing",
    "half",
    "cut",
  ] as const)(
    "that ends a wide question for logs by %s is asked for less after a repeat",
    async (wider) => {
      const node = await behind();
      const { chain, settler, engine } = world;
      await chain.mine(150);
      await world.mint("erc20", "zk-rollup", "", 5);
      node.faults = { logs: { blocks: 20, wider } };
      await settler.round();
      expect((await engine.batches.get("zk-rollup", 0)).status).toBe("settled");
      // Each wide question is asked three times: halved until it fits, then a few times more.
      expect(node.asked.get("eth_getLogs")).toBeLessThan(90);
    },
  );

  test("that is away is not asked for less and less", async () => {
    const node = await behind();
    const { chain, l1 } = world;
    await chain.mine(150);
    const newest = await l1.blockNumber();
    for (const faults of [{ down: true }, { status: 502 }]) {
      node.faults = faults;
      const before = node.asked.get("eth_getLogs") ?? 0;
      await expect(l1.events(0n, newest)).rejects.toMatchObject({ code: "l1_failed" });
      expect((node.asked.get("eth_getLogs") ?? 0) - before).toBeLessThan(4);
    }
    node.faults = {};
    const before = node.asked.get("eth_getLogs") ?? 0;
    await l1.events(0n, newest);
    expect((node.asked.get("eth_getLogs") ?? 0) - before).toBe(1);
  });

  test("that refuses a single block is not asked five times", async () => {
    const node = await behind();
    await world.settler.round();
    node.faults = { logs: { blocks: 0, wider: "plan" } };
    await world.chain.mine(1);
    const before = node.asked.get("eth_getLogs") ?? 0;
    await expect(world.settler.round()).rejects.toThrow("is limited to a 10 block range");
    expect((node.asked.get("eth_getLogs") ?? 0) - before).toBe(1);
  });

  test("without a finalized block is told, with the setting that does without", async () => {
    const node = await behind();
    node.faults = { noFinalized: true };
    const l1 = await world.chain.connectOperator(node.request, { finality: "finalized" });
    await expect(l1.finalizedBlockNumber()).rejects.toMatchObject({
      code: "l1_failed",
      message: expect.stringContaining("MINTMARK_CONFIRMATIONS"),
    });
    node.faults = { silent: true };
    await expect(l1.finalizedBlockNumber()).rejects.not.toThrow("MINTMARK_CONFIRMATIONS");
  });

  test("without new blocks is asked for the newest block and nothing else", async () => {
    const node = await behind();
    const { chain, engine, l1, committee } = world;
    const settler = chain.newSettler({ engine, l1, committee, intervalMs: 500 });
    const stopping = new AbortController();
    const running = settler.run(stopping.signal);
    const looks = () => node.asked.get("eth_getBlockByNumber") ?? 0;
    const all = () => [...node.asked.values()].reduce((sum, count) => sum + count, 0);
    await expect.poll(() => engine.operator.portal(31_337n).observed).not.toBeNull();
    // The first rounds catch up. Later ones, but for one in ten, ask for the newest block alone.
    const askedBeside = async () => {
      const [looked, asked] = [looks(), all()];
      await expect.poll(looks, { interval: 50 }).toBeGreaterThan(looked + 2);
      return all() - asked - (looks() - looked);
    };
    await expect.poll(askedBeside).toBe(0);
    // The engine answers at once meanwhile.
    const vaultId = await world.mint("erc20", "zk-rollup", "", 5);
    await expect.poll(() => world.transactionStatus(vaultId)).toBe("settled");
    await world.requestWithdrawal(vaultId, 5n);
    await expect.poll(chain.sentByOperator).toBe(2);
    stopping.abort();
    await running;
  });

  test("whose lagging node answered without the newest logs is found out when the block is final", async () => {
    const node = await behind();
    const { chain, settler, engine, principal } = world;
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await settler.round();
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
    node.faults = { emptyLogs: true };
    await settler.round();
    const statusOf = async () =>
      (await engine.withdrawals.get(principal.applicationId, withdrawalId)).status;
    expect(await statusOf()).toBe("submitted");
    node.heal();
    await chain.mine(40);
    await settler.round();
    await settler.round();
    expect(await statusOf()).toBe("finalized");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("whose nodes differ about the newest block gives the state of one of them", async () => {
    world = await createWorld();
    const { chain, settler } = world;
    const before = await world.l1.state();
    const older = toHex(await world.l1.blockNumber());
    await world.mint("erc20", "validium", "", 50);
    await settler.round();
    const after = await world.l1.state();
    expect(after).not.toEqual(before);
    // Every other question goes to a node on which the commit is not in this block.
    let asked = 0;
    const pool = async ({ method, params }: Parameters<Request>[0]) => {
      const [call, , ...more] = (params ?? []) as unknown[];
      const isBehind = method === "eth_call" && ++asked % 2 === 1;
      return chain.request({ method, params: isBehind ? [call, older, ...more] : params } as never);
    };
    const l1 = await chain.connectOperator(pool as Request);
    asked = 0;
    expect([await l1.state(), await l1.state()]).toEqual([before, after]);
  });

  test("whose node is behind for a while takes nothing back", async () => {
    const node = await behind();
    const { chain, engine, l1, committee } = world;
    const settler = chain.newSettler({ engine, l1, committee, lagMs: 60_000 });
    await settler.round();
    const before = await l1.blockNumber();
    const vaultId = await world.mint("erc20", "validium", "", 50);
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
    node.faults = { lag: Number((await l1.blockNumber()) - before) };
    const asked = () => node.asked.get("eth_blockNumber") ?? 0;
    const askedBefore = asked();
    const round = settler.round();
    await expect.poll(asked).toBeGreaterThan(askedBefore + 1);
    node.heal();
    await round;
    expect(reverted).toEqual([]);
    expect(await world.transactionStatus(vaultId)).toBe("settled");
  });
});
