import type { EntryOf } from "../store/entries.ts";
import type { OrderEventType } from "../store/event-record.ts";
import * as records from "../store/records.ts";
import { keyOf, orderIndexes } from "../store/store-keys.ts";
import { type Handlers, ReferencePart } from "./reference-records.ts";

/** The part of the reference for orders. */
export class ReferenceOrders extends ReferencePart {
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
      this.#tell("order.created", orderId);
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
        this.#tell("order.filled", id);
      }
    },
    fillSubmitted: ({ orderId, txHash }) =>
      this.#changeFill("order.submitted", orderId, { l1TxHash: txHash, failure: null }),
    fillRefused: ({ orderId, failure }) =>
      this.#changeFill("order.attempt_refused", orderId, { failure }),
    fillSettled: ({ orderId }) =>
      this.#changeFill("order.settled", orderId, { status: "settled", failure: null }),
    fillFailed: ({ orderId, failure }) => {
      const maker = this.#orders.get(this.#filled(orderId));
      const parted = { counterId: null, l1TxHash: null };
      if (maker !== undefined) {
        this.#orders.change(maker.orderId, { ...parted, status: "open", failure: null });
        this.#tell("order.reopened", maker.orderId);
        this.#live.set(maker.vaultId, maker.orderId);
      }
      this.#orders.change(orderId, { ...parted, status: "stale", failure });
      this.#tell("order.stale", orderId);
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
  #changeFill(type: OrderEventType, orderId: string, change: Partial<records.OrderRecord>): void {
    for (const id of [this.#filled(orderId), orderId]) {
      this.#orders.change(id, change);
      this.#tell(type, id);
    }
  }

  /** The order that a waiting one has taken. */
  #filled(orderId: string): string {
    const taker = this.#orders.get(orderId);
    if (taker?.status !== "filled") this.out.report(`fill ${orderId} changes that does not wait`);
    return taker?.counterId ?? "";
  }

  #tell(type: OrderEventType, orderId: string): void {
    const order = this.#orders.get(orderId);
    if (order === undefined) return;
    const { userIndex, vaultId, counterId: counterOrderId, l1TxHash, failure } = order;
    const facts = { orderId, userIndex, vaultId, counterOrderId, l1TxHash, failure };
    this.out.tell(order.applicationIndex, { type, ...facts });
  }

  #end({ orderId, status, failure }: EntryOf<"orderEnded">): void {
    const order = this.#orders.get(orderId);
    if (order?.status !== "open") this.out.report(`order ${orderId} ends that is not open`);
    this.#orders.change(orderId, { status, failure });
    if (status !== "open") this.#tell(`order.${status}`, orderId);
    if (order !== undefined) this.#live.delete(order.vaultId);
  }
}
