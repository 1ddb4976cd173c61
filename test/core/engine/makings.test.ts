import { expect, test } from "vitest";
import type { EngineOptions, Hex, L1Event } from "../../../core/index.ts";
import { restoreStore } from "../../../core/index.ts";
import { NaiveJournal } from "../naive/naive-store.ts";
import {
  all,
  fixture,
  memory,
  mintingBlobOf,
  mintOf,
  openTest,
  requestOf,
  SETTLEMENT,
} from "./fixture.ts";
import {
  committed,
  HOME,
  made,
  ownerAddress,
  signedList,
  stranger,
  withdrawn,
} from "./l1-fixture.ts";
import { signedTransfers } from "./transfers-fixture.ts";

const started = async (options: Partial<EngineOptions> = {}) => {
  const it = await fixture(options);
  const { engine, tenant, assets } = it;
  const { applicationId } = tenant;
  const typeOf = async (assetId: string) =>
    (await engine.assets.get(applicationId, assetId)).assetType;
  const units = (owner: Hex, amount: bigint, assetType: Hex) =>
    ({ owner, assetType, amount, mintingBlob: "0x" }) as const;
  return {
    ...it,
    applicationId,
    points: await typeOf(assets.erc20),
    swords: await typeOf(assets.erc721),
    units,
    /** L1 tells of these events, and of all up to this block. */
    tell: (events: readonly L1Event[], toBlock: bigint, how = {}) =>
      engine.operator.recordEvents(HOME, events, toBlock, how),
    deposits: () => all(engine.deposits.list(applicationId)),
  };
};

const idOf = (making: number) => (1n << 62n) | (BigInt(making) << 20n);

test("a making counts when it is final, and a reorganisation before has changed nothing", async () => {
  const { engine, tell, deposits, units, points } = await started();
  const [first, second] = [
    made(1, [units(ownerAddress, 5n, points)], 10n),
    made(1, [units(ownerAddress, 7n, points)], 11n),
  ];
  const length = async () => (await engine.operator.verify()).journalEntries;
  expect(await tell([first], 10n)).toBe(0);
  const before = await length();
  expect(await deposits()).toEqual([]);
  await engine.operator.recordReorg(HOME, 10n);
  expect(await length()).toBe(before + 1);
  // The number is another making's now.
  expect(await tell([second], 12n)).toBe(0);
  expect(await tell([second], 12n, { fromBlock: 0n, finalized: 11n })).toBe(1);
  expect(await deposits()).toMatchObject([{ vaultId: idOf(1), amount: 7n, l1BlockNumber: 11n }]);
  // It is told of again, and counts once.
  expect(await tell([second], 12n, { fromBlock: 0n, finalized: 12n })).toBe(0);
  expect(await deposits()).toHaveLength(1);
  expect((await engine.operator.verify()).problems).toEqual([]);
});

test("what a node leaves out is asked for again, and what it changes is refused", async () => {
  const { tell, deposits, units, points } = await started();
  const makings = [1, 2, 3].map((making) =>
    made(making, [units(ownerAddress, BigInt(making), points)], BigInt(making)),
  );
  const [first, second, third] = makings as [L1Event, L1Event, L1Event];
  const final = { fromBlock: 0n, finalized: 9n };
  expect(await tell([second], 9n, final)).toBeNull();
  await expect(tell([second], 9n, { finalized: 9n })).rejects.toMatchObject({ code: "l1_failed" });
  expect(await tell([first, second], 9n, final)).toBe(2);
  // Absence is no evidence: nothing is taken back.
  await expect(tell([second], 9n, final)).rejects.toMatchObject({ code: "l1_failed" });
  const altered = made(3, [units(ownerAddress, 4n, points)], 3n);
  const { batchRoot } = made(3, [units(ownerAddress, 3n, points)], 3n);
  await expect(tell([first, second, { ...altered, batchRoot }], 9n, final)).rejects.toMatchObject({
    code: "l1_failed",
  });
  // A withdrawal from a making that nothing told of shows that it is missing.
  const paid = withdrawn(idOf(3), 1n, 1n, ownerAddress, 4n);
  expect(await tell([first, second, paid], 9n, final)).toBeNull();
  expect(await tell([first, second, third, paid], 9n, final)).toBe(2);
  expect((await deposits()).map(({ amount }) => amount)).toEqual([3n, 2n, 1n]);
});

test("many strangers' vaults fill no memory of events, and each is its owner's later", async () => {
  const it = await started();
  const { engine, tell, deposits, units, points, applicationId } = it;
  const owners = Array.from(
    { length: 300 },
    (_, i): Hex => `0x${(i + 1).toString(16).padStart(40, "b")}`,
  );
  const events = owners.map((owner, i) => made(i + 1, [units(owner, 1n, points)], BigInt(i + 1)));
  const [{ eventCount: before }] = [
    { eventCount: (await all(engine.events.stream(applicationId))).length },
  ];
  await tell(events, 400n, { fromBlock: 0n, finalized: 400n });
  expect(await all(engine.events.stream(applicationId))).toHaveLength(before);
  await engine.users.createAll(
    applicationId,
    owners.slice(0, 200).map((ownerAddress) => ({ ownerAddress })),
  );
  await expect.poll(async () => (await deposits()).length).toBe(200);
  // A process that ends before it has given the others to their users does so at the next start.
  expect((await engine.operator.verify()).problems).toEqual([]);
});

