import type { WaitOptions } from "../abort.ts";
import { contextOf, type Engine } from "../engine.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { List } from "../ledger/list.ts";
import type { Address, Uuid } from "../model.ts";
import { type OrderMessage, orderDigest } from "../protocol/typed-data.ts";
import type { OrderRecord } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { requireKey, requireScope } from "../tenants/api-keys.ts";
import { requireUuid } from "../validate.ts";
import type { SignedOptions, VaultCaller } from "../vaults/signed-requests.ts";
import {
  judged,
  listOrders,
  type Order,
  type OrderCaller,
  type OrderFilter,
  orderView,
  orderViews,
  readOrder,
} from "./book.ts";
import { isUser, type Market, ownersMarkets, requireMarket } from "./markets.ts";
import { decodeOrder, decodeOrderId, orderNamed, putEnded } from "./order-records.ts";
import {
  createFill,
  createOrder,
  type FillPreparation,
  type OrderPreparation,
  type OrderRequest,
  type PreparedOrder,
  prepareFill,
  prepareOrder,
  type Taken,
} from "./request.ts";
import { type OrderTerms, setTerms, termsOf } from "./terms.ts";

/**
 * The orders of an engine that {@link openEngine} opened.
 *
 * @example
 * const orders = ordersOf(engine);
 * const { order } = await orders.prepare(principal, { vaultId, want: { assetId, amount: 250n } });
 * const signature = await owner.signTypedData(orderTypedData(engine.settlement, order));
 * const { orderId } = await orders.create(principal, { ...order, signature });
 */
export function ordersOf(engine: Engine): Orders {
  const context = contextOf(engine);
  return {
    terms: async (applicationId) => termsOf(context.ledger, applicationId),
    setTerms: async (applicationId, terms, wait) => setTerms(context, applicationId, terms, wait),
    markets: async (owner) => ownersMarkets(context.ledger, owner),
    requireMarket: async (owner, applicationId) =>
      requireMarket(context.ledger, owner, applicationId),
    prepare: async (caller, preparation) => prepareOrder(context.ledger, caller, preparation),
    async create(caller, request, options) {
      return takenView(context.ledger, await createOrder(context, caller, request, options));
    },
    async get(caller, orderId) {
      const { ledger } = context;
      return orderView(ledger, await readOrder(ledger, caller, orderId));
    },
    async find(caller, orderId) {
      const { ledger } = context;
      return orderView(ledger, await readTaken(ledger, caller, orderId));
    },
    list: (caller, filter = {}) => listOrders(context, caller, filter),
    async prepareFill(caller, orderId, preparation) {
      const { ledger } = context;
      return prepareFill(ledger, caller, await readTaken(ledger, caller, orderId), preparation);
    },
    async fill(caller, orderId, request, options) {
      const { ledger } = context;
      const order = await readTaken(ledger, caller, orderId);
      return takenView(ledger, await createFill(context, caller, order, request, options));
    },
    async isKnown(message) {
      const { store, services } = context.ledger;
      const key = keyOf.orderDigest(orderDigest(services.settlement, message));
      return (await store.get(key)) !== undefined;
    },
    cancel: (caller, orderId, wait) => cancel(context, caller, orderId, wait),
    sweep: (after, wait) => sweep(context, after, wait),
    waitingFills: () => context.ledger.trades.durable.size / 2,
    fillsSince: async (...asked) => fillsSince(context.ledger, ...asked),
  };
}

/** A new order is as it was written. An earlier one is judged by its vault of now. */
async function takenView(ledger: Ledger, taken: Taken): Promise<Order> {
  if (typeof taken === "string")
    return orderView(ledger, decodeOrder(taken, await ledger.store.get(keyOf.order(taken))));
  const [view] = await orderViews(ledger, [{ ...taken, order: taken }]);
  return view as Order;
}

/**
 * An order that a caller wants to take: of its application, or of any that an owner is a user of.
 */
