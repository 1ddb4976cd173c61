import type { EntryOf } from "../store/entries.ts";
import * as records from "../store/records.ts";
import { keyOf, orderIndexes } from "../store/store-keys.ts";
import { type Handlers, Part } from "./reference-records.ts";

/** The part of the reference for orders. */
export class ReferenceOrders extends Part {
  readonly #terms = this.kept("the order terms of", keyOf.orderTerms, records.orderTermsRecord);
  readonly #orders = this.kept<string, records.OrderRecord>(
    "order",
    keyOf.order,
    records.orderRecord,
  );
  /** The open order of each vault. */
  readonly #live = new Map<bigint, string>();

  readonly on = {
    orderTermsSet: (entry) => this.#terms.add(entry.applicationIndex, entry),
    orderPlaced: (entry) => {
      const { out } = this;
      const { orderId, vaultId } = entry;
      const known = this.#live.get(vaultId);
      if (known !== undefined)
        out.report(`order ${orderId} is listed while ${known} of its vault is open`);
      this.#live.set(vaultId, orderId);
      this.#orders.add(orderId, { ...entry, journalSequence: out.sequence });
    },
    orderEnded: (entry) => this.#end(entry),
  } satisfies Handlers;

  override finish(): void {
    super.finish();
    const { out } = this;
    for (const order of this.#orders.values()) {
      const { orderId, digest, status, vaultId } = order;
      const name = `an index of order ${orderId}`;
      const index = (key: Buffer) => out.put(key, records.orderIdRecord, orderId, name);
      index(keyOf.orderDigest(digest));
      for (const key of orderIndexes(order, "all")) index(key);
      if (status !== "open") continue;
      index(keyOf.liveOrder(vaultId));
      for (const key of orderIndexes(order, "open")) index(key);
    }
  }

  #end({ orderId, status, failure }: EntryOf<"orderEnded">): void {
    const order = this.#orders.get(orderId);
    if (order?.status !== "open") this.out.report(`order ${orderId} ends that is not open`);
    this.#orders.change(orderId, { status, failure });
    if (order !== undefined) this.#live.delete(order.vaultId);
  }
}
