import { z } from "zod";
import type { Engine, Hex } from "../../core/index.ts";
import { type Order, ordersOf } from "../../core/orders/index.ts";
import { invalid } from "../http/errors.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import { FILL_ERRORS, isWaiting, order, SIGNED_ERRORS } from "./orders.ts";

/** A field of the original that L1 cannot carry here, and the reason. */
function absent(why: string) {
  return z.null(`Leave it out: ${why}`).optional().describe(`Not taken: ${why}`);
}

const NEW_VAULT = "L1 makes a new vault for what an owner receives.";
const FEES = "the application's order terms set fees, and each owner signs them.";

const side = z.strictObject({
  sellVaultId: s.vaultId.describe("The rest stays in it."),
  sellQuantizedAmount: s.positive,
  buyQuantizedAmount: s.positive.describe("Fees included: what the other side sells."),
  expirationTimestamp: s.seconds.describe("Seconds since 1970, 5 minutes to 30 days ahead."),
  signature: s.signature.describe(
    "The owner's EIP-712 `Order`, as `POST /api/v1/orders/prepare` shows it, with the other owner as `taker`; no Stark signature.",
  ),
  nonce: z.int().min(0).optional().describe("Ignored: an order counts once by itself."),
  buyVaultId: absent(NEW_VAULT),
  feeVaultId: absent(FEES),
  feeQuantizedAmount: absent(FEES),
});

const settlementBody = s.requestComponent("NewSettlement", {
  orderA: side,
  orderB: side,
  settlementInfo: z
    .strictObject({
      orderAFeeDestinationVaultId: absent(FEES),
      orderAFeeAmount: absent(FEES),
      orderBFeeDestinationVaultId: absent(FEES),
      orderBFeeAmount: absent(FEES),
    })
    .optional(),
});

const settlement = s.responseComponent("Settlement", { orderA: order, orderB: order });

type Side = z.output<typeof side>;

const EXAMPLE_SIDE = {
  sellVaultId: "1048578",
  sellQuantizedAmount: "1",
  buyQuantizedAmount: "250",
  expirationTimestamp: "1893456000",
  signature: `0x${"00".repeat(65)}`,
};

export const settlementEndpoints: readonly Endpoint[] = [
  endpoint("Orders", "transfer", "POST /api/v1/settlements", "createSettlement", {
    summary: "Settle two owners' orders, in the form of StarkExpress",
    description:
      "Lists the first order for the other owner alone, and takes it by the second one; the operator brings both to L1, which settles both or neither. If the second one is refused, the first stays listed, and the same request can be sent again. The same request always returns the same orders.",
    body: settlementBody,
    example: {
      orderA: EXAMPLE_SIDE,
      orderB: {
        ...EXAMPLE_SIDE,
        sellVaultId: "9223372036854775808",
        sellQuantizedAmount: "250",
        buyQuantizedAmount: "1",
      },
    },
    success: json(202, "Both orders.", settlement),
    errors: [...SIGNED_ERRORS, ...FILL_ERRORS],
    async handle({ engine, service, principal, body: { orderA, orderB } }) {
      requireMirrored(orderA, orderB);
      const { applicationId } = principal;
      const orders = ordersOf(engine);
      const { ownerAddress } = await engine.vaults.get(applicationId, orderA.sellVaultId);
      const wanted = await engine.vaults.get(applicationId, orderB.sellVaultId);
      const known = await settledBefore({ engine, applicationId }, ownerAddress, orderA, orderB);
      if (known !== null) return known;
      const { order: prepared } = await orders.prepare(principal, {
        vaultId: orderA.sellVaultId,
        amount: orderA.sellQuantizedAmount,
        want: {
          assetId: wanted.assetId,
          amount: orderA.buyQuantizedAmount,
          ...(wanted.tokenId !== null && { tokenId: wanted.tokenId }),
        },
        taker: wanted.ownerAddress,
        deadline: orderA.expirationTimestamp,
      });
      const listed = await orders.create(principal, { ...prepared, signature: orderA.signature });
      const { order: counter } = await orders.prepareFill(principal, listed.orderId, {
        vaultId: orderB.sellVaultId,
        deadline: orderB.expirationTimestamp,
      });
      const taken = await service.fills.count(
        applicationId,
        () => orders.fill(principal, listed.orderId, { ...counter, signature: orderB.signature }),
        isWaiting,
      );
      return { orderA: await orders.get(applicationId, listed.orderId), orderB: taken };
    },
  }),
];

/** Throws unless each side buys exactly what the other one sells. */
function requireMirrored(a: Side, b: Side): void {
  const why = "L1 settles whole orders: give what the other order sells.";
  if (a.buyQuantizedAmount !== b.sellQuantizedAmount)
    throw invalid("/orderA/buyQuantizedAmount", why);
  if (b.buyQuantizedAmount !== a.sellQuantizedAmount)
    throw invalid("/orderB/buyQuantizedAmount", why);
}

/** The orders of the same request before; null for a new one. */
async function settledBefore(
  { engine, applicationId }: { readonly engine: Engine; readonly applicationId: string },
  maker: string,
  { sellVaultId, sellQuantizedAmount, expirationTimestamp }: Side,
  orderB: Side,
): Promise<Record<"orderA" | "orderB", Order> | null> {
  const orders = ordersOf(engine);
  const { data } = await orders.list(applicationId, { maker: maker as Hex });
  for (const orderA of data) {
    const { vaultId, give, deadline, counterOrderId } = orderA;
    const isSame =
      vaultId === sellVaultId &&
      give.amount === sellQuantizedAmount &&
      deadline === expirationTimestamp;
    if (!isSame || counterOrderId === null) continue;
    const taken = await orders.get(applicationId, counterOrderId);
    if (taken.vaultId === orderB.sellVaultId) return { orderA, orderB: taken };
  }
  return null;
}
