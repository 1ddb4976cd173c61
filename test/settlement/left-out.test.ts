import { createWalletClient } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { type L1Event, type VaultId, WITHDRAWAL_EVENTS } from "../../core/index.ts";
import { withdrawalCancellationCalldata } from "../../core/l1/index.ts";
import { cancellationId } from "../../core/protocol/typed-data.ts";
import {
  at,
  type Chain,
  createWorld,
  expectOneHistory,
  type Request,
  type World,
  type WorldOptions,
} from "./fixture.ts";
import { TRANSFERABLE } from "./transfers-fixture.ts";

let world: World;
afterEach(() => world.close());

/** A world whose node answers `[]` to every question for logs while told to. */
async function silenced(options: WorldOptions = {}): Promise<{ isSilent: boolean }> {
  const node = { isSilent: false };
  const request = (chain: Chain) =>
    ((call: { method: string }) =>
      node.isSilent && call.method === "eth_getLogs"
        ? Promise.resolve([])
        : chain.request(call as never)) as Request;
  world = await createWorld({ ...options, request });
  return node;
}

/** Rounds of which some fail while the node leaves out what it told of before. */
async function rounds(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await world.chain.mine(4);
    await world.settler.round().catch((error) => expect(error.code).toBe("l1_failed"));
  }
}

function reverted(): string[] {
  const names: string[] = [];
  world.engine.events.on(
    "batch.reverted",
    ({
      event: {
        data: { batchId },
      },
    }) => names.push(batchId),
  );
  world.engine.events.on(WITHDRAWAL_EVENTS, ({ event: { type, data } }) => {
    if (type === "withdrawal.reverted") names.push(data.withdrawalId);
  });
  return names;
}

