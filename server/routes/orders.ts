import { z } from "zod";
import type { PortalIdentity } from "../../core/index.ts";
import { LISTINGS, ordersOf, type PreparedOrder } from "../../core/orders/index.ts";
import { MAX_ORDER_SHARES, orderTypedData, TYPED_DATA_TYPES } from "../../core/protocol/index.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { type Endpoint, endpoint, json, paged } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import { asset } from "./assets.ts";
import { signedReceiver } from "./transfers.ts";
import { submissionOf, typedDataOf, typedDataToWire } from "./typed-data.ts";

const ORDERS = "/api/v1/orders";
const OWNERS = "/owner/v1/orders";
const MARKETS = "/owner/v1/markets";

const item = z.strictObject({
  token: s.address.describe("The token's contract."),
  id: s.tokenId.describe("The token's id; 0 for ERC-20."),
  amount: s.baseUnits.describe("Base units of the token."),
});

const orderBody = s.requestComponent("NewOrder", {
  give: item.describe("The order gives this of the vault. The rest stays in it."),
  want: item,
  shares: z
    .array(z.strictObject({ to: s.address, amount: s.baseUnits }))
    .max(MAX_ORDER_SHARES)
    .describe("Fee and royalty, as prepared: base units of what the maker receives."),
  taker: signedReceiver.describe("The only owner who can take it; the zero address for anybody."),
  vaultId: s.vaultId,
  withdrawnBefore: s.amount,
  deadline: s.seconds,
  signature: s.signature.describe(
    "The owner's EIP-712 `Order(Item give,Item want,Share[] shares,address taker,uint64 vaultId,uint64 withdrawnBefore,uint64 deadline)Item(address token,uint256 id,uint256 amount)Share(address to,uint256 amount)`, in the settlement contract's domain.",
  ),
});

const orderPreparationBody = s.requestComponent("NewOrderPreparation", {
  vaultId: s.vaultId,
  amount: s.positive
    .optional()
    .describe("Quantized units to give. Default: all that are left; the rest stays in the vault."),
  want: z.strictObject({
    assetId: s.uuid,
    tokenId: s.tokenId.optional().describe("The id of an ERC-721 or ERC-1155 token."),
    amount: s.positive.describe("Quantized units, fee and royalty included."),
  }),
  taker: s.address.optional().describe("The only owner who can take it. Default: anybody."),
  deadline: s.seconds
    .optional()
    .describe("Seconds since 1970, 5 minutes to 30 days ahead. Default: in seven days."),
});

const ORDER_TYPES = {
  Order: TYPED_DATA_TYPES.Order,
  Item: TYPED_DATA_TYPES.Item,
  Share: TYPED_DATA_TYPES.Share,
};
const EXAMPLE = {
  give: { token: `0x${"5e".repeat(20)}`, id: "7", amount: "1" },
  want: { token: `0x${"20".repeat(20)}`, id: "0", amount: "250" },
  shares: [{ to: `0x${"fe".repeat(20)}`, amount: "5" }],
  taker: `0x${"00".repeat(20)}`,
  vaultId: "1048578",
  withdrawnBefore: "0",
  deadline: "1893456000",
};

const orderPreparation = s.responseComponent("OrderPreparation", {
  ownerAddress: s.outAddress,
  digest: s.outHash.describe("What the signature signs."),
  typedData: typedDataOf(["Order"], ORDER_TYPES, EXAMPLE),
  submit: submissionOf({ path: ORDERS, body: EXAMPLE }),
});

const shownItem = z.strictObject({
  assetId: s.outUuid,
  tokenAddress: s.outAddress,
  tokenId: s.outDecimal.nullable().describe("null for ERC-20."),
  amount: s.outDecimal.describe("Quantized units."),
  amountDecimal: s.outAmountDecimal,
  ...s.outToken,
});

const STATUSES = ["open", "filled", "settled", "cancelled", "stale", "expired"] as const;

