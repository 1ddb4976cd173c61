import { describe, expect, test } from "vitest";
import { contextOf } from "../../../core/engine.ts";
import { type Engine, ORDER_EVENTS, type VaultId } from "../../../core/index.ts";
import {
  fillState,
  pendingFills,
  recordFillFailed,
  recordFillRefused,
  recordFillSettled,
  recordFillSubmitted,
} from "../../../core/orders/fills.ts";
import {
  FillSender,
  type L1Trader,
  type OrderPreparation,
  ordersOf,
} from "../../../core/orders/index.ts";
import { cancellationId, orderTypedData } from "../../../core/protocol/typed-data.ts";
import { all, hashOf, mintOf, newTenant, OWNERS, openTest, refusal, requestOf } from "./fixture.ts";
import { HOME, hear, made as making, ownerAddress, signedList, withdrawn } from "./l1-fixture.ts";
import { signedOrder } from "./orders-fixture.ts";
import { commitAll, signedTransfers, transferable } from "./transfers-fixture.ts";

const FEE = { basisPoints: 200, to: `0x${"fe".repeat(20)}` } as const;
const ARTIST = `0x${"a1".repeat(20)}` as const;
const [, buyer] = OWNERS;

/** An engine whose application lists orders, with a fee and a royalty on its ERC-721. */
async function market(options: Parameters<typeof transferable>[0] = {}) {
  const made = await transferable(options);
  const { engine, assets, tenant } = made;
  const orders = ordersOf(engine);
  const royalty = { basisPoints: 500, to: ARTIST };
  await orders.setTerms(tenant.applicationId, {
    listing: "owners",
    fee: FEE,
    assets: [
      { assetId: assets.erc721, royalty, minimum: null },
      { assetId: assets.erc20, royalty: null, minimum: 10n },
    ],
  });
  const sale = (amount = 250n): OrderPreparation => ({
    vaultId: made.token,
    want: { assetId: assets.erc20, amount },
  });
  const listed = async (asked = sale()) =>
    orders.create(tenant.principal, await signedOrder(made, asked));
  const seen = () => all(orders.list(tenant.applicationId));
  return { ...made, orders, sale, listed, seen };
}

