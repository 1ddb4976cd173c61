import { type EventType, MODES } from "../model.ts";
import type { ContentOf, KindFields } from "./layout.ts";
import {
  address,
  bigVarint,
  hash,
  Kinds,
  nullable,
  oneOf,
  openRecord,
  text,
  u64,
  uuid,
  varint,
} from "./layout.ts";

const BATCH = {
  mode: oneOf(MODES),
  batchNumber: varint,
  vaultCount: varint,
  batchRoot: hash,
  l1TxHash: nullable(hash),
  l1BlockNumber: nullable(bigVarint),
};

const WITHDRAWAL = {
  withdrawalId: uuid,
  userIndex: varint,
  chainId: bigVarint,
  vaultId: u64,
  quantity: bigVarint,
  recipient: address,
  l1TxHash: nullable(hash),
  l1BlockNumber: nullable(bigVarint),
  failure: nullable(text),
};

const ORDER = {
  orderId: uuid,
  userIndex: varint,
  vaultId: u64,
  counterOrderId: nullable(uuid),
  l1TxHash: nullable(hash),
  failure: nullable(text),
};

/**
 * The types of event by number. Numbers and fields never change; new ones are added. The fields are
 * in this order.
 */
const TYPES = {
  "mint.accepted": [0, { mintId: uuid, users: varint, mints: varint }],
  "asset.enabled": [1, { assetId: uuid }],
  "asset.disabled": [2, { assetId: uuid }],
  "mint.failed": [3, { firstVaultId: u64, vaults: varint, failure: text }],
  "transfer.accepted": [40, { transferId: uuid, transfers: varint, redemptions: varint }],
  "transfer.failed": [41, { transferId: uuid, failure: text }],
  "transfer.redeemed": [
    42,
    { transferId: uuid, userIndex: varint, vaultId: u64, amount: bigVarint },
  ],
  "deposit.credited": [
    50,
    {
      userIndex: varint,
      vaultId: u64,
      assetId: uuid,
      tokenId: nullable(bigVarint),
      amount: bigVarint,
      l1TxHash: hash,
      l1BlockNumber: bigVarint,
    },
  ],
  "order.created": [60, ORDER],
  "order.filled": [61, ORDER],
  "order.submitted": [62, ORDER],
  "order.attempt_refused": [63, ORDER],
  "order.settled": [64, ORDER],
  "order.reopened": [65, ORDER],
  "order.cancelled": [66, ORDER],
  "order.stale": [67, ORDER],
  "order.expired": [68, ORDER],
  "batch.sealed": [10, BATCH],
  "batch.submitted": [11, BATCH],
  "batch.settled": [12, BATCH],
  "batch.finalized": [13, BATCH],
  "batch.reverted": [14, BATCH],
  "withdrawal.accepted": [20, WITHDRAWAL],
  "withdrawal.submitted": [21, WITHDRAWAL],
  "withdrawal.attempt_refused": [22, WITHDRAWAL],
  "withdrawal.settled": [23, WITHDRAWAL],
  "withdrawal.finalized": [24, WITHDRAWAL],
  "withdrawal.failed": [25, WITHDRAWAL],
  "withdrawal.reverted": [26, WITHDRAWAL],
  "webhook.disabled": [30, { webhookId: uuid, failure: text }],
} as const satisfies KindFields & Record<EventType, unknown>;

type Types = typeof TYPES;
/** A stored event, by its type; it names users by their index. */
type StoredEventOf<T extends EventType> = { readonly type: T } & ContentOf<Types, T>;
export type StoredEvent = { [T in EventType]: StoredEventOf<T> }[EventType];
export type BatchEventType = Extract<EventType, `batch.${string}`>;
export type OrderEventType = Extract<EventType, `order.${string}`>;
export type WithdrawalEventType = Extract<EventType, `withdrawal.${string}`>;

const LAYOUTS = new Kinds(TYPES);
export const EVENT_TYPES: ReadonlySet<string> = new Set(Object.keys(TYPES));

/** One event of an application: `version(1) = 0x01 ‖ time(6) ‖ type(1) ‖ content ‖ crc32(4)`. */
export function encodeEvent(time: number, event: StoredEvent): Buffer {
  return LAYOUTS.encode(time, event.type, event);
}

/** The event with the fields of its type alone, which a record holds. */
export function storedFields(event: StoredEvent): StoredEvent {
  const fields: Record<string, unknown> = { type: event.type };
  const given: Readonly<Record<string, unknown>> = event;
  for (const name of Object.keys(TYPES[event.type][1])) fields[name] = given[name];
  return fields as StoredEvent;
}

export function decodeEvent(
  record: Uint8Array,
  name: string,
): { readonly time: number; readonly event: StoredEvent } {
  const { time, number, from } = openRecord(record, name);
  const { kind: type, content } = LAYOUTS.read(number, from, name);
  from.end();
  return { time, event: { type, ...content } as StoredEvent };
}