export const order = s.responseComponent("Order", {
  orderId: s.outUuid,
  userId: s.outUuid.describe("The maker's user."),
  maker: s.outAddress,
  vaultId: s.outDecimal,
  give: shownItem,
  want: shownItem.describe("What the maker wants, shares included."),
  shares: z
    .array(z.strictObject({ to: s.outAddress, amount: s.outDecimal, amountDecimal: z.string() }))
    .describe("Parts of it that go to others."),
  taker: s.outAddress.nullable().describe("null: anybody can take it."),
  deadline: s.outDecimal,
  digest: s.outHash,
  status: z
    .enum(STATUSES)
    .describe(
      "`filled`: somebody has taken it, and L1 is to settle it. `settled`: L1 has, for good. `stale`: the vault has been withdrawn from or transferred, or counts no more. An order is open again if that comes to nothing.",
    ),
  counterOrderId: s.outUuid.nullable().describe("The order that took it, or that it took."),
  l1TxHash: s.outHash.nullable().describe("The transaction that was sent to settle it last."),
  failure: z
    .string()
    .nullable()
    .describe("Why it is no longer open, or why L1 does not settle it now."),
  createdAt: s.outTime,
  updatedAt: s.outTime,
});

const ownersOrder = s.responseComponent("OwnersOrder", order.omit({ userId: true }));

const FEE = "A share of the fungible tokens that the signer of an order receives; null for none.";
const outPart = z.strictObject({ basisPoints: z.int(), to: s.outAddress }).nullable();

const markets = s.responseComponent("OwnerMarkets", {
  data: z.array(
    z.strictObject({ applicationId: s.outUuid, name: z.string(), fee: outPart.describe(FEE) }),
  ),
});

const marketAsset = s.responseComponent(
  "OwnerMarketAsset",
  asset.pick({
    assetId: true,
    standard: true,
    assetType: true,
    chainId: true,
    contractAddress: true,
    name: true,
    symbol: true,
    quantum: true,
    decimals: true,
    transferable: true,
  }),
);

const orderQuery = z.strictObject({
  status: z.enum(STATUSES).optional(),
  assetId: s.uuid.optional().describe("What the maker gives."),
  tokenId: s.tokenId.optional().describe("With `assetId`: this token."),
  maker: s.address.optional(),
  wantAssetId: s.uuid.optional().describe("What the maker wants."),
  minPrice: s.positive.optional().describe("Least units wanted; with `wantAssetId`."),
  maxPrice: s.positive.optional().describe("Most units wanted; with `wantAssetId`."),
  sort: z
    .enum(["newest", "price"])
    .optional()
    .describe("`price`: open orders, the lowest first; with `assetId` and `wantAssetId`."),
  ...s.page,
});

function partOf(text: string) {
  return z
    .strictObject({
      basisPoints: z.int().min(1).max(2_500).describe("Hundredths of a percent."),
      to: s.address,
    })
    .nullable()
    .describe(text);
}

const ROYALTY = "Goes to somebody else when the asset is sold for fungible tokens.";
const MINIMUM = "Fewest units of the asset in an order.";
const listing = z
  .enum(LISTINGS)
  .describe(
    "Who may list and take orders: `nobody`, the `application` by its keys, or signed-in `owners` too.",
  );

const termsBody = s.requestComponent("NewOrderTerms", {
  listing,
  fee: partOf(FEE),
  assets: z
    .array(
      z.strictObject({
        assetId: s.uuid,
        royalty: partOf(ROYALTY),
        minimum: s.positive.nullable().describe(MINIMUM),
      }),
    )
    .max(100)
    .describe("Each asset once."),
});

const terms = s.responseComponent("OrderTerms", {
  listing,
  fee: outPart.describe(FEE),
  assets: z.array(
    z.strictObject({
      assetId: s.outUuid,
      royalty: outPart.describe(ROYALTY),
      minimum: s.outDecimal.nullable().describe(MINIMUM),
    }),
  ),
});