describe("an order", () => {
  test("is prepared with fee and royalty, listed once, found, and ended by its maker", async () => {
    const made = await market();
    await using engine = made.engine;
    const { orders, tenant, assets, token, sale } = made;
    const { applicationId, principal } = tenant;
    const { owner, order } = await orders.prepare(principal, sale());
    expect(owner).toBe(ownerAddress);
    expect(order.shares).toEqual([
      { to: FEE.to, amount: 5n },
      { to: ARTIST, amount: 12n },
    ]);
    const signed = await signedOrder(made, sale());
    const listed = await orders.create(principal, signed);
    expect(listed).toMatchObject({
      applicationId,
      status: "open",
      failure: null,
      vaultId: token,
      maker: ownerAddress,
      taker: null,
      give: { assetId: assets.erc721, tokenId: 1n, amount: 1n, symbol: "erc721" },
      want: { assetId: assets.erc20, tokenId: null, amount: 250n },
      shares: [{ amount: 5n }, { amount: 12n }],
    });
    expect(await orders.create(principal, signed)).toEqual(listed);
    expect(await made.seen()).toEqual([listed]);
    const owners = { owner: ownerAddress };
    expect(await orders.get(owners, listed.orderId)).toEqual(listed);
    expect(await all(orders.list(owners))).toEqual([listed]);
    const stranger = { owner: buyer.address };
    expect((await refusal(orders.get(stranger, listed.orderId))).code).toBe("order_not_found");
    expect((await refusal(orders.cancel(stranger, listed.orderId))).code).toBe("order_not_found");
    const cancelled = await orders.cancel(owners, listed.orderId);
    expect(cancelled.status).toBe("cancelled");
    expect(await orders.cancel(principal, listed.orderId)).toEqual(cancelled);
    expect(await all(orders.list(applicationId, { status: "open" }))).toEqual([]);
    expect((await made.listed(sale(300n))).status).toBe("open");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("holds only by the signature of the vault's owner, over the terms of now", async () => {
    const made = await market();
    await using _ = made.engine;
    const { orders, tenant, assets, sale } = made;
    const create = async (request: Promise<Parameters<typeof orders.create>[1]>) =>
      (await refusal(orders.create(tenant.principal, await request))).code;
    const signed = await signedOrder(made, sale());
    expect(await create(signedOrder(made, sale(), buyer))).toBe("signature_invalid");
    const dearer = { ...signed, want: { ...signed.want, amount: 1_000n } };
    expect(await create(Promise.resolve(dearer))).toBe("order_not_allowed");
    expect(await create(Promise.resolve({ ...signed, taker: ARTIST }))).toBe("signature_invalid");
    const [fee, royalty] = signed.shares;
    for (const shares of [[], [fee!], [royalty!, fee!], [{ ...fee!, amount: 4n }, royalty!]])
      expect(await create(Promise.resolve({ ...signed, shares }))).toBe("order_not_allowed");
    const give = { ...signed.give, id: 2n };
    expect(await create(Promise.resolve({ ...signed, give }))).toBe("order_not_allowed");
    const more = {
      ...(await orders.terms(tenant.applicationId)),
      fee: { ...FEE, basisPoints: 300 },
    };
    await orders.setTerms(tenant.applicationId, more);
    expect(await create(Promise.resolve(signed))).toBe("order_not_allowed");
    const want = { assetId: assets.erc20, amount: 9n };
    const prepare = (change: Partial<OrderPreparation>) =>
      refusal(orders.prepare(tenant.principal, { ...sale(), ...change }));
    expect((await prepare({ want })).code).toBe("order_not_allowed");
    expect((await prepare({ want: { ...want, tokenId: 1n } })).code).toBe("validation_failed");
    expect((await prepare({ deadline: 1n })).code).toBe("deadline_invalid");
    expect((await prepare({ vaultId: 77n })).code).toBe("vault_not_found");
  });

  test("is for whom the terms let list", async () => {
    const made = await market();
    await using _ = made.engine;
    const { orders, tenant, sale } = made;
    const terms = await orders.terms(tenant.applicationId);
    const code = async (caller: Parameters<typeof orders.prepare>[0]) =>
      (await refusal(orders.prepare(caller, sale()))).code;
    await orders.setTerms(tenant.applicationId, { ...terms, listing: "application" });
    expect(await code({ owner: ownerAddress })).toBe("order_not_allowed");
    expect((await orders.prepare(tenant.principal, sale())).owner).toBe(ownerAddress);
    await orders.setTerms(tenant.applicationId, { ...terms, listing: "nobody" });
    expect(await code(tenant.principal)).toBe("order_not_allowed");
  });

  test("is the only open one of its vault, and makes room once it is over", async () => {
    const made = await market();
    await using engine = made.engine;
    const { listed, sale, orders, clock, seen } = made;
    const deadline = BigInt(clock.now / 1000 + 600);
    const first = await listed({ ...sale(), deadline });
    expect((await refusal(listed(sale(300n)))).code).toBe("order_exists");
    clock.now += 601_000;
    expect((await orders.get(made.tenant.applicationId, first.orderId)).status).toBe("expired");
    const second = await listed(sale(300n));
    const [newest, before] = await seen();
    expect([newest, before?.status]).toEqual([second, "stale"]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

test("an order gives a part of a vault, and the rest stays in it", async () => {
  const made = await market();
  await using _ = made.engine;
  const { orders, tenant, units, assets } = made;
  const want = { assetId: assets.erc721, tokenId: 9n, amount: 1n };
  const bid = await made.listed({ vaultId: units, amount: 40n, want });
  expect(bid.give.amount).toBe(40n);
  const over = orders.prepare(tenant.principal, { vaultId: units, amount: 101n, want });
  expect((await refusal(over)).code).toBe("insufficient_balance");
  const dust = orders.prepare(tenant.principal, { vaultId: units, amount: 9n, want });
  expect((await refusal(dust)).code).toBe("order_not_allowed");
  await hear(made.engine, withdrawn(units, 1n, 1n, ownerAddress, 900n));
  expect((await made.seen())[0]?.status).toBe("stale");
});

describe("an order goes stale by itself", () => {
  test("while a transfer or a withdrawal takes its vault, and is open again if that fails", async () => {
    const made = await market();
    await using _ = made.engine;
    const { engine, listed, seen, token, tenant, clock } = made;
    await listed();
    const list = await signedList(made, [token], { seconds: 3_600 });
    const [asked] = await engine.withdrawals.request(tenant.principal, list);
    expect((await seen())[0]).toMatchObject({
      status: "stale",
      failure: expect.stringMatching(/withdrawal/),
    });
    clock.now += 3_601_000;
    const late = BigInt(clock.now / 1000);
    await engine.operator.recordWithdrawalFailed(asked?.withdrawal?.withdrawalId ?? "", "no", late);
    expect((await seen())[0]?.status).toBe("open");
    const gift = [{ vaultId: token, amount: 0n, to: buyer.address }];
    await engine.transfers.request(tenant.principal, await signedTransfers(made, gift));
    expect((await seen())[0]).toMatchObject({
      status: "stale",
      failure: expect.stringMatching(/transfer/),
    });
  });

  test("and its vault takes no other order while it leaves", async () => {
    const made = await market();
    await using _ = made.engine;
    const { engine, tenant, token, sale, orders } = made;
    const list = await signedList(made, [token], { seconds: 3_600 });
    await engine.withdrawals.request(tenant.principal, list);
    expect((await refusal(orders.prepare(tenant.principal, sale()))).code).toBe(
      "withdrawal_pending",
    );
  });

  test("when L1 pays its vault, and not if that block is taken back", async () => {
    const made = await market();
    await using _ = made.engine;
    const { engine, listed, seen, token } = made;
    await listed();
    await hear(engine, withdrawn(token, 1n, 1n, ownerAddress, 900n));
    expect((await seen())[0]?.status).toBe("stale");
    await engine.operator.recordReorg(HOME, 900n);
    expect((await seen())[0]?.status).toBe("open");
  });

  test("when its token came back from L1 as another vault", async () => {
    const made = await market();
    await using _ = made.engine;
    const { engine, listed, seen, tenant, assets } = made;
    await listed();
    const { assetType } = await engine.assets.get(tenant.applicationId, assets.erc721);
    const sword = { owner: ownerAddress, assetType, amount: 1n, mintingBlob: "0x31" } as const;
    await engine.operator.recordEvents(HOME, [making(1, [sword], 901n, 1n)], 901n, {
      finalized: 901n,
    });
    expect((await seen())[0]).toMatchObject({
      status: "stale",
      failure: expect.stringMatching(/came back/),
    });
  });

  test("or cancelled on L1, by its digest or for all of its vault", async () => {
    for (const isOfVault of [false, true]) {
      const made = await market();
      await using _ = made.engine;
      const { engine, listed, seen, token, sale, orders, tenant } = made;
      const { digest, orderId } = await listed();
      const at = { txHash: hashOf(902), blockNumber: 902n, logIndex: 0 };
      const id = isOfVault ? cancellationId(token) : digest;
      await hear(engine, { type: "authorizationCancelled", signer: ownerAddress, id, ...at });
      expect((await seen())[0]?.status).toBe("cancelled");
      expect((await orders.get(tenant.applicationId, orderId)).failure).toMatch(/on L1/);
      if (isOfVault) expect((await refusal(listed(sale(300n)))).code).toBe("signature_invalid");
      else expect((await listed(sale(300n))).status).toBe("open");
    }
  });

  test("and the server's sweep ends it", async () => {
    const made = await market();
    await using engine = made.engine;
    const { orders, listed, clock, tenant, sale } = made;
    await listed({ ...sale(), deadline: BigInt(clock.now / 1000 + 600) });
    expect(await orders.sweep(null)).toEqual({ open: 1, ended: 0, next: null });
    clock.now += 601_000;
    expect(await orders.sweep(null)).toEqual({ open: 0, ended: 1, next: null });
    expect(await orders.sweep(null)).toEqual({ open: 0, ended: 0, next: null });
    const [ended] = await all(orders.list(tenant.applicationId, { status: "expired" }));
    expect(ended?.failure).toBe("Its deadline has passed.");
    expect((await refusal(orders.cancel(tenant.principal, ended?.orderId ?? ""))).code).toBe(
      "order_ended",
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

describe("lists of orders", () => {
  test("are by asset, token, maker, price and status, with cursors", async () => {
    const made = await market();
    await using engine = made.engine;
    const { orders, tenant, assets, token, units } = made;
    const { applicationId } = tenant;
    const swords = await final(made.engine, made, [2, 3, 4]);
    const prices = [40n, 20n, 30n, 20n];
    const listed: string[] = [];
    for (const [i, vaultId] of [token, ...swords].entries()) {
      const want = { assetId: assets.erc20, amount: prices[i]! };
      listed.push((await made.listed({ vaultId, want })).orderId);
    }
    const bid = await made.listed({
      vaultId: units,
      want: { assetId: assets.erc721, tokenId: 9n, amount: 1n },
    });
    expect(bid.shares).toEqual([]);
    const ids = async (filter: Parameters<typeof orders.list>[1]) =>
      (await all(orders.list(applicationId, filter))).map(({ orderId }) => orderId);
    const sold = { assetId: assets.erc721 };
    const pair = { ...sold, wantAssetId: assets.erc20 };
    const [a, b, c, d] = listed as [string, string, string, string];
    expect(await ids({ limit: 2 })).toEqual([bid.orderId, d, c, b, a]);
    expect(await ids({ ...sold, limit: 1 })).toEqual([d, c, b, a]);
    expect(await ids({ ...sold, tokenId: 3n })).toEqual([c]);
    expect(await ids({ maker: ownerAddress, limit: 2 })).toEqual([bid.orderId, d, c, b, a]);
    expect(await ids({ maker: buyer.address })).toEqual([]);
    expect(await ids({ ...pair, sort: "price", limit: 1 })).toEqual([b, d, c, a]);
    expect(await ids({ ...pair, sort: "price", minPrice: 21n, maxPrice: 39n })).toEqual([c]);
    expect(await ids({ wantAssetId: assets.erc20, maxPrice: 20n })).toEqual([d, b]);
    await orders.cancel(tenant.principal, b);
    expect(await ids({ ...pair, sort: "price", limit: 1 })).toEqual([d, c, a]);
    expect(await ids({ status: "open", ...sold })).toEqual([d, c, a]);
    expect(await ids({ status: "cancelled" })).toEqual([b]);
    expect((await refusal(orders.list(applicationId, { sort: "price" }))).code).toBe(
      "validation_failed",
    );
    expect((await refusal(orders.list(applicationId, { maxPrice: 1n }))).code).toBe(
      "validation_failed",
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

/** Mints further ERC-721 tokens for the first user, final on L1. */
async function final(
  engine: Engine,
  { tenant, assets }: Pick<Awaited<ReturnType<typeof market>>, "tenant" | "assets">,
  ids: readonly number[],
): Promise<VaultId[]> {
  const { transactions } = await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], ...ids.map((id) => mintOf(assets.erc721, id))),
  );
  await engine.operator.seal("validium");
  await commitAll(engine, "validium", 1);
  return transactions.map(({ vaultId }) => vaultId);
}

/** A market whose second user has 400 units, and the first offers a sword for 250. */
async function bazaar() {
  const made = await market();
  const { engine, tenant, assets } = made;
  const { transactions } = await engine.mint(
    tenant.principal,
    requestOf(tenant.users[1], mintOf(assets.erc20, "", 400)),
  );
  await engine.operator.seal("validium");
  await commitAll(engine, "validium", 1);
  const purse = transactions[0]?.vaultId ?? 0n;
  const order = await made.listed();
  const counter = async (signer = buyer, vaultId = purse) => {
    const { orders } = made;
    const prepared = await orders.prepareFill(tenant.principal, order.orderId, { vaultId });
    const signature = await signer.signTypedData(orderTypedData(engine.settlement, prepared.order));
    return { ...prepared.order, signature };
  };
  const fill = async () => made.orders.fill(tenant.principal, order.orderId, await counter());
  return { ...made, purse, order, counter, fill };
}

describe("a fill", () => {
  test("is the order the other way round, once, and holds both vaults", async () => {
    const made = await bazaar();
    await using engine = made.engine;
    const { orders, tenant, order, purse, token, counter, seen } = made;
    const { principal } = tenant;
    const request = await counter();
    expect(request).toMatchObject({
      give: { amount: 250n },
      want: { id: 1n, amount: 1n },
      shares: [],
      taker: ownerAddress,
    });
    const filled = await orders.fill(principal, order.orderId, request);
    expect(filled).toMatchObject({ status: "filled", counterOrderId: order.orderId });
    expect(await orders.fill(principal, order.orderId, request)).toEqual(filled);
    expect((await seen()).map(({ status }) => status)).toEqual(["filled", "filled"]);
    expect((await refusal(counter())).code).toBe("fill_pending");
    for (const [vaultId, signer] of [
      [token, OWNERS[0]],
      [purse, buyer],
    ] as const) {
      const gift = [{ vaultId, amount: 0n, to: ARTIST }];
      const transfer = signedTransfers(made, gift, { signer });
      expect((await refusal(engine.transfers.request(principal, await transfer))).code).toBe(
        "fill_pending",
      );
      const list = await signedList(made, [vaultId], { signer, seconds: 3_600 });
      expect((await refusal(engine.withdrawals.request(principal, list))).code).toBe(
        "fill_pending",
      );
    }
    expect((await refusal(orders.cancel(principal, order.orderId))).code).toBe("order_ended");
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("by another signature, of other terms or by the maker itself is refused", async () => {
    const made = await bazaar();
    await using _ = made.engine;
    const { orders, tenant, order, counter, units, purse } = made;
    const fill = async (request: Parameters<typeof orders.fill>[2]) =>
      (await refusal(orders.fill(tenant.principal, order.orderId, request))).code;
    const request = await counter();
    expect(await fill(await counter(OWNERS[2]))).toBe("signature_invalid");
    const want = { assetId: made.assets.erc721, tokenId: 1n, amount: 1n };
    const cheap = { vaultId: purse, amount: 249n, want, taker: ownerAddress };
    expect(await fill(await signedOrder(made, cheap, buyer))).toBe("order_not_allowed");
    expect(await fill({ ...request, taker: buyer.address })).toBe("signature_invalid");
    const own = orders.prepareFill(tenant.principal, order.orderId, { vaultId: units });
    expect((await refusal(own)).code).toBe("insufficient_balance");
    await orders.cancel(tenant.principal, order.orderId);
    expect(await fill(request)).toBe("order_ended");
  });

  test("is for owners whom the order's own application lets trade", async () => {
    const made = await bazaar();
    await using engine = made.engine;
    const { orders, order, assets, tenant } = made;
    const other = await newTenant(engine, [assets.erc20]);
    await orders.setTerms(other.applicationId, { listing: "owners", fee: null, assets: [] });
    const { transactions } = await engine.mint(
      other.principal,
      requestOf(other.users[1], mintOf(assets.erc20, "", 300)),
    );
    await engine.operator.seal("validium");
    await commitAll(engine, "validium", 2);
    const owner = { owner: buyer.address };
    const vaultId = transactions[0]?.vaultId ?? 0n;
    const prepare = () => orders.prepareFill(owner, order.orderId, { vaultId });
    const { order: message } = await prepare();
    const signature = await buyer.signTypedData(orderTypedData(engine.settlement, message));
    const terms = await orders.terms(tenant.applicationId);
    await orders.setTerms(tenant.applicationId, { ...terms, listing: "application" });
    expect((await refusal(prepare())).code).toBe("order_not_allowed");
    const fill = () => orders.fill(owner, order.orderId, { ...message, signature });
    expect((await refusal(fill())).code).toBe("order_not_allowed");
    await orders.setTerms(tenant.applicationId, terms);
    const filled = await fill();
    expect(filled.status).toBe("filled");
    await orders.setTerms(tenant.applicationId, { ...terms, listing: "application" });
    expect(await fill()).toEqual(filled);
    const stranger = { owner: `0x${"99".repeat(20)}` } as const;
    const foreign = orders.prepareFill(stranger, order.orderId, { vaultId });
    expect((await refusal(foreign)).code).toBe("order_not_found");
  });

  test("is none by an order that is listed by itself", async () => {
    const made = await bazaar();
    await using _ = made.engine;
    const { orders, tenant, order, counter } = made;
    const request = await counter();
    const listed = await orders.create(tenant.principal, request);
    const fill = () => orders.fill(tenant.principal, order.orderId, request);
    expect((await refusal(fill())).code).toBe("order_exists");
    await orders.cancel(tenant.principal, listed.orderId);
    expect((await fill()).status).toBe("cancelled");
  });

  test("is settled once L1 has taken both vaults for good, and lost if the maker leaves alone", async () => {
    for (const isSettled of [true, false]) {
      const made = await bazaar();
      await using engine = made.engine;
      const { fill, order, purse, token, seen } = made;
      const filled = await fill();
      const context = contextOf(engine);
      const stateNow = async () => {
        const [pending] = await pendingFills(context.ledger);
        return pending === undefined ? null : fillState(context.ledger, pending);
      };
      const txHash = hashOf(950);
      await recordFillSubmitted(context, filled.orderId, txHash);
      expect((await seen()).map(({ l1TxHash }) => l1TxHash)).toEqual([txHash, txHash]);
      expect(await stateNow()).toEqual({ state: "waiting" });
      const { contract } = engine.settlement;
      const taken = [withdrawn(token, 1n, 1n, contract, 950n)];
      if (isSettled) taken.push(withdrawn(purse, 250n, 250n, contract, 950n, 1));
      await engine.operator.recordEvents(HOME, taken, 950n);
      if (isSettled) {
        // A reorganisation can still take the block back.
        expect(await stateNow()).toEqual({ state: "mined" });
        await engine.operator.recordFinalized(HOME, 950n);
        expect(await stateNow()).toEqual({ state: "settled" });
        await recordFillSettled(context, filled.orderId);
        expect((await seen()).map(({ status }) => status)).toEqual(["settled", "settled"]);
      } else {
        const over = { state: "over", failure: expect.stringMatching(/withdrawn/) };
        expect(await stateNow()).toEqual(over);
        await recordFillFailed(context, filled.orderId, "gone");
        const [takers, makers] = await seen();
        expect(takers).toMatchObject({ status: "stale", failure: "gone", counterOrderId: null });
        expect(makers).toMatchObject({ orderId: order.orderId, status: "stale" });
        expect(
          (await made.orders.prepare(made.tenant.principal, made.sale()).catch((e) => e)).code,
        ).toBe("insufficient_balance");
      }
      expect(await stateNow()).toBeNull();
      expect((await engine.operator.verify()).problems).toEqual([]);
    }
  });

  test("that one owner's wallet breaks makes nobody else wait", async () => {
    const made = await bazaar();
    await using engine = made.engine;
    const { orders, tenant, assets, items, fill } = made;
    const { principal } = tenant;
    const { transactions } = await engine.mint(
      principal,
      requestOf(tenant.users[2], mintOf(assets.erc20, "", 50)),
    );
    await engine.operator.seal("validium");
    await commitAll(engine, "validium", 2);
    const broken = await fill();
    const second = await made.listed({
      vaultId: items,
      want: { assetId: assets.erc20, amount: 50n },
    });
    const [{ vaultId } = { vaultId: 0n }] = transactions;
    const { order } = await orders.prepareFill(principal, second.orderId, { vaultId });
    const signature = await OWNERS[2].signTypedData(orderTypedData(engine.settlement, order));
    const sent: VaultId[][] = [];
    const l1: L1Trader = {
      blockNumber: async () => 1n,
      checkTrade: async () => null,
      async settle(trades) {
        sent.push(trades.map(({ taker }) => taker.order.vaultId));
        const refusals = trades.map(({ taker }) =>
          taker.order.vaultId === made.purse ? `SignatureInvalid(${broken.digest})` : null,
        );
        return { txHash: hashOf(960), blockNumber: 1n, gasUsed: 1n, refusals };
      },
    };
    const sender = new FillSender({ engine, l1, clock: () => 0 });
    await sender.send();
    await orders.fill(principal, second.orderId, { ...order, signature });
    await sender.send();
    expect(sent).toEqual([[made.purse], [vaultId]]);
    expect((await orders.get(tenant.applicationId, broken.orderId)).failure).toContain(
      `SignatureInvalid(${broken.digest})`,
    );
  });

  test("brings both owners their vaults in the application of their orders", async () => {
    const { engine, assets, ...made } = await transferable();
    await using _ = engine;
    // The first application has users of the same owners, and the same assets.
    const second = await newTenant(engine, Object.values(assets));
    const { applicationId, principal, users } = second;
    const orders = ordersOf(engine);
    await orders.setTerms(applicationId, { listing: "application", fee: null, assets: [] });
    const { transactions } = await engine.mint(principal, {
      users: [
        ...requestOf(users[0], mintOf(assets.erc721, 9)).users,
        ...requestOf(users[1], mintOf(assets.erc20, "", 5)).users,
      ],
    });
    await engine.operator.seal("validium");
    await commitAll(engine, "validium", 1);
    const [sword = 0n, purse = 0n] = transactions.map(({ vaultId }) => vaultId);
    const sale = { vaultId: sword, want: { assetId: assets.erc20, amount: 5n } };
    const order = await orders.create(
      principal,
      await signedOrder({ ...made, engine, tenant: second }, sale),
    );
    const prepared = await orders.prepareFill(principal, order.orderId, { vaultId: purse });
    const signature = await buyer.signTypedData(orderTypedData(engine.settlement, prepared.order));
    const taken = await orders.fill(principal, order.orderId, { ...prepared.order, signature });
    await recordFillSubmitted(contextOf(engine), taken.orderId, hashOf(970));
    const typeOf = async (assetId: string) => {
      const { assetType } = await engine.assets.get(applicationId, assetId);
      return { assetType };
    };
    const received = [
      { owner: ownerAddress, ...(await typeOf(assets.erc20)), amount: 5n, mintingBlob: "0x" },
      {
        owner: buyer.address.toLowerCase() as `0x${string}`,
        ...(await typeOf(assets.erc721)),
        amount: 1n,
        mintingBlob: "0x39",
      },
    ] as const;
    await engine.operator.recordEvents(HOME, [making(1, received, 970n)], 970n, {
      finalized: 970n,
    });
    const credited = await all(engine.deposits.list(applicationId));
    expect(credited.map(({ userId }) => userId).sort()).toEqual(
      [users[0]?.userId, users[1]?.userId].sort(),
    );
    expect(await all(engine.deposits.list(made.tenant.applicationId))).toEqual([]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("is told step by step, of both orders", async () => {
    const made = await bazaar();
    await using engine = made.engine;
    const { orders, tenant, order, fill, sale } = made;
    const heard: string[] = [];
    engine.events.on(ORDER_EVENTS, ({ event }) => void heard.push(event.type));
    const context = contextOf(engine);
    const taken = await fill();
    const txHash = hashOf(951);
    await recordFillSubmitted(context, taken.orderId, txHash);
    await recordFillRefused(context, taken.orderId, "not yet");
    await recordFillRefused(context, taken.orderId, "not yet");
    await recordFillFailed(context, taken.orderId, "gone");
    await orders.cancel(tenant.principal, order.orderId);
    await orders.create(tenant.principal, await signedOrder(made, sale(300n)));
    made.clock.now += 8 * 86_400_000;
    await orders.sweep(null);
    const [maker, taker] = [order.orderId, taken.orderId];
    const told = (await all(engine.events.stream(tenant.applicationId))).flatMap(
      ({ type, data }) => (type.startsWith("order.") ? [[type.slice(6), data]] : []),
    ) as unknown as [string, { orderId: string; failure: string | null }][];
    const steps = told.map(([type, data]) => [type, data.orderId]);
    expect(steps.slice(0, -2)).toEqual([
      ["created", maker],
      ["created", taker],
      ["filled", maker],
      ["filled", taker],
      ["submitted", maker],
      ["submitted", taker],
      ["attempt_refused", maker],
      ["attempt_refused", taker],
      ["reopened", maker],
      ["stale", taker],
      ["cancelled", maker],
    ]);
    expect(steps.slice(-2).map(([type]) => type)).toEqual(["created", "expired"]);
    expect(heard).toEqual(told.slice(1).map(([type]) => `order.${type}`));
    expect(told[5]?.[1]).toEqual({
      orderId: taker,
      userId: tenant.users[1]?.userId,
      vaultId: made.purse,
      counterOrderId: maker,
      l1TxHash: txHash,
      failure: null,
    });
    expect(told[9]?.[1]).toMatchObject({ counterOrderId: null, l1TxHash: null, failure: "gone" });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("outlives a restart, vaults held", async () => {
    const made = await bazaar();
    const { database, fill, tenant, token, clock } = made;
    await fill();
    await made.engine.close();
    await using engine = await openTest(database, { clock: clock.read });
    expect(await pendingFills(contextOf(engine).ledger)).toHaveLength(1);
    const list = await signedList({ engine, clock }, [token], { seconds: 3_600 });
    expect((await refusal(engine.withdrawals.request(tenant.principal, list))).code).toBe(
      "fill_pending",
    );
  });
});
