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
    orderFilled: ({ orderId, counterId }) => {
      for (const [id, other] of [
        [orderId, counterId],
        [counterId, orderId],
      ] as const) {
        const order = this.#orders.get(id);
        if (order?.status !== "open") this.out.report(`order ${id} is taken that is not open`);
        if (order !== undefined) this.#live.delete(order.vaultId);
        this.#orders.change(id, { status: "filled", counterId: other });
      }
    },
    fillSubmitted: ({ orderId, txHash }) =>
      this.#changeFill(orderId, { l1TxHash: txHash, failure: null }),
    fillRefused: ({ orderId, failure }) => this.#changeFill(orderId, { failure }),
    fillSettled: ({ orderId }) => this.#changeFill(orderId, { status: "settled", failure: null }),
    fillFailed: ({ orderId, failure }) => {
      const maker = this.#orders.get(this.#orders.get(orderId)?.counterId ?? "");
      this.#changeFill(orderId, { counterId: null, l1TxHash: null });
      this.#orders.change(orderId, { status: "stale", failure });
      if (maker === undefined) return;
      this.#orders.change(maker.orderId, { status: "open", failure: null });
      this.#live.set(maker.vaultId, maker.orderId);
    },
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
      if (status === "filled") index(keyOf.trade(vaultId));
      if (status !== "open") continue;
      index(keyOf.liveOrder(vaultId));
      for (const key of orderIndexes(order, "open")) index(key);
    }
  }

  /** Changes both orders of a fill, which the one names that took the other. */
  #changeFill(orderId: string, change: Partial<records.OrderRecord>): void {
    const taker = this.#orders.get(orderId);
    if (taker?.status !== "filled") this.out.report(`fill ${orderId} changes that does not wait`);
    const counterId = taker?.counterId ?? "";
    for (const id of [counterId, orderId]) this.#orders.change(id, change);
  }

  #end({ orderId, status, failure }: EntryOf<"orderEnded">): void {
    const order = this.#orders.get(orderId);
    if (order?.status !== "open") this.out.report(`order ${orderId} ends that is not open`);
    this.#orders.change(orderId, { status, failure });
    if (order !== undefined) this.#live.delete(order.vaultId);
  }
}
