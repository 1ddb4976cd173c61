import { MemoryLevel } from "memory-level";
import { createWalletClient, type Hex, toHex } from "viem";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/committee/collector.ts";
import { CommitteeMember } from "../../core/committee/member.ts";
import type { Engine, Mode } from "../../core/index.ts";
import type { CommitterOptions } from "../../core/l1/committer.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { COMMITTEE, OPERATOR, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { dying } from "./campaign-faults.ts";
import {
  anvil,
  type Chain,
  createWorld,
  expectOneHistory,
  type Request,
  type World,
  withdrawMany,
} from "./fixture.ts";

let world: World;
afterEach(() => world.close());

/** Commits that a settler has under way at once. */
const WINDOW = 4;

type Call = Parameters<Request>[0] & { readonly params: readonly unknown[] };

async function sealMany(
  { engine }: World,
  count: number,
  mode: Mode = "zk-rollup",
  first = 0,
): Promise<void> {
  for (let i = first; i < first + count; i++) {
    await world.mint("erc721", mode, `${1_000 + i}`);
    await engine.operator.seal(mode);
  }
}

const waitForPending = (chain: Chain, count: number) =>
  expect.poll(async () => (await chain.pendingHashes()).length, { interval: 5 }).toBe(count);

/** Mines what is under way, a block at a time, until a promise settles. */
async function mineUntil(chain: Chain, done: Promise<unknown>): Promise<void> {
  const over = settled(done);
  const isPending = async () => over() || (await chain.pendingHashes()).length > 0;
  while (!over()) {
    await expect.poll(isPending, { interval: 5 }).toBe(true);
    await chain.mine(1);
  }
}

/** Mines a block for each number, once as many transactions are under way. */
async function mineEach(chain: Chain, counts: readonly number[]): Promise<void> {
  for (const count of counts) {
    await waitForPending(chain, count);
    await chain.mine(1);
  }
}

/** Whether a promise has settled. */
function settled(promise: Promise<unknown>): () => boolean {
  let over = false;
  const end = () => {
    over = true;
  };
  promise.then(end, end);
  return () => over;
}

/**
 * Mines until a promise settles, at twice the fee that the newest transaction offered when this
 * began.
 */
async function mineAtDouble(chain: Chain, done: Promise<unknown>): Promise<void> {
  const hash = (await chain.pendingHashes()).at(-1) as Hex;
  const { maxFeePerGas = 0n } = await chain.client.getTransaction({ hash });
  const over = settled(done);
  while (!over()) {
    await chain.rpc("hardhat_setNextBlockBaseFeePerGas", [toHex(maxFeePerGas * 2n)]);
    await chain.mine(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await done;
}

/** The transactions that have brought batches to L1. */
async function commitsOf({ l1, chain }: World) {
  const events = await l1.events(chain.settlement.deployedAtBlock, await l1.blockNumber());
  return events
    .filter(({ type }) => type === "batchCommitted")
    .map(({ txHash }) => ({ hash: txHash }));
}

/** The engine of a process that dies when it would record its third commit. */
const dyingEngine = (engine: Engine) => dying(engine, 3, /^recordSubmitted$/);

const automine = (on: boolean, { chain }: World = world) => chain.rpc("evm_setAutomine", [on]);
const blockGas = (gas: number, { chain }: World = world) =>
  chain.rpc("evm_setBlockGasLimit", [toHex(gas)]);

/**
 * Another operator's process, with nothing of an earlier one's memory, and a committee that may
 * take its time.
 */
async function restarted({ chain, engine, members }: World, fees: CommitterOptions = {}) {
  const l1 = await chain.connectOperator(chain.request, fees);
  const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 20_000 });
  return chain.newSettler({ engine, l1, committee });
}

const kzg = new KzgThread();
afterAll(() => kzg.close());

/**
 * A world whose rollup goes into blobs. On anvil, since hardhat's chain keeps no blob transaction
 * pending.
 */
async function blobWorld(): Promise<World> {
  const made = await createWorld({ kzg, fees: { kzg }, node: anvil });
  await made.settler.chooseRollupData();
  return made;
}

