import * as api from "../../server/client/index.ts";
import { ADMIN } from "../sandbox/accounts.ts";
import type { Choice } from "./choice.ts";

/** The application lists orders, and takes two percent. */
const TERMS: api.OrderTerms = {
  listing: "application",
  fee: { basisPoints: 200, to: ADMIN.address },
  assets: [],
};

/**
 * The seller offers a token for `price` units, and the buyer takes it from a vault that holds more.
 * Each signs one message, and the operator brings both to L1. Resolves once that is final.
 */
export async function trade(
  client: api.MintmarkClient,
  seller: Choice,
  buyer: Choice,
  price: bigint,
) {
  const terms = await api.answer(client.GET("/api/v1/order-terms"));
  if (terms.listing === "nobody")
    await api.answer(client.PUT("/api/v1/order-terms", { body: TERMS }));
  const offer = await api.sell(client, {
    vaultId: seller.vault.vaultId,
    want: { assetId: buyer.asset.assetId, amount: `${price}` },
    signer: seller.owner,
  });
  const { status, failure, l1TxHash } = await api.buy(client, {
    orderId: offer.orderId,
    vaultId: buyer.vault.vaultId,
    signer: buyer.owner,
    wait: true,
    pollingMs: 250,
  });
  if (status !== "settled" || l1TxHash === null)
    throw new Error(`the trade is ${status}: ${failure}`);
  const { data } = await api.answer(
    client.GET("/api/v1/deposits", { params: { query: { limit: 100 } } }),
  );
  const made = data.filter((deposit) => deposit.l1TxHash === l1TxHash);
  const gained = ({ user }: Choice, { asset }: Choice) =>
    made
      .filter(({ userId, assetId }) => userId === user.userId && assetId === asset.assetId)
      .reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const { vaultId } = buyer.vault;
  const paid = await api.answer(
    client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId } } }),
  );
  return {
    txHash: l1TxHash,
    /** Units of the price that go to the application. */
    fee: offer.shares.reduce((sum, { amount }) => sum + BigInt(amount), 0n),
    /** Units of the new vaults that L1 made, and those that the buyer's vault still has. */
    bought: gained(buyer, seller),
    earned: gained(seller, buyer),
    change: BigInt(paid.availableBalance),
  };
}
