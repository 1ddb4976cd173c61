/**
 * Loyalty points: an ERC-20 token, one mint for each order, in the mode validium.
 * Shows idempotency keys (an order that is told twice counts once) and balances.
 *
 *   npm run example -- loyalty
 */
import type { Uuid } from "mintmark";
import { openShop } from "./shop.ts";

const { engine, applicationId, principal, addToken } = await openShop("./loyalty-data");
await using _ = engine;
const points = await addToken({
  standard: "erc20",
  contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508",
  name: "Points",
  symbol: "PTS",
});

/**
 * Gives a customer the points of an order. The order's id makes a repeated call safe, also after a
 * crash.
 */
async function earn(userId: Uuid, amount: number, orderId: string): Promise<boolean> {
  const mint = { assetId: points, amount, dataAvailabilityMode: "validium" } as const;
  const request = { users: [{ userId, mints: [mint] }] };
  const { replayed } = await engine.mint(principal, request, { idempotencyKey: orderId });
  return !replayed;
}

const customer = await engine.users.create(applicationId, {
  ownerAddress: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
});
for (const [orderId, amount] of [
  ["order-1", 250],
  ["order-2", 100],
  ["order-2", 100], // the shop was not sure whether its first call had arrived
] as const) {
  const isNew = await earn(customer.userId, amount, orderId);
  console.log(`${orderId}: ${isNew ? `earned ${amount}` : "counted before"}`);
}
for await (const { amount, available } of engine.vaults.balances(applicationId, customer.userId)) {
  console.log(`the customer has ${amount} points and can withdraw ${available}`);
}