describe("several commits under way", () => {
  test.each([["zk-rollup"], ["validium"]] as const)(
    "bring 10 batches of %s to L1 within 3 blocks",
    async (mode) => {
      world = await createWorld();
      const { chain } = world;
      const settler = await restarted(world);
      await sealMany(world, 10, mode);
      await automine(false);
      const round = settler.round();
      await mineEach(chain, [WINDOW, WINDOW, 2]);
      expect((await round).committed).toBe(10);
      expect(await chain.sentByOperator()).toBe(10);
      await expectOneHistory(world);
    },
  );

  test.each([["at once"], ["later"]])(
    "survive a kill with three of them sent: what L1 mines %s counts once",
    async (when) => {
      world = await createWorld();
      const { chain, engine, l1, committee } = world;
      await sealMany(world, 6);
      await automine(false);
      const killed = chain.newSettler({ engine: dyingEngine(engine), l1, committee }).round();
      const ended = expect(killed).rejects.toThrow("killed");
      await waitForPending(chain, 3);
      // The first ones were handed over: only the dead process would have waited for them.
      if (when === "at once") await chain.mine(1);
      const next = await restarted(world);
      const round = next.round();
      await mineUntil(chain, Promise.all([round, ended]));
      await round;
      expect(await chain.sentByOperator()).toBe(6);
      await expectOneHistory(world);
    },
  );

  test.each(["calldata", "blobs"] as const)(
    "are replaced one by one, when a dead process has left them too cheap: %s",
    async (kind) => {
      world = kind === "blobs" ? await blobWorld() : await createWorld();
      const { chain, engine, l1, committee } = world;
      await sealMany(world, 5);
      await automine(false);
      const killed = chain.newSettler({ engine: dyingEngine(engine), l1, committee }).round();
      void killed.catch(() => {});
      await waitForPending(chain, 3);
      const left = await chain.pendingHashes();
      const sent = await Promise.all(left.map((hash) => chain.client.getTransaction({ hash })));
      expect(sent[0]?.type).toBe(kind === "blobs" ? "eip4844" : "eip1559");
      const next = await restarted(world, { replaceAfterMs: 50, kzg });
      await mineAtDouble(chain, next.round());
      for (const { hash } of await commitsOf(world)) expect(left).not.toContain(hash);
      const mined = await Promise.all(
        (await commitsOf(world)).map(({ hash }) => chain.client.getTransaction({ hash })),
      );
      for (const [i, { nonce, type }] of sent.entries())
        expect(mined[i]).toMatchObject({ nonce, type });
      expect(await chain.sentByOperator()).toBe(5);
      await expectOneHistory(world);
    },
  );

  test("by blobs, of which a reorganisation takes one back and leaves two pending, are there once in the end", async () => {
    world = await blobWorld();
    const { chain, engine } = world;
    const settler = await restarted(world, { replaceAfterMs: 1_000, kzg });
    const snapshot = await chain.rpc("evm_snapshot");
    await sealMany(world, 1);
    await settler.round();
    await sealMany(world, 2, "zk-rollup", 1);
    await automine(false);
    const interrupted = settler.round().catch(() => {});
    await waitForPending(chain, 2);
    await chain.rpc("evm_revert", [snapshot]);
    await mineUntil(chain, interrupted);
    await automine(true);
    const settle = async () => {
      await settler.round().catch(() => {});
      return (await engine.batches.committedState()).countRollup;
    };
    await expect.poll(settle, { interval: 5 }).toBe(3);
    expect(await commitsOf(world)).toHaveLength(3);
    await expectOneHistory(world);
  });

  test("fail behind one that reverts, lose nothing, and are sent again", async () => {
    let estimates = 0;
    const stingy = (chain: Chain) =>
      (async (call: Call) => {
        const answer = await chain.request(call as never);
        // The second commit gets less gas than it takes, so L1 reverts it.
        return call.method === "eth_estimateGas" && ++estimates === 2
          ? toHex(Number(answer) - 90_000)
          : answer;
      }) as Request;
    world = await createWorld({ request: stingy });
    const { chain, settler } = world;
    await sealMany(world, 5);
    estimates = 0;
    await automine(false);
    const round = settler.round();
    const failure = expect(round).rejects.toThrow("reverted");
    await mineEach(chain, [WINDOW]);
    await mineUntil(chain, round);
    await failure;
    expect((await world.l1.state()).countRollup).toBe(1);
    await automine(true);
    expect((await settler.round()).committed).toBe(4);
    // At most the first one once, and the others twice.
    expect(await chain.sentByOperator()).toBeLessThanOrEqual(1 + 2 * 4);
    await expectOneHistory(world);
  });

  test("wait for members that have not signed the ones before, until these see them on L1", async () => {
    world = await createWorld();
    const { chain, engine, l1 } = world;
    const open = COMMITTEE.map((account) =>
      CommitteeMember.open({ account, store: new MemoryLevel(), l1, lagMs: 0 }),
    );
    // Once the first batch is sent, two of those who have signed it are gone, and two others are
    // there.
    let away = [3, 4];
    engine.events.on("batch.submitted", () => {
      away = [0, 1];
    });
    const members = (await Promise.all(open)).map((member, index) => ({
      address: member.address,
      sign: (...asked: Parameters<typeof member.sign>) =>
        away.includes(index) ? Promise.reject(new Error("away")) : member.sign(...asked),
      nextBatch: () => member.nextBatch(),
    }));
    const earlierBatch = (batchNumber: number) => engine.batches.getSealed("validium", batchNumber);
    const committee = collectAttestations({ members, threshold: THRESHOLD, l1, earlierBatch });
    await sealMany(world, 2, "validium");
    await automine(false);
    const round = chain.newSettler({ engine, l1, committee }).round();
    await mineEach(chain, [1, 1]);
    expect((await round).committed).toBe(2);
    await expectOneHistory(world);
  });

  test("go on behind a nonce that somebody else took, as far as they can", async () => {
    world = await createWorld();
    const { chain, settler } = world;
    await sealMany(world, 4);
    await automine(false);
    const round = settler.round();
    const failure = expect(round).rejects.toThrow("took nonce 1");
    await waitForPending(chain, WINDOW);
    const dear = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n };
    await createWalletClient({ transport: chain.transport, account: OPERATOR }).sendTransaction({
      ...{ to: OPERATOR.address, chain: null, nonce: 1, gas: 21_000n },
      ...dear,
    });
    await mineUntil(chain, round);
    await failure;
    await automine(true);
    expect((await settler.round()).committed).toBe(3);
    await expectOneHistory(world);
  });

  test("are each offered more once they are the next, when the fee rises in the middle", async () => {
    world = await createWorld();
    const { chain, engine, committee } = world;
    // Long enough that a slow machine mines the first one before it is offered again.
    const l1 = await chain.connectOperator(chain.request, { replaceAfterMs: 600 });
    const offers = new Map<string, number>();
    engine.events.on(
      "batch.submitted",
      ({
        event: {
          data: { batchId },
        },
      }) => offers.set(batchId, (offers.get(batchId) ?? 0) + 1),
    );
    await sealMany(world, 4);
    await automine(false);
    const round = chain.newSettler({ engine, l1, committee }).round();
    await waitForPending(chain, WINDOW);
    const [first] = await chain.pendingHashes();
    const { gas } = await chain.client.getTransaction({ hash: first as Hex });
    // One block takes the first commit only, and the next ones are too dear for the others.
    await blockGas(Number(gas) + 50_000);
    await chain.mine(1);
    await blockGas(30_000_000);
    await mineAtDouble(chain, round);
    expect((await round).committed).toBe(4);
    expect(offers.get("zk-rollup-0")).toBe(1);
    for (const batch of ["zk-rollup-1", "zk-rollup-2", "zk-rollup-3"])
      expect(offers.get(batch)).toBeGreaterThan(1);
    expect(await chain.sentByOperator()).toBe(4);
    await expectOneHistory(world);
  });

  test("are given up when a reorganisation takes back those before them, and all are sent again", async () => {
    world = await createWorld();
    const { chain, engine, committee } = world;
    const l1 = await chain.connectOperator(chain.request, { replaceAfterMs: 200 });
    const settler = chain.newSettler({ engine, l1, committee });
    await settler.round();
    await sealMany(world, 4);
    await automine(false);
    const snapshot = await chain.rpc("evm_snapshot");
    const round = settler.round();
    const failure = expect(round).rejects.toThrow("nonce 0 is free again");
    await waitForPending(chain, WINDOW);
    const [first] = await chain.pendingHashes();
    const { gas } = await chain.client.getTransaction({ hash: first as Hex });
    await blockGas(Number(gas) + 50_000);
    await chain.mine(1);
    // The first one is on L1 and seen; then the chain is another, which knows nothing of any of
    // them.
    await new Promise((resolve) => setTimeout(resolve, 100));
    await chain.rpc("evm_revert", [snapshot]);
    await chain.mine(2);
    await failure;
    await automine(true);
    await settler.round();
    expect(await chain.sentByOperator()).toBe(4);
    await expectOneHistory(world);
  });

  test("are sent one by one by an account that cannot pay for several, or a node that takes one only", async () => {
    const strict = (chain: Chain) =>
      (async (call: Call) => {
        if (call.method === "eth_sendRawTransaction" && (await chain.pendingHashes()).length > 0) {
          throw Object.assign(
            new Error("insufficient funds for gas * price + value: queued cost"),
            { code: -32000 },
          );
        }
        return chain.request(call as never);
      }) as Request;
    world = await createWorld({ request: strict });
    const { chain, settler } = world;
    await sealMany(world, 3);
    await automine(false);
    const round = settler.round();
    await mineEach(chain, [1, 1, 1]);
    expect((await round).committed).toBe(3);
    await expectOneHistory(world);
  });
});

describe("several relays under way", () => {
  test("pay each withdrawal once, though the process dies with all of them sent", async () => {
    world = await createWorld();
    const { chain, engine, principal, settler: before } = world;
    const vaults = await withdrawMany(world, 44, 2);
    await automine(false);
    const dying = new AbortController();
    const killed = before.round(dying.signal);
    const ended = expect(killed).rejects.toThrow();
    await waitForPending(chain, 3);
    dying.abort();
    await ended;
    const next = await restarted(world);
    const round = next.round();
    await mineUntil(chain, round);
    await round;
    for (const vaultId of vaults) {
      expect(await engine.vaults.get(principal.applicationId, vaultId)).toMatchObject({
        withdrawnBalance: 1n,
      });
    }
    // The commit, and five relays of up to ten: each list can ask a wallet contract.
    expect(await chain.sentByOperator()).toBe(6);
  });
});
