import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, type PageStart } from "../ledger/list.ts";
import { readUsers } from "../ledger/user-records.ts";
import type { Address, Hash, Uuid, VaultId } from "../model.ts";
import { cancellationId } from "../protocol/typed-data.ts";
import { packVaultId } from "../protocol/vault.ts";
import { readEntry } from "../store/journal.ts";
import type { ActivityRecord, OrderItemRecord, OrderRecord } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { requireAddress, requireUuid } from "../validate.ts";
import { lineageFaults } from "../vaults/makings.ts";
import { secondsNow } from "../vaults/signed-requests.ts";
import {
  amountIn,
  decodeActivity,
  hasSlot,
  placeOf,
  readVaults,
  voidAt,
} from "../vaults/vaults.ts";
import { decodeOrder, orderNamed } from "./order-records.ts";

/**
 * `open`: it can be taken. `filled`: somebody has taken it, and L1 is to settle it. `settled`: L1
 * has, for good. `cancelled`: by its maker. `stale`: its vault is no longer as signed. `expired`:
 * its deadline has passed.
 */
export type OrderStatus = OrderRecord["status"];

/** Units of an asset on one side of an order. */
export interface Item extends ReturnType<typeof amountIn> {
  readonly assetId: Uuid;
  readonly tokenAddress: Address;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
}

/** A part of what the maker receives that goes to somebody else. */
export interface Share {
  readonly to: Address;
  /** Units of the wanted asset. */
  readonly amount: bigint;
  readonly amountDecimal: string;
}