async function readTaken(ledger: Ledger, caller: VaultCaller, orderId: Uuid): Promise<OrderRecord> {
  if (!("owner" in caller)) return readOrder(ledger, caller.applicationId, orderId);
  const id = requireUuid("orderId", orderId);
  const stored = await ledger.store.get(keyOf.order(id));
  const order = stored === undefined ? null : decodeOrder(id, stored);
  if (order === null || !(await isUser(ledger, caller.owner, order.applicationIndex)))
    throw new MintmarkError("order_not_found");
  return order;
}

/** A party may end its own order, and an application those of its users. */
async function cancel(
  context: EngineContext,
  caller: VaultCaller,
  orderId: Uuid,
  wait?: WaitOptions,
): Promise<Order> {
  if (!("owner" in caller)) requireScope(caller, "transfer");
  const party = "owner" in caller ? caller : caller.applicationId;
  const { ledger } = context;
  const { orderId: id } = await readOrder(ledger, party, orderId);
  const ended = await context.change(async (_, group) => {
    if (!("owner" in caller)) requireKey(ledger, group, caller);
    const order = decodeOrder(id, await group.read(ledger.store, keyOf.order(id)));
    if (order.status === "cancelled") return order;
    if (order.status !== "open") throw new MintmarkError("order_ended");
    return putEnded(ledger, group, order, "cancelled", null);
  }, wait);
  return orderView(ledger, ended);
}

function isOver(status: Order["status"]) {
  return status === "cancelled" || status === "stale" || status === "expired";
}

/** Orders that one sweep looks at. */
const SWEPT = 256;

/** Ends open orders that no longer count. Returns the vault behind which the next sweep begins. */
async function sweep(
  context: EngineContext,
  after: bigint | null,
  wait?: WaitOptions,
): Promise<Swept> {
  const { ledger } = context;
  const prefix = prefixOf.liveOrder();
  const start = after === null ? { gte: prefix } : { gt: keyOf.liveOrder(after) };
  const seen: OrderRecord[] = [];
  let next: bigint | null = null;
  for await (const [key, stored] of ledger.store.entries({
    ...start,
    lt: endOf(prefix),
    limit: SWEPT,
  })) {
    const orderId = decodeOrderId(stored);
    const order = await ledger.store.get(keyOf.order(orderId));
    // The list comes from a snapshot, so the order may have ended since.
    if (order !== undefined) seen.push(decodeOrder(orderId, order));
    next = key.readBigUInt64BE(1);
  }
  const over = (await judged(ledger, seen)).filter(({ order, status }) => status !== order.status);
  if (over.length > 0)
    await context.change(async (_, group) => {
      for (const { order: known, status, failure } of over) {
        const at = keyOf.order(known.orderId);
        const order = decodeOrder(known.orderId, await group.read(ledger.store, at));
        if (order.status === "open" && isOver(status))
          putEnded(ledger, group, order, status, failure);
      }
    }, wait);
  const open = seen.length - over.length;
  return { open, ended: over.length, next: seen.length < SWEPT ? null : next };
}

/** The orders that one sweep has looked at. */
interface Swept {
  /** Orders that are still open. */
  readonly open: number;
  readonly ended: number;
  /** The vault behind which the next sweep begins; null behind the last order. */
  readonly next: bigint | null;
}

/** The newest orders among which {@link fillsSince} looks: some seconds of reading. */
const LOOKED_AT = 20_000;

/** Waiting and settled fills of an application that were taken since a time, up to a number. */
async function fillsSince(
  ledger: Ledger,
  applicationId: Uuid,
  since: number,
  most: number,
): Promise<number> {
  const { applicationIndex } = ledger.tenants.application(applicationId, null);
  const index = prefixOf.applicationOrder(0, applicationIndex);
  let count = 0;
  for await (const [, stored] of ledger.store.entries({
    gte: index,
    lt: endOf(index),
    reverse: true,
    limit: LOOKED_AT,
  })) {
    const { orderId, counterId, createdAt } = await orderNamed(ledger, stored);
    if (count === most || createdAt < since) break;
    // The ids are in the order of their making, and the taker's order is the younger one.
    if (counterId !== null && counterId < orderId) count += 1;
  }
  return count;
}