test("of several vaults each has its own owner, user and place, also after a restart", async () => {
  const store = memory();
  const it = await started({ store });
  const { engine, tell, deposits, units, points, swords, tenant, assets, applicationId } = it;
  const sword = {
    owner: stranger,
    assetType: swords,
    amount: 1n,
    mintingBlob: mintingBlobOf("77"),
  } as const;
  const vaults = [units(stranger, 1n, points), units(ownerAddress, 2n, points), sword];
  const unknown = { ...units(stranger, 9n, `0x${"ab".repeat(32)}`) };
  const event = made(1, [...vaults, unknown, units(`0x${"58".repeat(20)}`, 3n, points)], 5n);
  await tell([event], 5n, { fromBlock: 0n, finalized: 5n });
  const { name, symbol } = await engine.assets.get(applicationId, assets.erc20);
  const coins = { name, symbol, amount: 2n, amountDecimal: "2" };
  expect(await deposits()).toMatchObject([{ ...coins, ownerAddress }]);
  expect(await engine.vaults.get(applicationId, idOf(1) + 1n)).toMatchObject(coins);
  for (const [slot, vault] of event.vaults.entries())
    expect((await engine.proofs.vault(idOf(1) + BigInt(slot))).vault).toMatchObject(vault);
  await engine.close();

  const again = await openTest(store, { settlement: SETTLEMENT });
  await again.users.create(applicationId, { ownerAddress: stranger });
  const listed = () => all(again.deposits.list(applicationId));
  await expect.poll(async () => (await listed()).length).toBe(3);
  expect((await listed()).map(({ vaultId }) => vaultId)).toEqual(
    [2n, 0n, 1n].map((slot) => idOf(1) + slot),
  );
  await again.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 3)));
  expect((await again.operator.verify()).problems).toEqual([]);
  const journal = new NaiveJournal();
  await again.operator.backup(journal);
  const target = memory();
  await restoreStore(journal, target);
  const restored = await openTest(target, { settlement: SETTLEMENT });
  expect(await all(restored.deposits.list(applicationId))).toEqual(await listed());
  await restored.close();
  await again.close();
});

test("an id that came back is refused, and an accepted mint of it is found before the commit", async () => {
  const { engine, tell, tenant, assets, swords, applicationId } = await started();
  const mint = (id: string) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, id)));
  const { vaults } = await mint("5");
  await mint("6");
  await engine.operator.seal("validium");
  const sword = {
    owner: ownerAddress,
    assetType: swords,
    amount: 1n,
    mintingBlob: mintingBlobOf("5"),
  } as const;
  expect(await engine.operator.enteredSlots("validium", 0)).toEqual([]);
  await tell([made(1, [sword], 5n, 5n)], 5n, { fromBlock: 0n, finalized: 5n });
  const slots = await engine.operator.enteredSlots("validium", 0);
  expect(slots).toMatchObject([{ firstSlot: 0, count: 1 }]);
  await engine.operator.voidSlots("validium", 0, slots);
  expect((await engine.vaults.get(applicationId, vaults[0]?.vaultId ?? 9n)).status).toBe("failed");
  expect(await engine.operator.enteredSlots("validium", 0)).toEqual([]);
  await expect(mint("5")).rejects.toMatchObject({ code: "token_already_minted" });
  expect((await engine.operator.verify()).problems).toEqual([]);
});

test("a vault whose token came back since is neither withdrawn nor given away", async () => {
  const it = await started();
  const { engine, tell, tenant, assets, swords } = it;
  const { vaults } = await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], mintOf(assets.erc721, "5")),
  );
  const vaultId = vaults[0]?.vaultId ?? 9n;
  await engine.operator.seal("validium");
  await engine.operator.recordRegistered(assets.erc721, { transferable: true });
  const sealed = await committed(engine, "validium", 0, 4n);
  await tell([sealed], 4n);
  await engine.operator.recordFinalized(HOME, 4n);
  const sword = {
    owner: ownerAddress,
    assetType: swords,
    amount: 1n,
    mintingBlob: mintingBlobOf("5"),
  } as const;
  const entry = { ...made(1, [sword], 5n, 5n), sequence: 1n };
  await tell([entry], 5n, { fromBlock: 5n, finalized: 5n });
  // L1 took the batch, so its slot is not void; the vault is, because another one has its token.
  const withdrawal = engine.withdrawals.request(tenant.principal, await signedList(it, [vaultId]));
  await expect(withdrawal).rejects.toMatchObject({ code: "vault_void" });
  await expect(
    engine.withdrawals.prepare(tenant.principal, { vaults: [{ vaultId }] }),
  ).rejects.toMatchObject({ code: "vault_void" });
  const given = await signedTransfers(it, [{ vaultId, amount: 0n, to: stranger }]);
  await expect(engine.transfers.request(tenant.principal, given)).rejects.toMatchObject({
    code: "vault_void",
  });
  for (const proof of [engine.proofs.vault(vaultId), engine.proofs.exit(vaultId)])
    await expect(proof).rejects.toMatchObject({ code: "vault_void" });
  const newest = await signedList(it, [idOf(1)]);
  expect(await engine.withdrawals.request(tenant.principal, newest)).toMatchObject([
    { error: null },
  ]);
});