/** These refuse an order before anyone has signed it. */
const PREPARATION_ERRORS = [
  "history_diverged",
  "l1_not_compared",
  "vault_not_found",
  "vault_void",
  "vault_spent",
  "asset_not_found",
  "asset_not_transferable",
  "proof_not_ready",
  "withdrawal_pending",
  "insufficient_balance",
  "deadline_invalid",
  "order_not_allowed",
] as const;

const FILL_ERRORS = ["order_ended", "fill_pending"] as const;

const fillPreparationBody = s.requestComponent("NewFillPreparation", {
  vaultId: s.vaultId.describe("It has what the order wants, or more; the rest stays in it."),
  deadline: s.seconds
    .optional()
    .describe("Seconds since 1970, 5 minutes to 30 days ahead. Default: in a day."),
});
const PREPARE = {
  vaultId: "9223372036854775808",
  want: { assetId: "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a11", amount: "250" },
};
/** Both kinds of callers prepare, list and take orders by these. */
const PREPARING = {
  body: orderPreparationBody,
  example: PREPARE,
  success: json(200, "What to sign.", orderPreparation),
  errors: PREPARATION_ERRORS,
} as const;
const PREPARING_FILL = {
  ...PREPARING,
  summary: "What an owner signs to take an order: the order the other way round",
  body: fillPreparationBody,
  example: { vaultId: PREPARE.vaultId },
  errors: [...PREPARATION_ERRORS, ...FILL_ERRORS],
} as const;
const LISTING = {
  body: orderBody,
  example: { ...EXAMPLE, signature: `0x${"00".repeat(65)}` },
  errors: [...PREPARATION_ERRORS, "order_exists", "signature_invalid", "l1_failed"],
} as const;
export const FILLING = { ...LISTING, errors: [...LISTING.errors, ...FILL_ERRORS] } as const;