/**
 * Orders of owners: units of vaults for other tokens of the same application.
 *
 * @example
 * const { data } = await ordersOf(engine).list(applicationId, { status: "open", assetId });
 */
export interface Orders {
  /** Rejects with `application_not_found`. */
  terms(applicationId: Uuid): Promise<OrderTerms>;
  /**
   * Sets who may list, the fee, royalties and minima, for orders from now on. Rejects with
   * `validation_failed`, `asset_not_found`.
   */
  setTerms(applicationId: Uuid, terms: OrderTerms, wait?: WaitOptions): Promise<OrderTerms>;
  /** The applications that have the owner as a user and let owners trade; of its first 500. */
  markets(owner: Address): Promise<readonly Market[]>;
  /**
   * Rejects with `application_not_found` unless the application has the owner as a user, and with
   * `order_not_allowed` unless it lets owners trade.
   */
  requireMarket(owner: Address, applicationId: Uuid): Promise<void>;
  /**
   * The message that an owner signs, with fee and royalty as shares, after all checks but that of
   * the signature. Rejects with `order_not_allowed`, and as a transfer does for a vault that cannot
   * change hands. Changes nothing.
   */
  prepare(caller: VaultCaller, preparation: OrderPreparation): Promise<PreparedOrder>;
  /**
   * Lists a signed order. The same one again resolves with it as it is now. Rejects with
   * `order_exists` while the vault has another open order, `order_not_allowed`,
   * `signature_invalid`.
   */
  create(caller: VaultCaller, request: OrderRequest, options?: SignedOptions): Promise<Order>;
  /** An application's order, or an owner's. Rejects with `order_not_found`. */
  get(caller: OrderCaller, orderId: Uuid): Promise<Order>;
  /**
   * An order that the caller may want to take: an application's own, or for an owner that of any
   * application that has the owner as a user. Rejects with `order_not_found`.
   */
  find(caller: VaultCaller, orderId: Uuid): Promise<Order>;
  /**
   * The orders of an application, or of an owner in all applications. Pages can be short although
   * more follow.
   */
  list(caller: OrderCaller, filter?: OrderFilter): List<Order>;
  /**
   * The counter-order that takes an order: its owner gives of this vault exactly what the order
   * wants. Rejects as `prepare` does, with `order_not_found`, and with `order_ended` when nobody
   * can take it any more. Changes nothing.
   */
  prepareFill(
    caller: VaultCaller,
    orderId: Uuid,
    preparation: FillPreparation,
  ): Promise<PreparedOrder>;
  /**
   * Takes an order by a signed counter-order, and holds both vaults until L1 has settled them.
   * Resolves with the counter-order; the same one again is the same fill. Rejects as `create` and
   * `prepareFill` do.
   */
  fill(
    caller: VaultCaller,
    orderId: Uuid,
    request: OrderRequest,
    options?: SignedOptions,
  ): Promise<Order>;
  /** Whether the same message was listed or taken before, so that it changes nothing any more. */
  isKnown(message: OrderMessage): Promise<boolean>;
  /**
   * Lists the order no longer. Whoever has its signature can still bring it to L1; its maker rules
   * that out by a cancellation on L1. Rejects with `order_not_found`, `order_ended`.
   */
  cancel(caller: VaultCaller, orderId: Uuid, wait?: WaitOptions): Promise<Order>;
  /**
   * Ends some open orders that no longer count, so that lists stay short: the server calls it again
   * and again.
   *
   * @param after - the vault behind which it begins: `next` of the call before; null for the first
   */
  sweep(after: bigint | null, wait?: WaitOptions): Promise<Swept>;
  /** The number of fills that wait for L1. */
  waitingFills(): number;
  /**
   * Orders of an application that were taken since a time and that L1 has settled or is to settle.
   * Counts at most so many, among the application's newest 20,000 orders.
   *
   * @param since - milliseconds since 1970
   */
  fillsSince(applicationId: Uuid, since: number, most: number): Promise<number>;
}
