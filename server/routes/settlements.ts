import { z } from "zod";
import type { Engine, Principal, SignedOptions, Uuid } from "../../core/index.ts";
import { type Order, ordersOf } from "../../core/orders/index.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { invalid } from "../http/errors.ts";
import type { Service } from "../service.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import { FILLING, order } from "./orders.ts";

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
type Body = z.output<typeof settlementBody>;
type Settled = Readonly<Record<"orderA" | "orderB", Order>>;

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
    errors: FILLING.errors,
    async handle({ engine, service, principal, request, body }) {
      requireMirrored(body);
      try {
        return await settle({ engine, service, principal, paid: paidBy(request) }, body);
      } catch (error) {
        // The vaults of an earlier request are no longer as it says.
        const onPage = (pages: number) => request.account?.pay(pages);
        const known = await settledBefore(engine, principal.applicationId, body, onPage);
        if (known === null) throw error;
        return known;
      }
    },
  }),
];

/** Throws unless each side buys exactly what the other one sells. */
function requireMirrored({ orderA, orderB }: Body): void {
  const why = "L1 settles whole orders: give what the other order sells.";
  if (orderA.buyQuantizedAmount !== orderB.sellQuantizedAmount)
    throw invalid("/orderA/buyQuantizedAmount", why);
  if (orderB.buyQuantizedAmount !== orderA.sellQuantizedAmount)
    throw invalid("/orderB/buyQuantizedAmount", why);
}

interface Caller {
  readonly engine: Engine;
  readonly service: Service;
  readonly principal: Principal;
  readonly paid: SignedOptions;
}

/** Lists the first order, and takes it by the second one. */
async function settle(
  { engine, service, principal, paid }: Caller,
  { orderA, orderB }: Body,
): Promise<Settled> {
  const { applicationId } = principal;
  const orders = ordersOf(engine);
  const wanted = await engine.vaults.get(applicationId, orderB.sellVaultId);
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
  const listed = await orders.create(principal, { ...prepared, signature: orderA.signature }, paid);
  const { order: counter } = await orders.prepareFill(principal, listed.orderId, {
    vaultId: orderB.sellVaultId,
    deadline: orderB.expirationTimestamp,
  });
  const request = { ...counter, signature: orderB.signature };
  const fill = () => orders.fill(principal, listed.orderId, request, paid);
  const taken = (await orders.isKnown(request))
    ? await fill()
    : await service.fills.count(applicationId, fill);
  return { orderA: await orders.get(applicationId, listed.orderId), orderB: taken };
}

/** Pages of the maker's newest orders in which an earlier request is looked for. */
const MOST_PAGES = 20;

/** The orders of the same request before; null for a new one. */
async function settledBefore(
  engine: Engine,
  applicationId: Uuid,
  { orderA, orderB }: Body,
  onPage: (pages: number) => void,
): Promise<Settled | null> {
  const orders = ordersOf(engine);
  const { ownerAddress: maker, assetId } = await engine.vaults.get(
    applicationId,
    orderA.sellVaultId,
  );
  const { assetId: wantAssetId } = await engine.vaults.get(applicationId, orderB.sellVaultId);
  const price = orderA.buyQuantizedAmount;
  const filter = { maker, assetId, wantAssetId, minPrice: price, maxPrice: price };
  let cursor: string | undefined;
  for (let pages = 1; pages <= MOST_PAGES; pages++) {
    onPage(pages);
    const { data, nextCursor } = await orders.list(applicationId, {
      ...filter,
      ...(cursor !== undefined && { cursor }),
    });
    for (const order of data) {
      if (!isOf(order, orderA) || order.counterOrderId === null) continue;
      const taken = await orders.get(applicationId, order.counterOrderId);
      if (isOf(taken, orderB)) return { orderA: order, orderB: taken };
    }
    if (nextCursor === null) return null;
    cursor = nextCursor;
  }
  return null;
}

function isOf({ vaultId, give, deadline }: Order, side: Side): boolean {
  return (
    vaultId === side.sellVaultId &&
    give.amount === side.sellQuantizedAmount &&
    deadline === side.expirationTimestamp
  );
}
