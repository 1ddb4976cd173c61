import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ordersOf } from "../../core/orders/index.ts";
import { createClient, sell } from "../../server/client/index.ts";
import { requireOrder } from "../../server/client/trade.ts";
import { type TransferWorld, transferWorld } from "../server/transfers-fixture.ts";
import { mintmark } from "./cli.ts";

const sellerKey = generatePrivateKey();
const buyerKey = generatePrivateKey();
const seller = privateKeyToAccount(sellerKey);
const buyer = privateKeyToAccount(buyerKey);
const FEE = { basisPoints: 200, to: `0x${"fe".repeat(20)}` } as const;

let made: TransferWorld;
let settings: Record<string, string>;
let purse: string;
let url: string;
beforeAll(async () => {
  made = await transferWorld(seller);
  const { engine, applicationId, app, key, erc20, send } = made.world;
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  settings = { MINTMARK_URL: url, MINTMARK_API_KEY: key };
  const { userId } = await engine.users.create(applicationId, { ownerAddress: buyer.address });
  const mints = [{ assetId: erc20.assetId, amount: 400, dataAvailabilityMode: "validium" }];
  const { body } = await send("POST", "/api/v1/mint", { body: { users: [{ userId, mints }] } });
  purse = body.vaults[0].vaultId;
  const terms = { listing: "application", fee: FEE, assets: [] } as const;
  await ordersOf(engine).setTerms(applicationId, terms);
});
afterAll(() => made.world[Symbol.asyncDispose]());

test("a seller lists, a buyer takes with change, and both see it", async () => {
  const { erc20, erc721 } = made.world;
  const { ticket } = await made.final();
  const bySeller = { ...settings, MINTMARK_OWNER_KEY: sellerKey };
  const asked = ["sell", ticket, "--asset", erc20.assetId, "--for", "250", "--json"];
  const listed = await mintmark(asked, bySeller);
  expect([listed.code, listed.stderr]).toEqual([0, ""]);
  const { orderId } = listed.json();
  const offers = ["orders", "--asset", erc721.assetId, "--want", erc20.assetId, "--cheapest"];
  const [open] = (await mintmark([...offers, "--json"], settings)).json();
  expect(open).toMatchObject({ orderId, want: { amount: "250" }, shares: [{ amount: "5" }] });
  const bought = await mintmark(["buy", orderId, "--json"], {
    ...settings,
    MINTMARK_OWNER_KEY: buyerKey,
  });
  expect([bought.code, bought.json()]).toMatchObject([
    0,
    { status: "filled", counterOrderId: orderId, vaultId: purse, give: { amount: "250" } },
  ]);
  const again = await mintmark(["buy", orderId], { ...settings, MINTMARK_OWNER_KEY: buyerKey });
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("order")]);
  const ended = await mintmark(["cancel-order", orderId], settings);
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("order_ended")]);
  const filled = await mintmark(["orders", "--status", "filled", "--json"], settings);
  expect(filled.json()).toHaveLength(2);
  expect((await mintmark(["orders", "--status", "gone"], settings)).code).toBe(2);
});

test("the client signs no other order than it was asked for", async () => {
  const { engine, applicationId, key, erc20 } = made.world;
  const { ticket } = await made.final();
  const client = createClient({ baseUrl: url, apiKey: key });
  const want = { assetId: erc20.assetId, amount: "250" };
  const { data: prepared } = await client.POST("/api/v1/orders/prepare", {
    body: { vaultId: ticket, want },
  });
  if (prepared === undefined) throw new Error("it was not prepared");
  const { message } = prepared.typedData as unknown as { message: { taker: string } };
  const item = { token: erc20.contractAddress, id: "0", amount: "250" };
  const meant = { vaultId: ticket, want: item, taker: message.taker };
  requireOrder(prepared, meant);
  for (const [change, fault] of [
    [{ vaultId: "7" }, "gives something else"],
    [{ give: item }, "gives something else"],
    [{ want: { ...item, amount: "251" } }, "wants something else"],
    [{ want: { ...item, token: FEE.to } }, "wants something else"],
    [{ taker: FEE.to }, "another taker"],
    [{ deadline: "1" }, "another deadline"],
    [{ mostShared: 199 }, "shares of 5 base units"],
  ] as const)
    expect(() => requireOrder(prepared, { ...meant, ...change })).toThrow(fault);
  const dear = { basisPoints: 2_000, to: FEE.to };
  await ordersOf(engine).setTerms(applicationId, { listing: "application", fee: dear, assets: [] });
  await expect(sell(client, { vaultId: ticket, want, signer: seller })).rejects.toThrow("shares");
});
