import type { TypedDataDefinition } from "viem";
import { zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import { ordersOf } from "../../core/orders/index.ts";
import { orderTypedData } from "../../core/protocol/index.ts";
import { FillBudget } from "../../server/http/access/fill-budget.ts";
import { type Answer, refusal, type SendOptions, signedIn } from "./fixture.ts";
import { transferWorld } from "./transfers-fixture.ts";

const owner = privateKeyToAccount(generatePrivateKey());
const fee = { basisPoints: 200, to: `0x${"fe".repeat(20)}` } as const;

// The tests take two fills. Repeated requests take none. A key's units hardly come back here, so
// that the tests can tell what a request costs.
const { world, userId, final, commit } = await transferWorld(owner, {
  fillsPerDay: 2,
  rateLimits: { key: { units: 1_000_000, windowSeconds: 1_000_000_000 } },
});
afterAll(() => world[Symbol.asyncDispose]());

const terms = { listing: "owners", fee, assets: [] };
const setTerms = (body: object, options: SendOptions = {}) =>
  world.send("PUT", "/api/v1/order-terms", { ...options, body });
const sale = (vaultId: string, amount = "250") => ({
  vaultId,
  want: { assetId: world.erc20.assetId, amount },
});
const prepare = (body: object, options: SendOptions = {}, path = "/api/v1") =>
  world.send("POST", `${path}/orders/prepare`, { ...options, body });

/** Signs what was prepared, as a wallet does, and sends what the answer says. */
async function submitted({ body }: Answer, options: SendOptions = {}): Promise<Answer> {
  const signature = await owner.signTypedData(body.typedData as TypedDataDefinition);
  return world.send("POST", body.submit.path, {
    ...options,
    body: { ...body.submit.body, signature },
  });
}

describe("orders over HTTP", () => {
  test("are listed by the application once its terms allow it, and ended", async () => {
    const { ticket } = await final();
    expect((await world.send("GET", "/api/v1/order-terms")).body).toEqual({
      listing: "nobody",
      fee: null,
      assets: [],
    });
    expect(refusal(await prepare(sale(ticket))).code).toBe("order_not_allowed");
    const reader = await world.newKey(["read", "transfer"]);
    expect(refusal(await setTerms(terms, { key: reader })).code).toBe("scope_missing");
    const much = { ...terms, fee: { ...fee, basisPoints: 2_501 } };
    expect(refusal(await setTerms(much)).code).toBe("validation_failed");
    expect((await setTerms(terms)).body).toEqual(terms);
    const prepared = await prepare(sale(ticket));
    expect(prepared.body).toMatchObject({
      ownerAddress: owner.address.toLowerCase(),
      typedData: {
        primaryType: "Order",
        message: {
          give: { token: world.erc721.contractAddress, amount: "1" },
          want: { token: world.erc20.contractAddress, id: "0", amount: "250" },
          shares: [{ to: fee.to, amount: "5" }],
          taker: zeroAddress,
          vaultId: ticket,
        },
      },
      submit: { path: "/api/v1/orders" },
    });
    const listed = await submitted(prepared);
    expect(listed.status).toBe(201);
    expect(listed.body).toMatchObject({ status: "open", userId, vaultId: ticket });
    const path = String(listed.headers.location);
    expect((await world.send("GET", path)).body).toEqual(listed.body);
    expect(refusal(await world.send("GET", path, { key: world.otherKey })).code).toBe(
      "order_not_found",
    );
    expect((await submitted(prepared)).body).toEqual(listed.body);
    const other = await prepare(sale(ticket, "300"));
    expect(refusal(await submitted(other)).code).toBe("order_exists");
    const query = `assetId=${world.erc721.assetId}&wantAssetId=${world.erc20.assetId}`;
    const byPrice = await world.send("GET", `/api/v1/orders?${query}&sort=price`);
    expect(byPrice.body.data).toEqual([listed.body]);
    const dear = await world.send("GET", `/api/v1/orders?${query}&minPrice=251`);
    expect(dear.body.data).toEqual([]);
    expect(refusal(await world.send("GET", "/api/v1/orders?sort=price")).code).toBe(
      "validation_failed",
    );
    const cancelled = await world.send("DELETE", path);
    expect(cancelled.body).toEqual({
      ...listed.body,
      status: "cancelled",
      updatedAt: cancelled.body.updatedAt,
    });
    expect((await world.send("GET", "/api/v1/orders?status=open")).body.data).toEqual([]);
    expect((await submitted(other)).body.status).toBe("open");
  });

  test("are a signed-in owner's own, where the terms let owners list", async () => {
    const { ticket } = await final();
    await setTerms(terms);
    const session = await signedIn(world, owner);
    const prepared = await prepare(sale(ticket), session, "/owner/v1");
    const listed = await submitted(prepared, session);
    expect(listed.body).toMatchObject({ status: "open", vaultId: ticket });
    expect(JSON.stringify(listed.body)).not.toContain(userId);
    const open = () => world.send("GET", "/owner/v1/orders?status=open", session);
    expect((await open()).body.data).toContainEqual(listed.body);
    const stranger = await signedIn(world, privateKeyToAccount(generatePrivateKey()));
    const path = `/owner/v1/orders/${listed.body.orderId}`;
    expect(refusal(await world.send("DELETE", path, stranger)).code).toBe("order_not_found");
    expect(refusal(await prepare(sale(ticket), stranger, "/owner/v1")).code).toBe(
      "vault_not_found",
    );
    expect((await world.send("DELETE", path, session)).body.status).toBe("cancelled");
    expect((await open()).body.data).not.toContainEqual(listed.body);
    await setTerms({ ...terms, listing: "application" });
    expect(refusal(await prepare(sale(ticket), session, "/owner/v1")).code).toBe(
      "order_not_allowed",
    );
  });

  test("are shown to the owners who can take them, and to no stranger", async () => {
    const { ticket } = await final();
    await setTerms({ ...terms, listing: "nobody" });
    const session = await signedIn(world, owner);
    const markets = (by: SendOptions) => world.send("GET", "/owner/v1/markets", by);
    expect((await markets(session)).body.data).toEqual([]);
    const at = (what: string, by: SendOptions, application = world.applicationId) =>
      world.send("GET", `/owner/v1/markets/${application}/${what}`, by);
    for (const what of ["orders", "assets"])
      expect(refusal(await at(what, session)).code).toBe("order_not_allowed");
    await setTerms(terms);
    expect((await markets(session)).body.data).toEqual([
      { applicationId: world.applicationId, name: expect.any(String), fee },
    ]);
    const listed = await submitted(await prepare(sale(ticket), session, "/owner/v1"), session);
    const shown = await at("orders", session);
    expect(shown.body.data).toContainEqual(listed.body);
    expect(JSON.stringify(shown.body)).not.toContain(userId);
    expect((await at(`orders?maker=${fee.to}`, session)).body.data).toEqual([]);
    const path = `/owner/v1/orders/${listed.body.orderId}`;
    expect((await world.send("DELETE", path, session)).body.status).toBe("cancelled");
    expect((await at("orders", session)).body.data).not.toContainEqual(listed.body);
    // An offer to one owner is that one's alone to see.
    const friend = privateKeyToAccount(generatePrivateKey());
    await world.engine.users.create(world.applicationId, { ownerAddress: friend.address });
    const offer = { ...sale(ticket), taker: friend.address };
    const toFriend = await submitted(await prepare(offer, session, "/owner/v1"), session);
    expect((await at("orders", session)).body.data).not.toContainEqual(toFriend.body);
    const shownToFriend = await at("orders", await signedIn(world, friend));
    expect(shownToFriend.body.data).toContainEqual(toFriend.body);
    const { body: assets } = await at("assets?limit=2", session);
    expect(assets.data).toHaveLength(2);
    expect(assets.data[0]).toMatchObject({ transferable: true });
    // A signed-in stranger is no user of the application, and the owner none of another one.
    const stranger = await signedIn(world, privateKeyToAccount(generatePrivateKey()));
    expect((await markets(stranger)).body.data).toEqual([]);
    for (const what of ["orders", "assets"]) {
      expect(refusal(await at(what, stranger)).code).toBe("application_not_found");
      expect(refusal(await at(what, session, world.otherApplicationId)).code).toBe(
        "application_not_found",
      );
      expect(refusal(await at(what, session, userId)).code).toBe("application_not_found");
    }
  });
});

describe("a settlement in StarkExpress's form", () => {
  const buyer = privateKeyToAccount(generatePrivateKey());
  const deadline = String(Math.floor(Date.now() / 1_000) + 3_600);

  /** A ticket of the owner for 10 units of the buyer, signed by both. */
  async function signedSettlement() {
    await setTerms(terms);
    const { ticket } = await final();
    const mint = { assetId: world.erc20.assetId, amount: 10, dataAvailabilityMode: "validium" };
    const users = [{ ownerAddress: buyer.address, mints: [mint] }];
    const minted = await world.send("POST", "/api/v1/mint", { body: { users } });
    await world.engine.operator.seal("validium");
    await commit("validium");
    const purse = minted.body.vaults[0].vaultId;
    const asked = { ...sale(ticket, "10"), taker: buyer.address, deadline };
    const { typedData } = (await prepare(asked)).body;
    const counter = {
      give: { token: world.erc20.contractAddress, id: 0n, amount: 10n },
      want: { ...typedData.message.give, id: BigInt(typedData.message.give.id), amount: 1n },
      shares: [],
      taker: owner.address,
      vaultId: BigInt(purse),
      withdrawnBefore: 0n,
      deadline: BigInt(deadline),
    };
    const side = { expirationTimestamp: deadline, nonce: 7 };
    const orderA = {
      ...side,
      sellVaultId: ticket,
      sellQuantizedAmount: "1",
      buyQuantizedAmount: "10",
      signature: await owner.signTypedData(typedData as TypedDataDefinition),
    };
    const orderB = {
      ...side,
      sellVaultId: purse,
      sellQuantizedAmount: "10",
      buyQuantizedAmount: "1",
      signature: await buyer.signTypedData(orderTypedData(world.engine.settlement, counter)),
    };
    return { orderA, orderB, counter };
  }
  const settle = (body: object) => world.send("POST", "/api/v1/settlements", { body });

  test("is taken once, and what L1 cannot carry is refused with the reason", async () => {
    const { counter: _, ...signed } = await signedSettlement();
    const { orderA, orderB } = signed;
    for (const [field, value] of [
      ["buyVaultId", "7"],
      ["feeVaultId", "7"],
      ["feeQuantizedAmount", "1"],
    ] as const) {
      const refused = await settle({ ...signed, orderA: { ...orderA, [field]: value } });
      expect(refused.body.errors[0]).toMatchObject({
        pointer: `/orderA/${field}`,
        detail: expect.stringMatching(/^Leave it out: /),
      });
    }
    const fees = { ...signed, settlementInfo: { orderAFeeAmount: "1" } };
    expect(refusal(await settle(fees)).code).toBe("validation_failed");
    const partly = { ...signed, orderB: { ...orderB, sellQuantizedAmount: "9" } };
    expect(refusal(await settle(partly)).errors).toEqual([
      "/orderA/buyQuantizedAmount validation_failed",
    ]);
    const forged = { ...signed, orderB: { ...orderB, signature: orderA.signature } };
    expect(refusal(await settle(forged)).code).toBe("signature_invalid");
    const settled = await settle({ ...signed, settlementInfo: {} });
    expect(settled.status).toBe(202);
    expect(settled.body).toMatchObject({
      orderA: { status: "filled", vaultId: orderA.sellVaultId },
      orderB: { status: "filled", counterOrderId: settled.body.orderA.orderId },
    });
    expect((await settle(signed)).body).toEqual(settled.body);
    // Another request of the same vaults is another one.
    const dearer = [
      { ...orderA, buyQuantizedAmount: "11" },
      { ...orderB, sellQuantizedAmount: "11" },
    ] as const;
    const [dearA, dearB] = dearer;
    expect(refusal(await settle({ orderA: dearA, orderB: dearB })).code).toBe("fill_pending");
  });

  test("is the same one again, whatever its maker has listed since, and paid by the page", async () => {
    const { ticket } = await final();
    const { counter: message, ...signed } = await signedSettlement();
    const settled = await settle(signed);
    /** Settles once more. Returns the units that it costs. */
    const repeated = async () => {
      const left = ({ headers }: Answer) => Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
      const before = await world.send("GET", "/api/v1/order-terms");
      const again = await settle(signed);
      expect(again.body).toEqual(settled.body);
      return left(before) - left(again);
    };
    expect(await repeated()).toBe(1);
    // Pages hold 50 orders.
    for (let i = 0; i < 51; i++) {
      const until = String(Number(deadline) + 1 + i);
      const listed = await submitted(await prepare({ ...sale(ticket, "10"), deadline: until }));
      await world.send("DELETE", String(listed.headers.location));
    }
    expect(await repeated()).toBe(2);
    const text = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
    const counter = JSON.parse(JSON.stringify(message, text));
    const again = await world.send("POST", `/api/v1/orders/${settled.body.orderA.orderId}/fills`, {
      body: { ...counter, signature: signed.orderB.signature },
    });
    expect(again.body).toEqual(settled.body.orderB);
  });

  test("counts as a fill, also for a server that starts later", async () => {
    const { engine, applicationId } = world;
    const fills = await ordersOf(engine).fillsSince(applicationId, 0, 10);
    expect(fills).toBe(2);
    const started = (perDay: number) => {
      const budget = new FillBudget(
        perDay,
        () => 0,
        (...asked) => ordersOf(engine).fillsSince(...asked),
      );
      return () => budget.count(applicationId, async () => "filled");
    };
    await expect(started(2)()).rejects.toMatchObject({ code: "rate_limited" });
    const fill = started(3);
    expect(await fill()).toBe("filled");
    await expect(fill()).rejects.toMatchObject({ code: "rate_limited" });
  });
});
