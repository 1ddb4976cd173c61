import { MemoryLevel } from "memory-level";
import { afterEach, describe, expect, test } from "vitest";
import { openTest } from "../core/engine/fixture.ts";
import { FaultyNode } from "../faulty-node.ts";
import { at, createChain, createWorld, expectOneHistory, seed, type World } from "./fixture.ts";

let world: World;
let other: Awaited<ReturnType<typeof createChain>> | null = null;
afterEach(async () => {
  await world.close();
  await other?.close();
  other = null;
});

/** A world whose store takes a minute to believe that L1 contradicts it. */
async function behindNode() {
  const clock = { now: 0 };
  const nodes: FaultyNode[] = [];
  world = await createWorld({
    request: (chain) => {
      const node = new FaultyNode(chain);
      nodes.push(node);
      return node.request;
    },
    monotonic: () => clock.now,
    divergenceMs: 60_000,
  });
  return { clock, node: at(nodes, 0) };
}

/** Commits and a withdrawal on a store whose chain is final here and there. */
async function settled() {
  const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
  await world.settler.round();
  const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
  await world.settler.round();
  await world.chain.mine(30);
  await world.settler.round();
  return { vaultId, withdrawalId };
}

/** Another chain, whose contract has the same address and another history. */
async function anotherChain() {
  other = await createChain();
  expect(other.settlement.address).toBe(world.chain.settlement.address);
  const l1 = await other.connectOperator();
  await using engine = await openTest(new MemoryLevel(), { settlement: l1.settlement });
  const { committee } = world;
  const acts = { ...(await seed(engine, other)), engine };
  await acts.mint("erc721", "zk-rollup", "other");
  await other.newSettler({ engine, l1, committee }).round();
  await other.mine(100);
  return other;
}

/** A settler that looks twice, a minute apart. */
function lookingTwice(clock: () => number) {
  const { engine, l1, committee, chain } = world;
  return chain.newSettler({ engine, l1, committee, clock, secondLookMs: 60_000 });
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    ({ code }) => code,
  );

describe("an RPC that speaks for another chain, with a contract at the same address,", () => {
  test("stops mints only until it speaks for this one again", async () => {
    const { clock, node } = await behindNode();
    await settled();
    await world.mint("erc20", "zk-rollup", "", 5);
    const otherChain = await anotherChain();
    const { engine, settler } = world;
    for (const passed of [0, 1_000, 3_000]) {
      clock.now = passed;
      node.faults = { otherChain };
      expect(await codeOf(settler.round())).toBe("history_diverged");
      expect(await codeOf(world.mint("erc20", "zk-rollup", "", 5))).toBe("history_diverged");
    }
    expect(engine.operator.divergence()).toBeNull();
    node.heal();
    await settler.round();
    await settler.round();
    expect(await codeOf(world.mint("erc20", "zk-rollup", "", 5))).toBe("done");
    await settler.round();
    await expectOneHistory(world);
  });

  test("marks the store when it still does after a minute", async () => {
    const { clock, node } = await behindNode();
    await settled();
    const otherChain = await anotherChain();
    node.faults = { otherChain };
    const { engine, settler } = world;
    expect(await codeOf(settler.round())).toBe("history_diverged");
    clock.now = 59_999;
    expect(await codeOf(settler.round())).toBe("history_diverged");
    expect(engine.operator.divergence()).toBeNull();
    clock.now = 60_000;
    expect(await codeOf(settler.round())).toBe("history_diverged");
    expect(engine.operator.divergence()).not.toBeNull();
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("takes back nothing final when it speaks for this one at the second look", async () => {
    await behindNode();
    const { vaultId } = await settled();
    const { engine, chain, l1, committee } = world;
    const reverted: string[] = [];
    engine.events.on(
      "batch.reverted",
      ({
        event: {
          data: { batchId },
        },
      }) => reverted.push(batchId),
    );
    const settler = chain.newSettler({ engine, l1, committee, secondLookMs: 300 });
    let asked = 0;
    const { block } = l1;
    Object.assign(l1, {
      block: async (...at: Parameters<typeof block>) => {
        const found = await block.apply(l1, at);
        return found && asked++ < 3 ? { ...found, hash: `0x${"0f".repeat(32)}` } : found;
      },
    });
    await settler.round();
    expect(asked).toBeGreaterThan(3);
    expect(reverted).toEqual([]);
    expect(await world.transactionStatus(vaultId)).toBe("finalized");
  });
});

describe("what cannot be undone", () => {
  test("an expired withdrawal fails only when the node still says so later", async () => {
    await behindNode();
    const { engine, chain, l1, principal } = world;
    const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
    await world.settler.round();
    const now = (await l1.block("latest"))?.timestamp ?? 0n;
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n, now + 1_000n);
    let time = 0;
    const settler = lookingTwice(() => time);
    await chain.passSeconds(2_000n);
    await chain.mine(30);
    const statusOf = async () =>
      (await engine.withdrawals.get(principal.applicationId, withdrawalId)).status;
    await settler.round();
    expect(await statusOf()).toBe("accepted");
    time = 60_000;
    await settler.round();
    expect(await statusOf()).toBe("failed");
  });

  test("an expired withdrawal does not fail at two lies with the truth between them", async () => {
    await behindNode();
    const { engine, chain, l1, principal } = world;
    const vaultId = await world.mint("erc721", "zk-rollup", "7");
    await world.settler.round();
    await chain.mine(30);
    const now = (await l1.block("latest"))?.timestamp ?? 0n;
    const deadline = now + 1_000_000n;
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 1n, deadline);
    let time = 0;
    let lies = true;
    const { block } = l1;
    // The vault has not matured, so the withdrawal waits.
    Object.assign(l1, {
      block: async (...at: Parameters<typeof block>) => {
        const found = await block.apply(l1, at);
        return found && lies ? { ...found, timestamp: deadline + 1n } : found;
      },
      maturity: async () => 10n ** 9n,
    });
    const settler = lookingTwice(() => time);
    for (const [at, isLie] of [
      [0, true],
      [1_000, false],
      [60_000, true],
    ] as const) {
      time = at;
      lies = isLie;
      await settler.round();
      const { status } = await engine.withdrawals.get(principal.applicationId, withdrawalId);
      expect([at, status]).toEqual([at, "accepted"]);
    }
  });

  test("a mint that L1 would refuse fails only when the node still says so later", async () => {
    await behindNode();
    const { engine, chain, l1, committee } = world;
    const settler = chain.newSettler({ engine, l1, committee, secondLookMs: 50 });
    const vaultId = await world.mint("erc721", "zk-rollup", "7");
    let asked = 0;
    const { tokenOwners } = l1;
    Object.assign(l1, {
      tokenOwners: async (...question: Parameters<typeof tokenOwners>) =>
        asked++ === 0
          ? question[1].map(() => `0x${"0b".repeat(20)}`)
          : tokenOwners.apply(l1, question),
    });
    await settler.round();
    expect(asked).toBe(2);
    expect(await world.transactionStatus(vaultId)).toBe("settled");
  });
});