export const orderEndpoints: readonly Endpoint[] = [
  endpoint("Orders", "read", "GET /api/v1/order-terms", "getOrderTerms", {
    summary: "Who may list orders, the fee, and the rules for single assets",
    success: json(200, "The terms of new orders.", terms),
    handle: ({ engine, applicationId }) => ordersOf(engine).terms(applicationId),
  }),
  endpoint("Orders", "assets", "PUT /api/v1/order-terms", "setOrderTerms", {
    summary: "Set the terms of new orders",
    description: "Open orders stay as they were signed.",
    right: "assets",
    body: termsBody,
    example: {
      listing: "owners",
      fee: { basisPoints: 200, to: `0x${"fe".repeat(20)}` },
      assets: [],
    },
    success: json(200, "The terms as they are now.", terms),
    errors: ["asset_not_found"],
    handle: ({ engine, applicationId, body }) => ordersOf(engine).setTerms(applicationId, body),
  }),
  endpoint("Orders", "transfer", `POST ${ORDERS}/prepare`, "prepareOrder", {
    summary: "What an owner signs to offer units of a vault for something else",
    description:
      "Answers EIP-712 typed data for `eth_signTypedData_v4`, with fee and royalty as shares, and the request to send with the signature. Changes nothing.",
    ...PREPARING,
    handle: async ({ engine, principal, body }) =>
      preparedToWire(engine.settlement, await ordersOf(engine).prepare(principal, body), ORDERS),
  }),
  endpoint("Orders", "transfer", `POST ${ORDERS}`, "createOrder", {
    summary: "List an order that its maker has signed",
    description:
      "A vault has one open order at a time. The order holds nothing: its maker can still withdraw or transfer the vault, which makes the order stale. The same signed order always returns the same one.",
    ...LISTING,
    success: { ...json(201, "Listed.", order), headers: { Location: "Path of the order." } },
    async handle({ engine, principal, body, request, reply }) {
      const listed = await ordersOf(engine).create(principal, body, paidBy(request));
      reply.header("location", `${ORDERS}/${listed.orderId}`);
      return listed;
    },
  }),
  endpoint("Orders", "read", `GET ${ORDERS}`, "listOrders", {
    summary: "Orders of the application, newest first or by price",
    description: "A page can be shorter than `limit` even if there is a next one.",
    ...paged("OrderPage", order),
    query: orderQuery,
    inTurn: true,
    handle: ({ engine, applicationId, query }) => ordersOf(engine).list(applicationId, query),
  }),
  endpoint("Orders", "read", `GET ${ORDERS}/{orderId}`, "getOrder", {
    summary: "One order",
    success: json(200, "As it is now.", order),
    handle: ({ engine, applicationId, params }) =>
      ordersOf(engine).get(applicationId, params.orderId),
  }),
  endpoint("Orders", "transfer", `POST ${ORDERS}/{orderId}/fills/prepare`, "prepareFill", {
    ...PREPARING_FILL,
    description: "Like `POST /api/v1/orders/prepare`. Changes nothing.",
    async handle({ engine, principal, params: { orderId }, body }) {
      const prepared = await ordersOf(engine).prepareFill(principal, orderId, body);
      return preparedToWire(engine.settlement, prepared, `${ORDERS}/${orderId}/fills`);
    },
  }),
  endpoint("Orders", "transfer", `POST ${ORDERS}/{orderId}/fills`, "createFill", {
    summary: "Take an order by a signed counter-order",
    description:
      "Holds both vaults at once. The operator brings both orders to L1, which settles both or neither; nobody else pays. The same counter-order always returns the same one.",
    ...FILLING,
    success: json(202, "The counter-order.", order),
    async handle({ engine, service, principal, params: { orderId }, body, request }) {
      const orders = ordersOf(engine);
      const fill = () => orders.fill(principal, orderId, body, paidBy(request));
      // A repeated fill is answered as before, and costs nothing more.
      if (await orders.isKnown(body)) return await fill();
      return await service.fills.count(principal.applicationId, fill);
    },
  }),
  endpoint("Orders", "transfer", `DELETE ${ORDERS}/{orderId}`, "cancelOrder", {
    summary: "List an order no longer",
    description:
      "Whoever has its signature can still bring it to L1. Its maker rules that out by a cancellation on L1 (docs/guides/trade.md).",
    success: json(200, "The cancelled order.", order),
    errors: ["order_ended"],
    handle: ({ engine, principal, params }) => ordersOf(engine).cancel(principal, params.orderId),
  }),
];

