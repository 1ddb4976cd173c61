import { MintmarkError } from "../errors.ts";
import type { Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { type OrderRecord, orderIdRecord, orderRecord } from "../store/records.ts";
import { keyOf, orderIndexes } from "../store/store-keys.ts";

/** Throws `store_corrupt` when it is missing. */
export function decodeOrder(orderId: Uuid, stored: Buffer | undefined): OrderRecord {
  if (stored === undefined)
    throw new MintmarkError("store_corrupt", `Order ${orderId} is missing.`);
  return decodeRecord(orderRecord, stored, `Order ${orderId}`);
}

/** Writes an order and its indexes. A new one has null `before`. */
export function putOrder(
  group: Group,
  record: OrderRecord,
  before: OrderRecord | null,
): OrderRecord {
  const id = encodeRecord(orderIdRecord, record.orderId);
  group.stage(keyOf.order(record.orderId), encodeRecord(orderRecord, record));
  if (before === null) {
    group.stage(keyOf.orderDigest(record.digest), id);
    for (const key of orderIndexes(record, "all")) group.put(key, id);
  }
  const isOpen = record.status === "open";
  if (isOpen === (before?.status === "open")) return record;
  for (const key of orderIndexes(record, "open"))
    if (isOpen) group.put(key, id);
    else group.remove(key);
  if (isOpen) group.stage(keyOf.liveOrder(record.vaultId), id);
  else group.remove(keyOf.liveOrder(record.vaultId));
  return record;
}
