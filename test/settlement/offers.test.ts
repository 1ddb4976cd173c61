import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type ExitKit,
  exportExitKit,
  offerText,
  parseOffer,
  prepareOffer,
  settleWithKits,
} from "../../core/exit/index.ts";
import type { VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/index.ts";
import { orderTypedData } from "../../core/protocol/index.ts";
import { at, MATURITY } from "./fixture.ts";
import { becomeFinal, createTransferWorld, type TransferWorld } from "./transfers-fixture.ts";

let world: TransferWorld;
/** Units of the second user. */
let purse: VaultId;
beforeAll(async () => {
  world = await createTransferWorld({}, async (empty) => {
    const entry = {
      assetId: empty.assets.get("erc20"),
      amount: "40",
      dataAvailabilityMode: "validium",
    };
    const users = [{ userId: at(empty.users, 1).userId, mints: [entry] }];
    const { vaults } = await empty.engine.mint(empty.principal, { users } as unknown);
    purse = at(vaults, 0).vaultId;
  });
  await world.chain.passSeconds(MATURITY);
});
afterAll(() => world.close());

const kitOf = async (vaultId: VaultId) =>
  exportExitKit(await world.engine.proofs.exit(vaultId), world.l1);

async function connected(user: number) {
  const account = at(world.users, user).owner;
  const { transport, settlement } = world.chain;
  const l1 = await connectL1({
    rpc: transport,
    contract: settlement.address,
    account,
    pollingMs: 5,
  });
  return { l1, account: account.address, owner: account };
}

/** An offer of the sword for units, as its file has it. */
async function offered(kit: ExitKit, units: bigint) {
  const { l1, account, owner } = await connected(0);
  const points = (await kitOf(purse)).token;
  const want = { token: points.address, id: 0n, amount: units * points.quantum };
  const order = await prepareOffer({ kit, l1, account, want });
  const signature = await owner.signTypedData(orderTypedData(kit.settlement, order));
  return offerText({ kit, order, signature });
}

test("two owners trade by a file and their kits, without a server, and the offer counts once", async () => {
  const sword = await kitOf(world.vaults.token);
  const file = await offered(sword, 25n);
  const offer = parseOffer(file);
  expect(offerText(offer)).toBe(file);
  const kit = await kitOf(purse);
  const { l1, account } = await connected(1);
  const settling = { offer, kit, l1, account };
  const before = await world.chain.client.getTransactionCount({ address: account });
  await expect(
    settleWithKits({ ...settling, kit: await kitOf(world.vaults.units) }),
  ).rejects.toMatchObject({ code: "validation_failed" });
  await expect(
    settleWithKits({ ...settling, offer: parseOffer(await offered(sword, 41n)) }),
  ).rejects.toMatchObject({ code: "insufficient_balance" });
  const forged = { ...offer, order: { ...offer.order, withdrawnBefore: 1n } };
  await expect(settleWithKits({ ...settling, offer: forged })).rejects.toMatchObject({
    code: "order_ended",
  });
  const cheaper = { ...offer.order.want, amount: offer.order.want.amount - kit.token.quantum };
  const lied = { ...offer, order: { ...offer.order, want: cheaper } };
  await expect(settleWithKits({ ...settling, offer: lied })).rejects.toMatchObject({
    code: "l1_failed",
  });
  expect(await world.chain.client.getTransactionCount({ address: account })).toBe(before);

  await settleWithKits(settling);
  await expect(settleWithKits(settling)).rejects.toMatchObject({
    code: expect.stringMatching(/insufficient_balance|order_ended/),
  });
  await world.settler.round();
  await becomeFinal(world);
  const held = async (user: number, kind: "erc20" | "erc721") => {
    const { engine, principal, users, assets } = world;
    const { userId } = at(users, user);
    const all = await Array.fromAsync(engine.vaults.balances(principal.applicationId, userId));
    return all
      .filter(({ assetId }) => assetId === assets.get(kind))
      .reduce((sum, { available }) => sum + available, 0n);
  };
  expect([await held(0, "erc721"), await held(1, "erc721")]).toEqual([0n, 1n]);
  expect([await held(0, "erc20"), await held(1, "erc20")]).toEqual([125n, 15n]);
});

test("a file that is no offer, or whose order is of another vault, is refused", async () => {
  const file = JSON.parse(await offered(await kitOf(world.vaults.units), 1n));
  const refused = (text: string) =>
    expect(() => parseOffer(text)).toThrow(expect.objectContaining({ code: "validation_failed" }));
  for (const text of ["", "null", "[]", "{}", JSON.stringify(file.kit)]) refused(text);
  for (const change of [
    { version: 2 },
    { signature: "0x" },
    { kit: null },
    { order: { ...file.order, vaultId: "1" } },
    { order: { ...file.order, deadline: -1 } },
    { order: { ...file.order, shares: [null] } },
    { order: { ...file.order, give: { ...file.order.give, id: "1" } } },
    { order: { ...file.order, want: null } },
  ])
    refused(JSON.stringify({ ...file, ...change }));
  expect(parseOffer(JSON.stringify(file)).order.want.amount).toBe(1_000n);
});