/** An owner's offer: units of a vault for something else. */
export interface Order {
  readonly orderId: Uuid;
  readonly applicationId: Uuid;
  readonly userId: Uuid;
  readonly maker: Address;
  readonly vaultId: VaultId;
  readonly give: Item;
  /** The maker wants this, shares included. */
  readonly want: Item;
  readonly shares: readonly Share[];
  /** The only owner who can take it; null for anybody. */
  readonly taker: Address | null;
  /** Seconds since 1970. */
  readonly deadline: bigint;
  /** The hash of the signed message. */
  readonly digest: Hash;
  readonly status: OrderStatus;
  /** The order that took it, or that it took; null without one. */
  readonly counterOrderId: Uuid | null;
  /** The transaction that was sent to settle it last; null before. */
  readonly l1TxHash: Hash | null;
  /** Why it is no longer open, or why L1 does not settle it now; null otherwise. */
  readonly failure: string | null;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** Filter of a list of orders. */
export interface OrderFilter extends PageOptions {
  readonly status?: OrderStatus | undefined;
  /** The asset that the maker gives. */
  readonly assetId?: Uuid | undefined;
  /** The token that the maker gives; needs `assetId`. */
  readonly tokenId?: bigint | undefined;
  readonly maker?: Address | undefined;
  /** Orders that name this taker, or none. */
  readonly taker?: Address | undefined;
  readonly wantAssetId?: Uuid | undefined;
  /** Units wanted, inclusive; these two need `wantAssetId`. */
  readonly minPrice?: bigint | undefined;
  readonly maxPrice?: bigint | undefined;
  /**
   * `price`: open orders, the lowest price first; needs `assetId` and `wantAssetId`. Default
   * `newest`.
   */
  readonly sort?: "newest" | "price" | undefined;
}

/** Most orders that one page examines. */
const MOST_EXAMINED = 500;
/** Orders that are read at once. */
const READ_AT_ONCE = 50;
const MAX_PRICE = (1n << 63n) - 1n;

/** An order, and what it is now. */
interface Judged {
  readonly order: OrderRecord;
  readonly status: OrderStatus;
  readonly failure: string | null;
}

/**
 * Judges orders by their vaults of now: an open order goes stale by itself when its vault moves,
 * and is open again if L1 takes the move back. In order; those that have ended are as recorded.
 *
 * @param lateSeconds - how long a deadline must have passed
 */
export async function judged(
  ledger: Ledger,
  orders: readonly OrderRecord[],
  lateSeconds = 0n,
): Promise<readonly Judged[]> {
  const { chainId } = ledger.services.settlement;
  const cancellation = ({ maker }: OrderRecord, id: Hash | VaultId) =>
    keyOf.cancellation(chainId, maker, cancellationId(id));
  const stored = await ledger.store.getMany(
    orders.flatMap((order) => [
      keyOf.activity(order.vaultId),
      cancellation(order, order.digest),
      cancellation(order, order.vaultId),
    ]),
  );
  // A history that the engine has adopted may lack a vault, or have another in its place.
  const places = orders
    .map(({ vaultId }) => placeOf(vaultId))
    .filter((place) => hasSlot(ledger, place, null));
  const located = await readVaults(ledger, places, null);
  const vaults = new Map(located.map((each) => [packVaultId(each.place), each]));
  const found = orders.map(({ vaultId }) => vaults.get(vaultId) ?? null);
  const ended = await lineageFaults(ledger, found);
  return orders.map((order, i) => {
    if (order.status !== "open") return { order, status: order.status, failure: order.failure };
    if (stored[3 * i + 1] !== undefined || stored[3 * i + 2] !== undefined)
      return { order, status: "cancelled", failure: "The maker has cancelled it on L1." };
    if (order.deadline + lateSeconds < secondsNow(ledger))
      return { order, status: "expired", failure: "Its deadline has passed." };
    const failure =
      voidAt(ledger, placeOf(order.vaultId))?.failure ??
      ended[i]?.message ??
      movedBy(order, found[i]?.vault ?? null, decodeActivity(stored[3 * i]));
    return { order, status: failure === null ? "open" : "stale", failure };
  });
}

/** Tells what has moved an order's vault since its maker signed; null for nothing. */
function movedBy(
  { withdrawnBefore, give, maker }: OrderRecord,
  vault: StoredVault | null,
  { withdrawn, spentBy, pending }: ActivityRecord,
): string | null {
  if (vault?.owner !== maker || vault.assetIndex !== give.assetIndex)
    return "L1's history has another vault in its place.";
  if (spentBy !== null) return "A transfer takes its vault.";
  if (pending.length > 0) return "A withdrawal of its vault is pending.";
  const isAsSigned = withdrawn === withdrawnBefore && vault.amount - withdrawn >= give.amount;
  return isAsSigned ? null : "Units of its vault have been withdrawn.";
}

export async function orderViews(ledger: Ledger, all: readonly Judged[]): Promise<Order[]> {
  const users = await Promise.all(
    all.map(({ order }) => readUsers(ledger, order.applicationIndex, [order.userIndex])),
  );
  return all.map(({ order, status, failure }, i) => {
    const { orderId, maker, vaultId, taker, deadline, digest, createdAt, updatedAt } = order;
    const application = ledger.tenants.applications.durable.get(order.applicationIndex);
    const want = itemView(ledger, order.want);
    return {
      orderId,
      applicationId: application?.applicationId ?? "",
      userId: users[i]?.[0]?.userId ?? "",
      maker,
      vaultId,
      give: itemView(ledger, order.give),
      want,
      shares: order.shares.map(({ to, amount }) => {
        return { to, amount, amountDecimal: amountIn(want, amount).amountDecimal };
      }),
      taker,
      deadline,
      digest,
      status,
      counterOrderId: order.counterId,
      l1TxHash: order.l1TxHash,
      failure,
      createdAt,
      updatedAt,
    };
  });
}

function itemView(ledger: Ledger, { assetIndex, tokenId, amount }: OrderItemRecord): Item {
  const asset = ledger.tenants.assetAt(assetIndex);
  const { assetId, contractAddress: tokenAddress } = asset;
  return { assetId, tokenAddress, tokenId, ...amountIn(asset, amount) };
}

/** Whose order it may be: an application's, or an owner's of any application. */
export type OrderCaller = Uuid | { readonly owner: Address };

/** Throws `order_not_found`, also for an order that is not the caller's. */
export async function readOrder(
  ledger: Ledger,
  caller: OrderCaller,
  orderId: Uuid,
): Promise<OrderRecord> {
  const id = requireUuid("orderId", orderId);
  const stored = await ledger.store.get(keyOf.order(id));
  const order = stored === undefined ? null : decodeOrder(id, stored);
  if (order === null || !isOrderOf(ledger, caller, order))
    throw new MintmarkError("order_not_found");
  return order;
}

function isOrderOf(ledger: Ledger, caller: OrderCaller, order: OrderRecord): boolean {
  return typeof caller === "string"
    ? order.applicationIndex === ledger.tenants.application(caller, null).applicationIndex
    : order.maker === requireAddress("owner", caller.owner);
}

export async function orderView(ledger: Ledger, order: OrderRecord): Promise<Order> {
  const [view] = await orderViews(ledger, await judged(ledger, [order]));
  return view as Order;
}

/** The orders of an application, or of an owner in all applications. */
export function listOrders(
  context: EngineContext,
  caller: OrderCaller,
  given: OrderFilter,
): List<Order> {
  const { maker, taker } = given;
  const filter = {
    ...given,
    ...(maker !== undefined && { maker: requireAddress("maker", maker) }),
    ...(taker !== undefined && { taker: requireAddress("taker", taker) }),
  };
  const name = typeof caller === "string" ? caller : caller.owner;
  return listOf(context, "orders", name, filter, async (start, ledger) => {
    requireFilter(filter);
    const wanted = wantedBy(ledger, caller, filter);
    if (wanted === null) return { data: [], next: null };
    const found: Judged[] = [];
    let last = start.after;
    let examined = 0;
    for await (const some of chunksOf(ordersIn(ledger, wanted, start))) {
      for (const each of await judged(ledger, some)) {
        if (found.length === start.limit || examined++ >= MOST_EXAMINED)
          return { data: await orderViews(ledger, found), next: last };
        if (isWanted(wanted, each)) found.push(each);
        last = each.order.journalSequence;
      }
    }
    return { data: await orderViews(ledger, found), next: null };
  });
}

function requireFilter({ status, assetId, tokenId, wantAssetId, sort, ...price }: OrderFilter) {
  if (tokenId !== undefined && assetId === undefined)
    throw argumentError("tokenId", "needs assetId");
  const hasPrice = price.minPrice !== undefined || price.maxPrice !== undefined;
  if (hasPrice && wantAssetId === undefined)
    throw argumentError("minPrice", "needs wantAssetId, as maxPrice does");
  if (sort !== "price") return;
  if (assetId === undefined || wantAssetId === undefined)
    throw argumentError("sort", "by price needs assetId and wantAssetId");
  if (status !== undefined && status !== "open")
    throw argumentError("sort", "by price lists open orders");
}

/** A filter with the indices of what it names. */
interface Wanted extends Omit<OrderFilter, "assetId" | "wantAssetId"> {
  readonly application: number | undefined;
  readonly asset: number | undefined;
  readonly wantAsset: number | undefined;
}

/** null when nothing can match. */
function wantedBy(ledger: Ledger, caller: OrderCaller, filter: OrderFilter): Wanted | null {
  const { assetId, wantAssetId, ...rest } = filter;
  const indexOf = (id: Uuid | undefined) =>
    id === undefined ? undefined : (ledger.tenants.assets.named(id, null)?.assetIndex ?? null);
  const [asset, wantAsset] = [indexOf(assetId), indexOf(wantAssetId)];
  if (asset === null || wantAsset === null) return null;
  const isApplication = typeof caller === "string";
  return {
    ...rest,
    ...(rest.sort === "price" && { status: "open" as const }),
    ...(!isApplication && { maker: requireAddress("owner", caller.owner) }),
    application: isApplication
      ? ledger.tenants.application(caller, null).applicationIndex
      : undefined,
    asset,
    wantAsset,
  };
}

function isWanted(wanted: Wanted, { order, status }: Judged): boolean {
  const { give, want } = order;
  const fits = <T>(asked: T | undefined, is: T) => asked === undefined || asked === is;
  return (
    fits(wanted.status, status) &&
    fits(wanted.application, order.applicationIndex) &&
    fits(wanted.maker, order.maker) &&
    (order.taker === null || fits(wanted.taker, order.taker)) &&
    fits(wanted.asset, give.assetIndex) &&
    fits<bigint | null>(wanted.tokenId, give.tokenId) &&
    fits(wanted.wantAsset, want.assetIndex) &&
    want.amount >= (wanted.minPrice ?? 0n) &&
    want.amount <= (wanted.maxPrice ?? MAX_PRICE)
  );
}

/** The orders of the narrowest index, from the page's start on. */
async function* ordersIn(
  ledger: Ledger,
  wanted: Wanted,
  { after }: PageStart,
): AsyncGenerator<OrderRecord> {
  const range = wanted.sort === "price" ? await pricesFrom(ledger, wanted, after) : null;
  const index = indexOf(wanted);
  const newest = {
    gte: index,
    lt: after === null ? endOf(index) : Buffer.concat([index, keyOf.journal(after).subarray(1)]),
    reverse: true,
  };
  for await (const [, stored] of ledger.store.entries(range ?? newest))
    yield await orderNamed(ledger, stored);
}

function indexOf({ status, application, asset, tokenId, maker }: Wanted): Buffer {
  const scope = status === "open" ? 1 : 0;
  if (maker !== undefined) return prefixOf.makerOrder(scope, maker);
  if (asset === undefined) return prefixOf.applicationOrder(scope, application as number);
  if (tokenId === undefined) return prefixOf.assetOrder(scope, application as number, asset);
  return prefixOf.tokenOrder(scope, application as number, asset, tokenId);
}

/** The range of prices, behind the order at which the page before has ended. */
async function pricesFrom(
  ledger: Ledger,
  { application, asset, wantAsset, minPrice, maxPrice }: Wanted,
  after: number | null,
) {
  const of = [application as number, asset as number, wantAsset as number] as const;
  const lt = endOf(prefixOf.pricedOrder(...of, maxPrice ?? MAX_PRICE));
  if (after === null) return { gte: prefixOf.pricedOrder(...of, minPrice ?? 0n), lt };
  const { entry } = await readEntry(ledger.store, after);
  if (entry.kind !== "orderPlaced") throw new MintmarkError("cursor_invalid");
  return { gt: keyOf.pricedOrder(...of, entry.want.amount, after), lt };
}

async function* chunksOf<T>(all: AsyncIterable<T>): AsyncGenerator<T[]> {
  let some: T[] = [];
  for await (const one of all) {
    some.push(one);
    if (some.length < READ_AT_ONCE) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}
