import { custom, erc721Abi } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Standard, Uuid, VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/index.ts";
import { FillSender, ordersOf } from "../../core/orders/index.ts";
import { orderTypedData, withdrawalListTypedData } from "../../core/protocol/index.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import { at, createWorld, MATURITY } from "./fixture.ts";
import { becomeFinal, createTransferWorld, type TransferWorld } from "./transfers-fixture.ts";

const FEE = { basisPoints: 200, to: `0x${"fe".repeat(20)}` } as const;

describe("two players without gas", () => {
  let world: TransferWorld;
  let purse: VaultId;
  beforeAll(async () => {
    world = await createTransferWorld({}, async ({ engine, principal, users, assets }) => {
      const { userId } = at(users, 1);
      const assetId = assets.get("erc20") ?? "";
      const mint = {
        assetId,
        amount: 400,
        mintingBlob: "",
        dataAvailabilityMode: "validium",
      } as const;
      const { vaults } = await engine.mint(principal, { users: [{ userId, mints: [mint] }] });
      purse = at(vaults, 0).vaultId;
    });
    const { engine, principal } = world;
    await ordersOf(engine).setTerms(principal.applicationId, {
      listing: "application",
      fee: FEE,
      assets: [],
    });
    await world.chain.passSeconds(MATURITY);
  });
  afterAll(() => world.close());

  /** L1's newest blocks become final, and the engine hears of them. */
  const settled = async (sender: FillSender) => {
    await becomeFinal(world);
    return sender.send();
  };

  test("trade a sword for 250 points: both sides or neither, the fee paid, the change kept", async () => {
    const { engine, principal, users, vaults } = world;
    const assets = Object.fromEntries(world.assets) as Record<Standard, Uuid>;
    const { applicationId } = principal;
    const orders = ordersOf(engine);
    const [seller, buyer] = [at(users, 0), at(users, 1)];
    const want = { assetId: assets.erc20, amount: 250n };
    const { order } = await orders.prepare(principal, { vaultId: vaults.token, want });
    const signature = await seller.owner.signTypedData(orderTypedData(engine.settlement, order));
    const { orderId } = await orders.create(principal, { ...order, signature });
    // The seller is offline from now on.
    const counter = await orders.prepareFill(principal, orderId, { vaultId: purse });
    const signed = await buyer.owner.signTypedData(
      orderTypedData(engine.settlement, counter.order),
    );
    await orders.fill(principal, orderId, { ...counter.order, signature: signed });
    let now = 0;
    const sender = new FillSender({ engine, l1: world.l1, clock: () => now });
    expect(await sender.send()).toBe(1);
    const sent = await orders.get(applicationId, orderId);
    expect(sent).toMatchObject({ status: "filled", l1TxHash: expect.stringMatching(/^0x/) });
    // It is mined, and waits for the engine to hear of it, and for a final block.
    for (const hear of [async () => {}, () => world.settler.round()]) {
      await hear();
      now += 60_000;
      expect(await sender.send()).toBe(0);
      expect(await orders.get(applicationId, orderId)).toEqual(sent);
    }
    expect(await settled(sender)).toBe(0);
    expect(await orders.get(applicationId, orderId)).toMatchObject({
      status: "settled",
      failure: null,
    });
    const held = async (userId: string) =>
      (await Array.fromAsync(engine.vaults.list(applicationId, { userId })))
        .filter(({ availableBalance }) => availableBalance > 0n)
        .map(({ assetId, availableBalance }) => [assetId, availableBalance]);
    expect(await held(buyer.userId)).toEqual(
      expect.arrayContaining([
        [assets.erc721, 1n],
        [assets.erc20, 150n],
      ]),
    );
    const gone = await Array.fromAsync(engine.vaults.owned(seller.owner.address));
    expect(gone.find(({ vaultId: id }) => id === vaults.token)?.standing).toBe("traded");
    expect(await held(seller.userId)).toContainEqual([assets.erc20, 245n]);
    expect(await held(seller.userId)).not.toContainEqual([assets.erc721, 1n]);
    const fee = await engine.users.create(applicationId, { ownerAddress: FEE.to });
    await becomeFinal(world);
    expect(await held(fee.userId)).toEqual([[assets.erc20, 5n]]);
    expect((await engine.operator.verify()).problems).toEqual([]);

    // The buyer takes the sword to L1, like any vault.
    const bought = await Array.fromAsync(
      engine.vaults.list(applicationId, { userId: buyer.userId, assetId: assets.erc721 }),
    );
    const { vaultId } = at(bought, 0);
    const { owner } = buyer;
    const listed = { vaults: [{ vaultId, withdrawnBefore: 0n, quantity: 1n }] };
    const deadline = BigInt(Math.floor(Date.now() / 1_000) + 3_600);
    const message = { ...listed, recipient: owner.address, deadline };
    const exit = withdrawalListTypedData(engine.settlement, message);
    const list = { ...message, signature: await owner.signTypedData(exit) };
    await engine.withdrawals.request(principal, list);
    await world.settler.round();
    const token = at(world.chain.tokens, 1).address;
    const holder = await world.chain.client.readContract({
      address: token,
      abi: erc721Abi,
      functionName: "ownerOf",
      args: [1n],
    });
    expect(lower(holder)).toBe(lower(buyer.owner.address));
  });

  test("whose fill L1 refuses are told its reason, and what to do", async () => {
    const { engine, principal, users, l1, assets, vaults } = world;
    const orders = ordersOf(engine);
    const [seller, buyer] = [at(users, 0), at(users, 1)];
    const friends = await engine.mint(principal, {
      users: [
        {
          userId: buyer.userId,
          mints: [
            {
              assetId: assets.get("erc20") ?? "",
              amount: 9,
              mintingBlob: "",
              dataAvailabilityMode: "validium",
            },
          ],
        },
      ],
    });
    await engine.operator.seal("validium");
    await world.settler.round();
    await becomeFinal(world);
    const want = { assetId: assets.get("erc20") ?? "", amount: 9n };
    const { order } = await orders.prepare(principal, { vaultId: vaults.items, want });
    const sign = (message: typeof order, { owner }: typeof seller) =>
      owner.signTypedData(orderTypedData(engine.settlement, message));
    const signature = await sign(order, seller);
    const { orderId } = await orders.create(principal, { ...order, signature });
    const purse = at(friends.vaults, 0).vaultId;
    const counter = await orders.prepareFill(principal, orderId, { vaultId: purse });
    const request = { ...counter.order, signature: await sign(counter.order, buyer) };
    const taken = await orders.fill(principal, orderId, request);
    const owned = await connectL1({
      rpc: custom({ request: world.chain.request }),
      contract: world.chain.settlement.address,
      account: seller.owner,
      pollingMs: 5,
    });
    // The maker changes its mind on L1, of which the engine has not heard yet.
    const { digest } = await orders.get(principal.applicationId, orderId);
    await owned.cancel(digest);
    const sender = new FillSender({ engine, l1 });
    expect(await sender.send()).toBe(0);
    expect((await orders.get(principal.applicationId, taken.orderId)).failure).toBe(
      `L1 refuses the trade now: AuthorizationIsCancelled(${digest}); the owner has cancelled it on L1, and signs another order.`,
    );
    await settled(sender);
    expect(await orders.get(principal.applicationId, taken.orderId)).toMatchObject({
      status: "stale",
      failure: expect.stringContaining("cancelled it on L1"),
    });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("are not settled by a contract without the code of makings, which says so", async () => {
    const plain = await createWorld({ config: { transfers: false } });
    const trade = { maker: { vault: { vaultId: 1n } }, taker: { vault: { vaultId: 2n } } };
    expect(await plain.l1.checkTrade(trade as never)).toContain("makes no vaults");
    await plain.close();
  });
});
