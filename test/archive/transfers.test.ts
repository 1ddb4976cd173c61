import { createWalletClient, zeroAddress, zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Archive, type InvalidTransfer, rebuild } from "../../core/archive/index.ts";
import type { Address, VaultId } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { at, commitUnseen, pointOn } from "../settlement/fixture.ts";
import {
  becomeFinal,
  claimed,
  createTransferWorld,
  friendOf,
  give,
  listOf,
  signTransfers,
  type TransferWorld,
  whole,
} from "../settlement/transfers-fixture.ts";
import { chainOf, openArchive, sourceOf } from "./fixture.ts";

const key = privateKeyToAccount(generatePrivateKey());
/** In a batch that comes later. */
const MISSING = packVaultId({ mode: "zk-rollup", batchNumber: 0, slot: 99 });

async function vaultsOf(archive: Archive, owner: Address): Promise<readonly [VaultId, bigint][]> {
  const ids = await Array.fromAsync(archive.vaultsOf(owner));
  return Promise.all(ids.map(async (id) => [id, (await archive.vaultContent(id)).amount] as const));
}

describe("committed transfers, read from L1 alone", () => {
  let world: TransferWorld;
  /** The vaults of the first batch of transfers: the token, 30 units, and the other 70. */
  let [sword, paid, change]: VaultId[] = [];
  let approved: VaultId = 0n;
  let refusals: readonly PromiseSettledResult<unknown>[];

  beforeAll(async () => {
    world = await createTransferWorld({}, async (empty) => {
      approved = await empty.mint("erc1155", "zk-rollup", "9", 2);
    });
    const { vaults, users, settler, chain, l1, members } = world;
    const owner = at(users, 0).owner;
    const friend = at(users, 1).owner;
    const list = await give(world, [
      whole(world, vaults.token),
      { ...whole(world, vaults.units), amount: 30n },
    ]);
    await settler.round();
    const wallet = createWalletClient({ account: owner, transport: chain.transport });
    const call = { abi: stateCommitmentAbi, address: l1.settlement.contract, chain: null } as const;
    const session = [owner.address, key.address, 2n ** 40n, 70n, 0n, "0x"] as const;
    await wallet.writeContract({ ...call, functionName: "authorizeSession", args: session });
    const onL1 = {
      transfers: [whole(world, approved)],
      deadline: 2n ** 32n - 2n,
      signature: "0x",
    } as const;
    const message = [onL1.transfers, onL1.deadline] as const;
    await wallet.writeContract({ ...call, functionName: "approveTransfers", args: message });
    await becomeFinal(world);
    const { transfers } = await listOf(world, list);
    [sword, paid, change] = transfers.map(({ newVaultId }) => newVaultId ?? 0n);

    // Each owner has approved it, so each record would count.
    const ofTwo = {
      ...onL1,
      transfers: [whole(world, change ?? 0n), whole(world, paid ?? 0n)],
    } as const;
    for (const account of [owner, friend]) {
      const approving = createWalletClient({ account, transport: chain.transport });
      await approving.writeContract({
        ...call,
        functionName: "approveTransfers",
        args: [ofTwo.transfers, ofTwo.deadline],
      });
    }
    await becomeFinal(world);
    const bySession = await signTransfers(
      world,
      [{ ...whole(world, change ?? 0n), amount: 20n }],
      key,
    );
    const redeemed = await signTransfers(
      world,
      [{ ...whole(world, sword ?? 0n), to: zeroAddress }],
      friend,
    );
    const stolen = await signTransfers(world, [whole(world, vaults.items)], friend);
    const nowhere = await signTransfers(world, [whole(world, MISSING)], owner);
    const terms = { ...(await pointOn(l1)), epoch: 0n };
    const ask = (...groups: Parameters<typeof claimed>[0]) =>
      at(members, 0).sign(claimed(groups, 2), terms);
    const again = await signTransfers(world, [whole(world, vaults.token)], owner);
    // Nothing rests on these sessions: the owners' own signature and approval count without any.
    const stranger = privateKeyToAccount(generatePrivateKey());
    const alsoSigned = await signTransfers(world, onL1.transfers, stranger, onL1.deadline);
    for (const [account, by] of [
      [friend, friend],
      [owner, stranger],
    ] as const) {
      const revoking = createWalletClient({ account, transport: chain.transport });
      await revoking.writeContract({
        ...call,
        functionName: "revokeSession",
        args: [account.address, by.address, "0x"],
      });
    }
    refusals = await Promise.allSettled([
      ask(bySession, redeemed, onL1),
      ask(bySession, stolen),
      ask(again),
      ask(alsoSigned),
      ask(ofTwo),
    ]);
    await commitUnseen(l1, claimed([bySession, stolen, nowhere, redeemed, onL1], 2));
  });
  afterAll(() => world.close());

  test("a member signs what L1 will count, and nothing else", () => {
    expect(refusals).toMatchObject([
      { status: "fulfilled" },
      {
        status: "rejected",
        reason: { reason: "transfer", message: expect.stringContaining("not_authorized") },
      },
      {
        status: "rejected",
        reason: { reason: "transfer", message: expect.stringContaining("spent already") },
      },
      { status: "fulfilled" },
      {
        status: "rejected",
        reason: { reason: "transfer", message: expect.stringContaining("another owner") },
      },
    ]);
  });

  async function requireOwners(archive: Archive): Promise<void> {
    const { vaults, users } = world;
    const batch = (slot: number) => packVaultId({ mode: "zk-rollup", batchNumber: 2, slot });
    expect(await vaultsOf(archive, friendOf(world))).toEqual([
      [paid, 30n],
      [batch(0), 20n],
      [batch(5), 2n],
    ]);
    expect(await vaultsOf(archive, at(users, 0).owner.address)).toEqual([
      [vaults.items, 7n],
      [batch(1), 50n],
    ]);
    expect(await archive.output(batch(1))).toMatchObject({
      origin: vaults.units,
      spent: change,
      hops: 2,
    });
    expect(await archive.spending(vaults.items)).toEqual({
      outId: batch(2),
      fault: "not_authorized",
    });
    // A redeemed token, a record of nobody, and a spent vault.
    await expect(archive.vaultContent(batch(4))).rejects.toMatchObject({ code: "vault_not_found" });
    await expect(archive.vaultContent(batch(3))).rejects.toMatchObject({ code: "vault_not_found" });
    expect(await archive.spending(sword ?? 0n)).toEqual({ outId: batch(4), fault: null });
  }

  test("give each vault to its present owner, and tell of records that move nothing", async () => {
    const found: InvalidTransfer[] = [];
    const archive = await openArchive(world);
    const report = await rebuild({
      archive,
      ...(await chainOf(world)),
      sources: [sourceOf(at(world.members, 0))],
      onInvalidTransfer: (each) => found.push(each),
    });
    expect(report).toMatchObject({ missing: [], unjudged: [], invalidTransfers: 2 });
    await requireOwners(archive);
    expect(found.map(({ vaultId, fault }) => [vaultId, fault])).toEqual([
      [MISSING, "no_vault"],
      // Its data came later, from a member.
      [world.vaults.items, "not_authorized"],
    ]);
    await archive.close();
  });

  test("wait for the data of the vaults that they spend", async () => {
    const archive = await openArchive(world);
    const blind = await rebuild({ archive, ...(await chainOf(world)) });
    expect(blind).toMatchObject({
      missing: ["validium-0"],
      unjudged: ["zk-rollup-1", "zk-rollup-2"],
    });
    await expect(archive.vaultContent(paid ?? 0n)).rejects.toMatchObject({
      code: "proof_not_ready",
    });
    // Operator and members can withhold the data of one vault. The other records of its batch do
    // not wait for it.
    const given = packVaultId({ mode: "zk-rollup", batchNumber: 2, slot: 5 });
    expect(await vaultsOf(archive, friendOf(world))).toEqual([[given, 2n]]);
    expect((await archive.vaultProof(given)).hops).toHaveLength(1);
    expect(await archive.spending(sword ?? 0n)).toMatchObject({ fault: null });
    const report = await rebuild({
      archive,
      ...(await chainOf(world)),
      sources: [sourceOf(at(world.members, 0))],
    });
    expect(report).toMatchObject({ missing: [], unjudged: [], invalidTransfers: 2 });
    await requireOwners(archive);
    await archive.close();
  });

  test("count when their data comes after an exit, and after a void of what they began with", async () => {
    const { l1, vaults } = world;
    const archive = await openArchive(world);
    await rebuild({ archive, ...(await chainOf(world)) });
    const place = { txHash: zeroHash, blockNumber: await l1.blockNumber() } as const;
    const exit = { quantity: 1n, withdrawnTotal: 1n, recipient: friendOf(world) } as const;
    await archive.apply({
      type: "withdrawn",
      vaultId: sword ?? 0n,
      ...exit,
      ...place,
      logIndex: 98,
    });
    const voided = { earlierVaultId: vaults.items, laterVaultId: vaults.token } as const;
    for (let i = 0; i < 2; i++)
      await archive.apply({ type: "duplicateVoided", ...voided, ...place, logIndex: 99 });
    const report = await rebuild({
      archive,
      ...(await chainOf(world)),
      sources: [sourceOf(at(world.members, 0))],
    });
    expect(report).toMatchObject({ missing: [], unjudged: [], invalidTransfers: 2 });
    await requireOwners(archive);
    expect(await archive.spending(vaults.token)).toEqual({ outId: sword, fault: null });
    expect(await archive.paid(sword ?? 0n)).toBe(1n);
    await archive.close();
  });

  test("become worthless with a voided duplicate that they began with", async () => {
    const archive = await openArchive(world);
    await rebuild({
      archive,
      ...(await chainOf(world)),
      sources: [sourceOf(at(world.members, 0))],
    });
    const place = { txHash: zeroHash, blockNumber: await world.l1.blockNumber(), logIndex: 99 };
    await archive.apply({
      type: "duplicateVoided",
      ...place,
      earlierVaultId: world.vaults.items,
      laterVaultId: world.vaults.token,
    });
    expect(await archive.withdrawn(sword ?? 0n)).toBe(1n);
    expect(await archive.withdrawn(world.vaults.token)).toBe(1n);
    expect(await archive.paid(sword ?? 0n)).toBe(0n);
    // A record of a later batch would give nothing away.
    const later = { batchNumber: 3, sequence: 5n, committedAt: 1n };
    const friend = at(world.users, 1).owner;
    const group = await signTransfers(world, [whole(world, sword ?? 0n)], friend);
    expect((await archive.judge([group], later)).judged).toMatchObject([{ fault: "exhausted" }]);
    await archive.close();
  });
});
