import { MemoryLevel } from "memory-level";
import { afterEach, expect, test } from "vitest";
import { follow } from "../../core/archive/index.ts";
import { FORGETTING, TEXT } from "../../core/archive/keys.ts";
import { CommitteeMember } from "../../core/committee/member.ts";
import type { L1Reader } from "../../core/index.ts";
import { SourceHistory } from "../../core/mirror/history.ts";
import { unpackVaultId } from "../../core/protocol/vault.ts";
import { COMMITTEE } from "../../scripts/sandbox/accounts.ts";
import { at, createWorld, pointOn, type World } from "../settlement/fixture.ts";
import { openArchive } from "./fixture.ts";

let world: World;
afterEach(() => world.close());

/** L1 through nodes of which one lags: while it is asked, it leaves out events without an error. */
function lagging(l1: World["l1"]) {
  const node = Object.assign(Object.create(l1) as typeof l1, { lags: false });
  const events: L1Reader["events"] = async (...range) => (node.lags ? [] : l1.events(...range));
  return Object.assign(node, { events, finalizedBlockNumber: () => l1.blockNumber() });
}

const LEFT_OUT = { code: "l1_failed", message: expect.stringMatching(/left out|leave out/) };

async function commit(): Promise<void> {
  await world.mint("erc1155", "zk-rollup", "1");
  await world.settler.round();
}

test.each([
  [
    "an archive",
    // It compares its count of commits with the contract's.
    { findsAtOnce: true },
    async (l1: ReturnType<typeof lagging>) => {
      const archive = await openArchive({ l1 });
      const { deployedAtBlock: fromBlock } = world.chain.settlement;
      return {
        read: () => follow({ archive, l1, fromBlock }),
        count: () => archive.state().countRollup,
      };
    },
  ],
  [
    "a mirror's source",
    { findsAtOnce: false },
    async (l1: ReturnType<typeof lagging>) => {
      const history = new SourceHistory(l1, world.chain.settlement.deployedAtBlock);
      return { read: () => history.follow(), count: () => history.newest.countRollup };
    },
  ],
] as const)(
  "logs that a lagging node omits when %s reads are found later",
  async (_, { findsAtOnce }, open) => {
    world = await createWorld();
    const l1 = lagging(world.l1);
    const { read, count } = await open(l1);
    const readLagging = async () => {
      l1.lags = true;
      const reading = read();
      if (findsAtOnce) await expect(reading).rejects.toMatchObject(LEFT_OUT);
      else await reading;
      l1.lags = false;
    };
    await commit();
    await readLagging();
    expect(count()).toBe(0);
    await world.chain.mine(1);
    await read();
    expect(count()).toBe(1);

    // Later than blocks are read once more, the next commit shows that one is missing.
    await commit();
    await readLagging();
    await world.chain.mine(300);
    await readLagging();
    await commit();
    if (!findsAtOnce) await expect(read()).rejects.toMatchObject(LEFT_OUT);
    await read();
    expect(count()).toBe(3);
  },
);

test("concurrent requests to a mirror's source share one read of its chain", async () => {
  world = await createWorld();
  await commit();
  let looks = 0;
  const finalizedBlockNumber = () => {
    looks++;
    return world.l1.blockNumber();
  };
  const l1 = Object.assign(Object.create(world.l1) as typeof world.l1, { finalizedBlockNumber });
  const history = new SourceHistory(l1, world.chain.settlement.deployedAtBlock);
  await Promise.all(Array.from({ length: 50 }, () => history.follow()));
  expect([looks, history.newest.countRollup]).toEqual([1, 1]);
  // A later caller is told of what came meanwhile.
  await commit();
  await history.follow();
  expect(history.newest.countRollup).toBe(2);
});

test("withdrawals that a node left out while an archive caught up are read the second time", async () => {
  world = await createWorld();
  const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
  await world.settler.round();
  const l1 = lagging(world.l1);
  const archive = await openArchive({ l1 });
  const { deployedAtBlock: fromBlock } = world.chain.settlement;
  await follow({ archive, l1, fromBlock });
  await world.withdrawAlone(vaultId, 7n);
  await world.chain.mine(400);
  l1.lags = true;
  await follow({ archive, l1, fromBlock });
  expect(await archive.withdrawn(vaultId)).toBe(0n);
  l1.lags = false;
  await world.chain.mine(1);
  await follow({ archive, l1, fromBlock });
  expect(await archive.withdrawn(vaultId)).toBe(7n);
});

