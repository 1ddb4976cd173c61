import type { WaitOptions } from "../abort.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hash, Uuid } from "../model.ts";
import type { Group } from "../store/group.ts";
import type { OrderRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireHash, requireText } from "../validate.ts";
import { lastBlockOf } from "../vaults/makings.ts";
import { decodeActivity } from "../vaults/vaults.ts";
import { judged } from "./book.ts";
import { decodeOrder, putOrder } from "./order-records.ts";

/** Two orders that wait for L1 to settle them. */
export interface PendingFill {
  /** The order that was listed first. */
  readonly maker: OrderRecord;
  readonly taker: OrderRecord;
}

/**
 * Where a fill stands by what L1 has told: `settled` for good; `mined` while a reorganisation can
 * still take that back; `over` when L1 cannot settle it any more, with the reason; else `waiting`.
 */
export type FillState =
  | { readonly state: "waiting" | "mined" | "settled" }
  | { readonly state: "over"; readonly failure: string };

/** Makes two open orders a fill. Returns the taker's. */
export function putFilled(
  ledger: Ledger,
  group: Group,
  maker: OrderRecord,
  taker: OrderRecord,
): OrderRecord {
  const { time } = ledger.journal.record(group, {
    kind: "orderFilled",
    orderId: maker.orderId,
    counterId: taker.orderId,
  });
  const filled = { status: "filled", updatedAt: time } as const;
  putOrder(ledger, group, { ...maker, ...filled, counterId: taker.orderId }, maker);
  return putOrder(ledger, group, { ...taker, ...filled, counterId: maker.orderId }, taker);
}

/** The fills that wait for L1, oldest first. */
export async function pendingFills(ledger: Ledger): Promise<readonly PendingFill[]> {
  const ids = [...new Set(ledger.trades.durable.values())];
  const stored = await ledger.store.getMany(ids.map(keyOf.order));
  const orders = ids.map((id, i) => decodeOrder(id, stored[i]));
  const byId = new Map(orders.map((order) => [order.orderId, order]));
  const fills = orders.flatMap((taker): PendingFill[] => {
    const maker = taker.counterId === null ? undefined : byId.get(taker.counterId);
    // The taker's order is listed by the fill itself.
    const isTakers = maker !== undefined && maker.journalSequence < taker.journalSequence;
    return isTakers ? [{ maker, taker }] : [];
  });
  return fills.sort((a, b) => a.taker.journalSequence - b.taker.journalSequence);
}

/** Seconds behind a deadline after which no block can still settle the order. */
const LATE_SECONDS = 900n;

export async function fillState(ledger: Ledger, fill: PendingFill): Promise<FillState> {
  const sides = [fill.maker, fill.taker];
  const activities = await ledger.store.getMany(
    sides.map(({ vaultId }) => keyOf.activity(vaultId)),
  );
  const isTaken = sides.every(({ withdrawnBefore, give }, i) => {
    return decodeActivity(activities[i]).withdrawn === withdrawnBefore + give.amount;
  });
  if (isTaken) {
    const { finalized = null } =
      ledger.l1.portals.durable.get(ledger.services.settlement.chainId) ?? {};
    const blocks = await Promise.all(sides.map(({ vaultId }) => lastBlockOf(ledger, vaultId)));
    const isFinal = blocks.every((block) => finalized !== null && (block ?? 0n) <= finalized);
    return { state: isFinal ? "settled" : "mined" };
  }
  const open = sides.map((order) => ({ ...order, status: "open" as const }));
  for (const { order, status, failure } of await judged(ledger, open, LATE_SECONDS))
    if (status !== "open")
      return { state: "over", failure: `The order of vault ${order.vaultId}: ${failure}` };
  return { state: "waiting" };
}

/** Records the transaction that settles a fill. */
export function recordFillSubmitted(
  context: EngineContext,
  takerId: Uuid,
  txHash: Hash,
  wait?: WaitOptions,
): Promise<void> {
  const l1TxHash = requireHash("txHash", txHash);
  return changeFill(context, takerId, wait, ({ maker, taker }, ledger, group) => {
    if (taker.l1TxHash === l1TxHash) return;
    const { time } = ledger.journal.record(group, {
      kind: "fillSubmitted",
      orderId: taker.orderId,
      txHash: l1TxHash,
    });
    for (const side of [maker, taker])
      putOrder(ledger, group, { ...side, l1TxHash, failure: null, updatedAt: time }, side);
  });
}

/** Records why L1 refuses a fill now. It is tried again. */
export function recordFillRefused(
  context: EngineContext,
  takerId: Uuid,
  failure: string,
  wait?: WaitOptions,
): Promise<void> {
  const reason = requireText("failure", failure, 2_000);
  return changeFill(context, takerId, wait, ({ maker, taker }, ledger, group) => {
    if (taker.failure === reason) return;
    const { time } = ledger.journal.record(group, {
      kind: "fillRefused",
      orderId: taker.orderId,
      failure: reason,
    });
    for (const side of [maker, taker])
      putOrder(ledger, group, { ...side, failure: reason, updatedAt: time }, side);
  });
}

/** Ends a fill that L1 has settled for good. */
export function recordFillSettled(
  context: EngineContext,
  takerId: Uuid,
  wait?: WaitOptions,
): Promise<void> {
  return changeFill(context, takerId, wait, ({ maker, taker }, ledger, group) => {
    const { time } = ledger.journal.record(group, { kind: "fillSettled", orderId: taker.orderId });
    const settled = { status: "settled", failure: null, updatedAt: time } as const;
    for (const side of [maker, taker]) putOrder(ledger, group, { ...side, ...settled }, side);
  });
}

/** Ends a fill that L1 cannot settle: the maker's order is open again, and the taker's is stale. */
export function recordFillFailed(
  context: EngineContext,
  takerId: Uuid,
  failure: string,
  wait?: WaitOptions,
): Promise<void> {
  const reason = requireText("failure", failure, 2_000);
  return changeFill(context, takerId, wait, ({ maker, taker }, ledger, group) => {
    const { time } = ledger.journal.record(group, {
      kind: "fillFailed",
      orderId: taker.orderId,
      failure: reason,
    });
    const parted = { counterId: null, l1TxHash: null, updatedAt: time } as const;
    putOrder(ledger, group, { ...maker, ...parted, status: "open", failure: null }, maker);
    putOrder(ledger, group, { ...taker, ...parted, status: "stale", failure: reason }, taker);
  });
}

/** Changes a fill that waits. One that has ended stays as it is. */
function changeFill(
  context: EngineContext,
  takerId: Uuid,
  wait: WaitOptions | undefined,
  change: (fill: PendingFill, ledger: Ledger, group: Group) => void,
): Promise<void> {
  return context.change(async (ledger, group) => {
    const read = async (id: Uuid) =>
      decodeOrder(id, await group.read(ledger.store, keyOf.order(id)));
    const taker = await read(takerId);
    if (taker.status !== "filled" || taker.counterId === null) return;
    change({ maker: await read(taker.counterId), taker }, ledger, group);
  }, wait);
}