describe("while eth_getLogs answers [] as recorded blocks become final", () => {
  test.each([12n, 20n])("a commit stays, with %d confirmations", async (confirmations) => {
    const node = await silenced();
    const { chain, engine, committee } = world;
    const l1 = await chain.connectOperator(chain.request);
    Object.assign(l1, {
      events: (...range: Parameters<typeof l1.events>) =>
        node.isSilent ? Promise.resolve([]) : world.l1.events(...range),
      finalizedBlockNumber: async () => (await l1.blockNumber()) - confirmations,
    });
    world = { ...world, settler: chain.newSettler({ engine, l1, committee }) };
    const names = reverted();
    const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
    await world.settler.round();
    node.isSilent = true;
    await rounds(8);
    expect(names).toEqual([]);
    expect(await world.transactionStatus(vaultId)).toBe("settled");
    node.isSilent = false;
    await world.mint("erc20", "zk-rollup", "", 50);
    await world.settler.round();
    await rounds(8);
    expect(await world.transactionStatus(vaultId)).toBe("finalized");
    await expectOneHistory(world);
  });

  test("a withdrawal and an owner's own withdrawal stay", async () => {
    const node = await silenced();
    const { engine, principal } = world;
    const vaultId = await world.mint("erc20", "validium", "", 50);
    const own = await world.mint("erc20", "validium", "", 50);
    await world.settler.round();
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
    await world.settler.round();
    await world.withdrawAlone(own, 7n);
    await world.settler.round();
    const names = reverted();
    node.isSilent = true;
    await rounds(8);
    const balance = async () =>
      (await engine.vaults.get(principal.applicationId, own)).withdrawnBalance;
    expect([names, await balance()]).toEqual([[], 27n]);
    node.isSilent = false;
    await rounds(8);
    expect((await engine.withdrawals.get(principal.applicationId, withdrawalId)).status).toBe(
      "finalized",
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

test("a node that tells each log twice, the newest first, tells of each once", async () => {
  const request = (chain: Chain) =>
    (async (call: { method: string }) => {
      const answer = await chain.request(call as never);
      return call.method === "eth_getLogs" ? [answer, answer].flat().reverse() : answer;
    }) as Request;
  world = await createWorld({ request });
  const { engine, principal } = world;
  const committed: string[] = [];
  engine.events.on(
    "batch.settled",
    ({
      event: {
        data: { batchId },
      },
    }) => committed.push(batchId),
  );
  const first = await world.mint("erc20", "validium", "", 50);
  await world.mint("erc721", "zk-rollup", "1");
  await world.settler.round();
  const { withdrawalId } = await world.requestWithdrawal(first, 20n);
  await world.settler.round();
  await world.withdrawAlone(first, 7n);
  await world.mint("erc20", "validium", "", 50);
  await rounds(8);
  expect(committed).toEqual(["validium-0", "zk-rollup-0", "validium-1"]);
  const { applicationId } = principal;
  expect((await engine.withdrawals.get(applicationId, withdrawalId)).status).toBe("finalized");
  expect((await engine.vaults.get(applicationId, first)).withdrawnBalance).toBe(27n);
  await expectOneHistory(world);
  expect((await engine.operator.verify()).problems).toEqual([]);
});

describe("while eth_getLogs answers []", () => {
  test("a cancellation stays, and one that was left out is found before its block is final", async () => {
    const node = await silenced();
    const { engine, principal } = world;
    const [one, other] = [
      await world.mint("erc721", "zk-rollup", "1"),
      await world.mint("erc721", "zk-rollup", "2"),
    ];
    await world.settler.round();
    const asked = [await world.requestWithdrawal(one), await world.requestWithdrawal(other)];
    const failed = async () => {
      const found = asked.map(({ withdrawalId }) =>
        engine.withdrawals.get(principal.applicationId, withdrawalId),
      );
      return (await Promise.all(found)).map(({ status }) => status === "failed");
    };
    await cancelOnL1(one);
    await rounds(1);
    expect(await failed()).toEqual([true, false]);
    node.isSilent = true;
    await cancelOnL1(other);
    await rounds(3);
    expect(await failed()).toEqual([true, false]);
    node.isSilent = false;
    await rounds(8);
    expect(await failed()).toEqual([true, true]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("the void of a duplicate stays, and one that was left out is found before its block is final", async () => {
    const node = await silenced();
    const { chain, engine, l1, principal } = world;
    const earlierVaultId = await world.mint("erc721", "zk-rollup", "1");
    const voided = [
      await world.mint("erc721", "zk-rollup", "2"),
      await world.mint("erc721", "zk-rollup", "3"),
    ];
    await world.settler.round();
    // The engine never mints a token twice, so the events of its voids are planted.
    const planted: L1Event[] = [];
    const { events } = l1;
    Object.assign(l1, {
      events: async (from: bigint, to: bigint) => [
        ...(await events.call(l1, from, to)),
        ...planted.filter(({ blockNumber: at }) => !node.isSilent && from <= at && at <= to),
      ],
    });
    const plant = async (laterVaultId: VaultId) => {
      await chain.mine(1);
      const block = await l1.block("latest");
      planted.push({
        type: "duplicateVoided",
        ...{ earlierVaultId, laterVaultId, txHash: `0x${"d0".repeat(32)}`, logIndex: 0 },
        ...{ blockNumber: block?.number ?? 0n, blockHash: block?.hash ?? "0x" },
      });
    };
    const left = async () => {
      const found = voided.map((vaultId) => engine.vaults.get(principal.applicationId, vaultId));
      return (await Promise.all(found)).map(({ availableBalance }) => availableBalance);
    };
    await plant(at(voided, 0));
    await rounds(1);
    expect(await left()).toEqual([0n, 1n]);
    node.isSilent = true;
    await plant(at(voided, 1));
    await rounds(3);
    expect(await left()).toEqual([0n, 1n]);
    node.isSilent = false;
    await rounds(8);
    expect(await left()).toEqual([0n, 0n]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("a registration is known all the same, with its transferability", async () => {
    const node = await silenced({ config: { transfers: true }, tokens: TRANSFERABLE });
    const { engine, principal } = world;
    const transferable = () =>
      Promise.all(
        [...world.assets.values()].map(
          async (id) => (await engine.assets.get(principal.applicationId, id)).transferable,
        ),
      );
    expect(await transferable()).not.toContain(true);
    node.isSilent = true;
    await rounds(6);
    expect(await transferable()).toEqual([true, true, true]);
  });
});

/** The owner's own transaction, by which nobody else can withdraw the vault. */
async function cancelOnL1(vaultId: VaultId): Promise<void> {
  const { owner } = at(world.users, 0);
  const { transport, settlement } = world.chain;
  await createWalletClient({ account: owner, transport }).sendTransaction({
    to: settlement.address,
    data: withdrawalCancellationCalldata({ signer: owner.address, id: cancellationId(vaultId) }),
    chain: null,
  });
}

describe("what eth_getLogs left out when the blocks were read", () => {
  test("is read again when L1 has a commit more than its logs told of", async () => {
    const node = await silenced();
    const { engine, chain, l1, committee } = world;
    const vaultId = await world.mint("erc20", "zk-rollup", "", 50);
    node.isSilent = true;
    await rounds(10);
    expect(await world.transactionStatus(vaultId)).toBe("submitted");
    await engine.operator.recordFinalized(
      engine.settlement.chainId,
      engine.operator.portal(engine.settlement.chainId).observed ?? 0n,
    );
    node.isSilent = false;
    const names = reverted();
    await chain.newSettler({ engine, l1, committee }).round();
    expect(await world.transactionStatus(vaultId)).toBe("finalized");
    await world.mint("erc721", "validium", "1");
    await rounds(10);
    expect(names).toEqual([]);
    expect(await world.transactionStatus(vaultId)).toBe("finalized");
    await expectOneHistory(world);
  });

  test("is read again when the contract has paid a withdrawal that waits here", async () => {
    const node = await silenced();
    const { engine, principal, chain, l1, committee } = world;
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await world.settler.round();
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 20n);
    node.isSilent = true;
    await rounds(1);
    const statusOf = async () =>
      (await engine.withdrawals.get(principal.applicationId, withdrawalId)).status;
    expect(await statusOf()).toBe("submitted");
    // Two empty answers were final for an earlier version, which left such a store.
    const { chainId } = engine.settlement;
    await engine.operator.recordFinalized(chainId, engine.operator.portal(chainId).observed ?? 0n);
    node.isSilent = false;
    await chain.newSettler({ engine, l1, committee }).round();
    expect(await statusOf()).toBe("settled");
    await rounds(8);
    expect(await statusOf()).toBe("finalized");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("of an owner's own withdrawal is found before the block counts as final", async () => {
    const node = await silenced();
    const { engine, principal } = world;
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await world.settler.round();
    await world.withdrawAlone(vaultId, 7n);
    node.isSilent = true;
    await rounds(1);
    node.isSilent = false;
    await rounds(8);
    const { withdrawnBalance } = await engine.vaults.get(principal.applicationId, vaultId);
    expect(withdrawnBalance).toBe(7n);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("shows in the next withdrawal of the vault, whose total tells of it", async () => {
    const node = await silenced();
    const { engine, principal } = world;
    const vaultId = await world.mint("erc20", "validium", "", 50);
    await world.settler.round();
    const { withdrawalId } = await world.requestWithdrawal(vaultId, 5n);
    node.isSilent = true;
    await rounds(1);
    await world.withdrawAlone(vaultId, 7n);
    const { chainId } = engine.settlement;
    const observed = engine.operator.portal(chainId).observed ?? 0n;
    node.isSilent = false;
    const later = (await world.l1.events(observed + 1n, observed + 1n)).slice();
    expect(later.map(({ type }) => type)).toEqual(["withdrawn"]);
    const whole = { fromBlock: observed + 1n };
    expect(await engine.operator.recordEvents(chainId, later, observed + 1n, whole)).toBeNull();
    await rounds(2);
    const { applicationId } = principal;
    expect((await engine.withdrawals.get(applicationId, withdrawalId)).status).toBe("settled");
    expect(await engine.vaults.get(applicationId, vaultId)).toMatchObject({
      withdrawnBalance: 12n,
    });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("is not believed of a node of another fork", async () => {
    await silenced();
    const { engine, chain, l1, committee } = world;
    await world.mint("erc20", "zk-rollup", "", 50);
    await engine.operator.seal("zk-rollup");
    const { events } = l1;
    Object.assign(l1, {
      events: async (...range: Parameters<typeof events>) => {
        const read = await events.apply(l1, range);
        return read.map((event) => ({ ...event, blockHash: `0x${"12".repeat(32)}` }));
      },
    });
    const round = chain.newSettler({ engine, l1, committee }).round();
    await expect(round).rejects.toThrow("has two hashes");
    expect(at((await engine.batches.list()).data, 0).status).toBe("submitted");
  });
});
