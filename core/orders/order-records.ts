import { MintmarkError } from "../errors.ts";
import { tell } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Uuid } from "../model.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import type { OrderItem, OrderMessage } from "../protocol/typed-data.ts";
import type { OrderEventType } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import {
  type OrderItemRecord,
  type OrderRecord,
  orderIdRecord,
  orderRecord,
} from "../store/records.ts";
import { keyOf, orderIndexes } from "../store/store-keys.ts";

/** Throws `store_corrupt` when it is missing. */
export function decodeOrder(orderId: Uuid, stored: Buffer | undefined): OrderRecord {
  if (stored === undefined)
    throw new MintmarkError("store_corrupt", `Order ${orderId} is missing.`);
  return decodeRecord(orderRecord, stored, `Order ${orderId}`);
}

/** The id of an order, as an index stores it. */
export function decodeOrderId(stored: Buffer): Uuid {
  return decodeRecord(orderIdRecord, stored, "The id of an order");
}

/** The order that an index names. */
export async function orderNamed(ledger: Ledger, stored: Buffer): Promise<OrderRecord> {
  const orderId = decodeOrderId(stored);
  return decodeOrder(orderId, await ledger.store.get(keyOf.order(orderId)));
}

/**
 * Writes an order and its indexes, and tells its application what has become of it. A new one has
 * null `before`.
 */
export function putOrder(
  ledger: Ledger,
  group: Group,
  record: OrderRecord,
  before: OrderRecord | null,
): OrderRecord {
  const { orderId, vaultId, counterId, applicationIndex, updatedAt } = record;
  const type = eventOf(record, before);
  if (type !== null)
    tell(ledger, group, applicationIndex, updatedAt, {
      type,
      ...record,
      counterOrderId: counterId,
    });
  const id = encodeRecord(orderIdRecord, orderId);
  group.stage(keyOf.order(orderId), encodeRecord(orderRecord, record));
  if (before === null) {
    group.stage(keyOf.orderDigest(record.digest), id);
    for (const key of orderIndexes(record, "all")) group.put(key, id);
  }
  const isOpen = record.status === "open";
  if (isOpen !== (before?.status === "open")) {
    for (const key of [...orderIndexes(record, "open"), keyOf.liveOrder(vaultId)])
      if (isOpen) group.stage(key, id);
      else group.remove(key);
  }
  const isFilled = record.status === "filled";
  if (isFilled === (before?.status === "filled")) return record;
  if (isFilled) {
    group.put(keyOf.trade(vaultId), id);
    ledger.trades.put(group, vaultId, orderId);
  } else {
    group.remove(keyOf.trade(vaultId));
    ledger.trades.remove(group, vaultId);
  }
  return record;
}

/** The event that tells of a change of an order; null for a change that nobody is told of. */
function eventOf(
  { status, l1TxHash, failure }: OrderRecord,
  before: OrderRecord | null,
): OrderEventType | null {
  if (status !== before?.status) {
    if (status === "open") return before === null ? "order.created" : "order.reopened";
    return `order.${status}`;
  }
  if (l1TxHash !== before.l1TxHash) return "order.submitted";
  return failure === before.failure ? null : "order.attempt_refused";
}

/** Ends an open order. */
export function putEnded(
  ledger: Ledger,
  group: Group,
  order: OrderRecord,
  status: "cancelled" | "stale" | "expired",
  failure: string | null,
): OrderRecord {
  const { orderId } = order;
  const { time } = ledger.journal.record(group, { kind: "orderEnded", orderId, status, failure });
  return putOrder(ledger, group, { ...order, status, failure, updatedAt: time }, order);
}

/** The message that the order's maker has signed. */
export function messageOfOrder(ledger: Ledger, order: OrderRecord): OrderMessage {
  const itemOf = ({ assetIndex, tokenId, amount }: OrderItemRecord): OrderItem => {
    const { contractAddress, quantum } = ledger.tenants.assetAt(assetIndex);
    return { token: contractAddress, id: tokenId ?? 0n, amount: amount * quantum };
  };
  const { quantum } = ledger.tenants.assetAt(order.want.assetIndex);
  const { vaultId, withdrawnBefore, deadline } = order;
  return {
    give: itemOf(order.give),
    want: itemOf(order.want),
    shares: order.shares.map(({ to, amount }) => ({ to, amount: amount * quantum })),
    taker: order.taker ?? ZERO_ADDRESS,
    vaultId,
    withdrawnBefore,
    deadline,
  };
}