test("a second reading that fails at once is made up for", async () => {
  world = await createWorld();
  const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
  await world.settler.round();
  const l1 = lagging(world.l1);
  const archive = await openArchive({ l1 });
  const read = () =>
    follow({ archive, l1, fromBlock: world.chain.settlement.deployedAtBlock, sources: [] });
  await read();
  await world.withdrawAlone(vaultId, 7n);
  await world.chain.mine(400);
  l1.lags = true;
  await read();
  l1.lags = false;
  const { events } = l1;
  for (let i = 0; i < 2; i++) {
    await world.chain.mine(1);
    l1.events = () => Promise.reject(new Error("no answer"));
    await expect(read()).rejects.toThrow("no answer");
  }
  l1.events = events;
  await read();
  expect(await archive.withdrawn(vaultId)).toBe(7n);
});

test("a member whose node answers [] signs by what the contract says, and loses nothing", async () => {
  world = await createWorld();
  const { engine, settler } = world;
  const l1 = lagging(world.l1);
  const account = at(COMMITTEE, 0);
  const member = await CommitteeMember.open({ account, store: new MemoryLevel(), l1 });
  const { archive } = member;
  const { deployedAtBlock: fromBlock } = world.chain.settlement;
  const signNext = async () => {
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await engine.operator.seal("validium");
    const sealed = await engine.batches.getSealed("validium", unpackVaultId(vaultId).batchNumber);
    const terms = { ...(await pointOn(world.l1)), epoch: 0n };
    await expect(member.sign(sealed, terms)).resolves.toMatch(/^0x/);
    await settler.round();
    return vaultId;
  };
  const vaults = [await signNext()];
  await follow({ archive, l1, fromBlock });
  l1.lags = true;
  vaults.push(await signNext());
  await expect(follow({ archive, l1, fromBlock })).rejects.toMatchObject(LEFT_OUT);
  vaults.push(await signNext());
  expect(archive.state().countValidium).toBe(1);
  l1.lags = false;
  await world.chain.mine(1);
  await follow({ archive, l1, fromBlock });
  for (const vaultId of vaults)
    expect(await archive.vaultProof(vaultId)).toMatchObject({ vault: { amount: 50n } });
  await member.close();
});

test("a commit that a node told falsely is noticed, and all is read again by itself", async () => {
  world = await createWorld();
  const vaultId = await world.mint("erc20", "validium", "", 50);
  await world.settler.round();
  await world.withdrawAlone(vaultId, 7n);
  await world.chain.mine(1);
  const l1 = lagging(world.l1);
  const { events } = l1;
  const falsely: L1Reader["events"] = async (...range) =>
    (await events(...range)).map((event) =>
      event.type === "batchCommitted" ? { ...event, batchRoot: event.dataHash } : event,
    );
  const { deployedAtBlock: fromBlock } = world.chain.settlement;
  const archive = await openArchive({ l1 });
  l1.events = falsely;
  const read = (secondLookMs?: number) =>
    follow({ archive, l1, fromBlock, sources: [], secondLookMs });
  const differs = { code: "l1_failed", message: expect.stringContaining("contract says") };
  await expect(read()).rejects.toMatchObject(differs);
  l1.events = events;
  await expect(read()).rejects.toMatchObject(differs);
  expect(archive.state().countValidium).toBe(1);

  // It is so still at the second look.
  await expect(read(0)).rejects.toMatchObject(differs);
  expect(archive.state().countValidium).toBe(0);
  await read();
  expect(await l1.state()).toMatchObject(archive.state());
  expect(await archive.withdrawn(vaultId)).toBe(7n);

  // A forgetting that was interrupted ends at the next start.
  await archive.store.put<string, string>(FORGETTING, "", TEXT);
  const reopened = await openArchive({ l1 }, archive.store);
  expect([reopened.state().countValidium, reopened.position]).toEqual([0, null]);
  expect(await reopened.withdrawn(vaultId)).toBe(0n);
});

test("two words for another chain with the truth between them are no second look", async () => {
  world = await createWorld();
  await world.mint("erc20", "validium", "", 50);
  await world.settler.round();
  const l1 = lagging(world.l1);
  const { deployedAtBlock: fromBlock } = world.chain.settlement;
  const archive = await openArchive({ l1 });
  const secondLookMs = 50;
  const read = () => follow({ archive, l1, fromBlock, sources: [], secondLookMs });
  await read();
  const { block, events } = l1;
  const lie = async () => {
    l1.block = async (at) => {
      const found = await block.call(l1, at);
      return found && { ...found, hash: `0x${"0f".repeat(32)}` };
    };
    await expect(read()).rejects.toMatchObject({ code: "store_mismatch" });
    expect(archive.state().countValidium).toBe(1);
    l1.block = block;
  };
  await lie();
  // The node has our block again, and its logs cannot be read.
  await world.chain.mine(1);
  l1.events = () => Promise.reject(new Error("no answer"));
  await expect(read()).rejects.toThrow("no answer");
  await new Promise((resolve) => setTimeout(resolve, secondLookMs));
  l1.events = events;
  await lie();
});