/** Orders of a signed-in owner, in all applications. */
export const ownerOrderEndpoints: readonly Endpoint[] = [
  endpoint("Owners", "owner", `GET ${MARKETS}`, "listOwnerMarkets", {
    summary: "The applications whose users the signed-in owner trades with",
    description: "Those that have the owner as a user, and whose terms let owners trade.",
    success: json(200, "The applications.", markets),
    inTurn: true,
    handle: async ({ engine, owner }) => ({ data: await ordersOf(engine).markets(owner) }),
  }),
  endpoint("Owners", "owner", `GET ${MARKETS}/{applicationId}/assets`, "listOwnerMarketAssets", {
    summary: "The tokens of an application in which the signed-in owner trades",
    ...paged("OwnerMarketAssetPage", marketAsset),
    errors: ["order_not_allowed"],
    async handle({ engine, owner, params: { applicationId }, query }) {
      await ordersOf(engine).requireMarket(owner, applicationId);
      return await engine.assets.list(applicationId, query);
    },
  }),
  endpoint("Owners", "owner", `GET ${MARKETS}/{applicationId}/orders`, "listOwnerMarketOrders", {
    summary: "Open orders that the signed-in owner could take, newest first or by price",
    description: "A page can be shorter than `limit` even if there is a next one.",
    ...paged("OwnersOrderPage", ownersOrder),
    query: orderQuery.omit({ status: true }),
    errors: ["order_not_allowed"],
    inTurn: true,
    async handle({ engine, owner, params: { applicationId }, query }) {
      const orders = ordersOf(engine);
      await orders.requireMarket(owner, applicationId);
      return await orders.list(applicationId, { ...query, status: "open", taker: owner });
    },
  }),
  endpoint("Owners", "owner", `POST ${OWNERS}/prepare`, "prepareOwnerOrder", {
    summary: "What the signed-in owner signs to offer units of a vault for something else",
    description: `Like \`POST ${ORDERS}/prepare\`, where the application's terms let owners list.`,
    ...PREPARING,
    handle: async ({ engine, owner, body }) =>
      preparedToWire(engine.settlement, await ordersOf(engine).prepare({ owner }, body), OWNERS),
  }),
  endpoint("Owners", "owner", `POST ${OWNERS}`, "createOwnerOrder", {
    summary: "List an order of the signed-in owner",
    description: `Like \`POST ${ORDERS}\`.`,
    ...LISTING,
    success: json(201, "Listed.", ownersOrder),
    handle: ({ engine, owner, body, request }) =>
      ordersOf(engine).create({ owner }, body, paidBy(request)),
  }),
  endpoint("Owners", "owner", `GET ${OWNERS}`, "listOwnerOrders", {
    summary: "The signed-in owner's orders in all applications, newest first",
    description: "A page can be shorter than `limit` even if there is a next one.",
    ...paged("OwnersOrderPage", ownersOrder),
    query: z.strictObject({ status: z.enum(STATUSES).optional(), ...s.page }),
    inTurn: true,
    handle: ({ engine, owner, query }) => ordersOf(engine).list({ owner }, query),
  }),
  endpoint("Owners", "owner", `POST ${OWNERS}/{orderId}/fills/prepare`, "prepareOwnerFill", {
    ...PREPARING_FILL,
    description: `Like \`POST ${ORDERS}/{orderId}/fills/prepare\`.`,
    errors: [...PREPARING_FILL.errors, "owner_relay_off"],
    async handle({ engine, service: { ownerRelay }, owner, params: { orderId }, body }) {
      // Refuse before the owner signs for nothing.
      ownerRelay.requireFor(owner, 1);
      const prepared = await ordersOf(engine).prepareFill({ owner }, orderId, body);
      return preparedToWire(engine.settlement, prepared, `${OWNERS}/${orderId}/fills`);
    },
  }),
  endpoint("Owners", "owner", `POST ${OWNERS}/{orderId}/fills`, "createOwnerFill", {
    summary: "Take an order by a counter-order of the signed-in owner",
    description: `Like \`POST ${ORDERS}/{orderId}/fills\`. A fill counts as one vault of the day's that the operator pays for.`,
    ...FILLING,
    success: json(202, "The counter-order.", ownersOrder),
    errors: [...FILLING.errors, "owner_relay_off"],
    async handle({ engine, service, owner, params: { orderId }, body, request }) {
      const { ownerRelay, fills } = service;
      const orders = ordersOf(engine);
      const { applicationId } = await orders.find({ owner }, orderId);
      const fill = () => orders.fill({ owner }, orderId, body, paidBy(request));
      if (await orders.isKnown(body)) return await fill();
      const counted = () => fills.count(applicationId, fill);
      return await ownerRelay.count(owner, 1, counted, () => 1);
    },
  }),
  endpoint("Owners", "owner", `DELETE ${OWNERS}/{orderId}`, "cancelOwnerOrder", {
    summary: "List an order of the signed-in owner no longer",
    description: `Like \`DELETE ${ORDERS}/{orderId}\`.`,
    success: json(200, "The cancelled order.", ownersOrder),
    errors: ["order_ended"],
    handle: ({ engine, owner, params }) => ordersOf(engine).cancel({ owner }, params.orderId),
  }),
];

function preparedToWire(
  settlement: PortalIdentity,
  { owner, order, digest }: PreparedOrder,
  path: string,
) {
  const typedData = typedDataToWire(orderTypedData(settlement, order));
  return { ownerAddress: owner, digest, typedData, submit: { path, body: typedData.message } };
}
