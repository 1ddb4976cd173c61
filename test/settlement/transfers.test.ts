import { toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { follow } from "../../core/archive/follow.ts";
import type { Archive } from "../../core/archive/index.ts";
import { openEngine, type VaultId } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { adoptFromL1 } from "../../core/settlement/from-l1.ts";
import { sourceOf } from "../archive/fixture.ts";
import { at, commitUnseen, copyOf, expectOneHistory } from "./fixture.ts";
import {
  becomeFinal,
  claimed,
  createTransferWorld,
  friendOf,
  give,
  listOf,
  served,
  signTransfers,
  type TransferWorld,
  whole,
} from "./transfers-fixture.ts";

describe("signed transfers", () => {
  let world: TransferWorld;
  let [first, second]: VaultId[] = [];

  beforeAll(async () => {
    world = await createTransferWorld({}, async (empty) => {
      first = await empty.mint("erc1155", "zk-rollup", "6", 7);
      second = await empty.mint("erc1155", "validium", "7", 7);
    });
  });
  afterAll(() => world.close());

  const isSpent = (vaultId: VaultId) => {
    const { contract: address } = world.l1.settlement;
    return world.chain.client.readContract({
      abi: stateCommitmentAbi,
      address,
      functionName: "isSpent",
      args: [vaultId],
    });
  };

  const sealed = async () => {
    const batch = await world.engine.operator.sealTransfers();
    if (batch === null) throw new Error("no transfers wait");
    return batch.batchNumber;
  };

  test("come to L1, and come again when a reorganisation drops them", async () => {
    const { engine, settler, vaults, chain, principal } = world;
    const list = await give(world, [
      whole(world, vaults.token),
      { ...whole(world, vaults.units), amount: 30n },
    ]);
    const snapshot = await chain.rpc("evm_snapshot");
    expect(await settler.round()).toMatchObject({ sealed: 1, committed: 1 });
    expect(await listOf(world, list)).toMatchObject({ status: "settled" });
    await chain.rpc("evm_revert", [snapshot]);
    await chain.rpc("evm_increaseTime", [toHex(7)]);
    await chain.mine(3);
    expect(await isSpent(vaults.token)).toBe(false);
    expect(await settler.round()).toMatchObject({ committed: 1 });
    expect(await isSpent(vaults.token)).toBe(true);
    await expectOneHistory(world);
    await becomeFinal(world);
    const { status, transfers } = await listOf(world, list);
    expect(status).toBe("finalized");
    expect(transfers.map(({ amount }) => amount)).toEqual([1n, 30n, 70n]);
    const sword = await engine.vaults.get(principal.applicationId, transfers[0]?.newVaultId ?? 0n);
    expect(sword).toMatchObject({ ownerAddress: friendOf(world), amount: 1n });
  });

  test("are taken back when the owner overtakes them, and their number is committed without them", async () => {
    const { engine, settler, principal } = world;
    const vaultId = first ?? 0n;
    const list = await give(world, [{ ...whole(world, vaultId), amount: 3n }]);
    const batchNumber = await sealed();
    await world.withdrawAlone(vaultId, 5n);
    expect(await settler.round()).toMatchObject({ committed: 1 });
    expect(await engine.batches.get("zk-rollup", batchNumber)).toMatchObject({
      kind: "calldata",
      status: "settled",
    });
    expect(await isSpent(vaultId)).toBe(false);
    await settler.round();
    expect(await listOf(world, list)).toMatchObject({ status: "failed" });
    expect(await engine.vaults.get(principal.applicationId, vaultId)).toMatchObject({
      availableBalance: 2n,
    });
    await expectOneHistory(world);
  });

  test("that an earlier process may have sent are taken back only when they can no longer be mined", async () => {
    const { chain, l1, committee, engineStore, settlement } = {
      ...world,
      settlement: world.l1.settlement,
    };
    const vaultId = second ?? 0n;
    await give(world, [{ ...whole(world, vaultId), amount: 3n }]);
    const batchNumber = await sealed();
    await world.engine.close();
    await engineStore.open();
    const engine = await openEngine({ store: engineStore, settlement, environment: "sandbox" });
    const settler = chain.newSettler({ engine, l1, committee });
    Object.assign(world, { engine, settler });
    await world.withdrawAlone(vaultId, 5n);
    await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
    expect(await engine.batches.get("zk-rollup", batchNumber)).toMatchObject({
      kind: "transfers",
      status: "sealed",
    });
    await chain.mine(25);
    expect(await settler.round()).toMatchObject({ committed: 1 });
    expect(await engine.batches.get("zk-rollup", batchNumber)).toMatchObject({
      kind: "calldata",
      status: "settled",
    });
    await expectOneHistory(world);
  });

  test("that no member signs fail in time, and mints behind them come to L1", async () => {
    const { engine, chain, l1, vaults, principal } = world;
    const committee = { attest: () => Promise.reject(new Error("no member answers")) };
    const patient = chain.newSettler({ engine, l1, committee });
    const hasty = chain.newSettler({ engine, l1, committee, signingMs: 0 });
    const list = await give(world, [{ ...whole(world, vaults.items), amount: 3n }]);
    const batchNumber = await sealed();
    const minted = await world.mint("erc20", "zk-rollup", "", 5);
    await expect(patient.round()).rejects.toThrow("no member answers");
    expect(await engine.batches.get("zk-rollup", batchNumber)).toMatchObject({
      kind: "transfers",
      status: "sealed",
    });
    expect(await hasty.round()).toMatchObject({ committed: 2 });
    expect(await engine.batches.get("zk-rollup", batchNumber)).toMatchObject({
      kind: "calldata",
      status: "settled",
    });
    expect(await isSpent(vaults.items)).toBe(false);
    expect(await listOf(world, list)).toMatchObject({ status: "failed" });
    expect(await engine.vaults.get(principal.applicationId, vaults.items)).toMatchObject({
      availableBalance: 7n,
    });
    expect(await engine.vaults.get(principal.applicationId, minted)).toMatchObject({
      status: "settled",
    });
    await expectOneHistory(world);
    world.settler = chain.newSettler({ engine, l1, committee: world.committee });
  });

  test("that another server brought to L1 are adopted into a copy of its store, among records that do not count", async () => {
    const { chain, l1, committee, engineStore, members, principal, vaults } = world;
    const vaultId = first ?? 0n;
    const { transferId } = await give(world, [whole(world, vaultId)]);
    await world.engine.close();
    await engineStore.open();
    const copy = await copyOf(engineStore);
    const open = (store: typeof copy) =>
      openEngine({ store, settlement: l1.settlement, environment: "sandbox", divergenceMs: 0 });
    const engine = await open(engineStore);
    Object.assign(world, { engine, settler: chain.newSettler({ engine, l1, committee }) });
    await world.settler.round();

    const other = await open(copy);
    await { ...world, engine: other }.mint("erc20", "zk-rollup", "", 5);
    await other.operator.seal("zk-rollup");
    const lost = chain.newSettler({ engine: other, l1, committee });
    await expect(lost.round()).rejects.toMatchObject({ code: "history_diverged" });
    await becomeFinal(world);
    // The members sign a batch unseen: of an id without a vault, and of two owners' vaults under
    // one signature.
    const { countRollup } = await l1.state();
    const given =
      (await engine.transfers.get(principal.applicationId, transferId)).transfers[0]?.newVaultId ??
      0n;
    const slotOf = (batchNumber: number, slot = 0) =>
      packVaultId({ mode: "zk-rollup", batchNumber, slot });
    const missing = slotOf(0, 999);
    const bogus = [
      { ...whole(world, missing), amount: 1n },
      whole(world, vaults.items),
      whole(world, given),
    ];
    await commitUnseen(l1, claimed([await signTransfers(world, bogus)], countRollup));
    await chain.mine(20);
    const { deployedAtBlock: fromBlock } = chain.settlement;
    const archive = members[0]?.archive as Archive;
    await follow({ archive, l1, fromBlock, sources: [served({ engine })] });
    const sources = members.slice(0, 1).map(sourceOf);
    expect(await adoptFromL1({ engine: other, l1, fromBlock, sources })).toMatchObject({
      lostVaults: 1,
    });
    await lost.round();
    const { status, transfers } = await other.transfers.get(principal.applicationId, transferId);
    expect(status).toBe("finalized");
    const own = await other.vaults.get(principal.applicationId, transfers[0]?.newVaultId ?? 0n);
    expect(own).toMatchObject({ ownerAddress: friendOf(world), amount: 2n });
    expect(await l1.state()).toEqual({
      ...other.batches.state(),
      history: other.operator.history(),
    });
    expect((await other.operator.verify()).problems).toEqual([]);

    const outputs = [0, 1, 2, 3].map((slot) => slotOf(countRollup, slot));
    for (const id of [...outputs, given, vaults.items]) {
      const told = { l1: archive.vaultContent(id), engine: other.proofs.content(id) };
      const [there, here] = await Promise.all(
        Object.values(told).map((one) => one.catch(({ code }) => code)),
      );
      expect([id, here]).toEqual([id, there]);
      expect([
        id,
        (await other.transfers.history(id)).after.map(({ newVaultId }) => newVaultId)[0],
      ]).toEqual([id, (await archive.spending(id))?.outId]);
    }
    expect(await archive.vaultContent(outputs[2] ?? 0n)).toMatchObject({
      owner: friendOf(world),
      amount: 7n,
    });
    expect((await other.operator.verify()).problems).toEqual([]);
    await other.close();
  });
});

test("transfers whose deadline passed in a sealed batch are taken back, and their vault is free again", async () => {
  let ahead = 0;
  const world = await createTransferWorld({ clock: () => Date.now() + ahead });
  const { engine, settler, chain, principal, users, vaults } = world;
  const balanceOf = async (vaultId: VaultId) =>
    (await engine.vaults.get(principal.applicationId, vaultId)).availableBalance;
  const seal = async () => (await engine.operator.sealTransfers())?.batchNumber ?? -1;
  const transfers = [{ ...whole(world, vaults.items), amount: 3n }];
  const signedUntil = (seconds: number) =>
    signTransfers(
      world,
      transfers,
      at(users, 0).owner,
      BigInt(Math.floor((Date.now() + ahead) / 1000) + seconds),
    );
  const list = await engine.transfers.request(principal, await signedUntil(3_700));
  const late = await seal();
  expect(await balanceOf(vaults.items)).toBe(0n);
  ahead = 3_800_000;
  await chain.rpc("evm_increaseTime", [toHex(3_800)]);
  await chain.mine(1);
  expect(await settler.round()).toMatchObject({ committed: 1 });
  expect(await engine.batches.get("zk-rollup", late)).toMatchObject({
    kind: "calldata",
    status: "settled",
  });
  await settler.round();
  const { status, failure } = await listOf(world, list);
  expect([status, failure]).toEqual(["failed", expect.stringContaining("deadline")]);
  expect(await balanceOf(vaults.items)).toBe(7n);
  // The vault goes with another deadline.
  await engine.transfers.request(principal, await signedUntil(86_400));
  const again = await seal();
  expect(await settler.round()).toMatchObject({ committed: 1 });
  expect(await engine.batches.get("zk-rollup", again)).toMatchObject({
    kind: "transfers",
    status: "settled",
  });
  await expectOneHistory(world);
  await world.close();
});
