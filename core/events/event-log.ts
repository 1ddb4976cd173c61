import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { EngineEvents, EventHub } from "../ledger/event-hub.ts";
import type { TenantLedger } from "../ledger/ledger.ts";
import { readUsers } from "../ledger/user-records.ts";
import {
  type ApplicationEvent,
  batchIdOf,
  type EventData,
  type EventType,
  type Uuid,
} from "../model.ts";
import type { BatchEventType, StoredEvent } from "../store/event-record.ts";
import { decodeEvent, encodeEvent, storedFields } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { type BatchRecord, batchApplicationsRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { VaultColumns } from "../store/vault-columns.ts";

/** Events read from disk at once: the memory held for a reader that stops reading. */
export const EVENTS_PAGE = 128;

/**
 * Adds an event for an application, in the same write as its cause. Only fields of its type are
 * stored.
 */
export function tell(
  ledger: TenantLedger,
  group: Group,
  applicationIndex: number,
  time: number,
  event: StoredEvent,
): void {
  const application = ledger.tenants.applications.change(group, applicationIndex);
  application.eventCount += 1;
  const { applicationId, eventCount: sequence } = application;
  group.put(keyOf.applicationEvent(applicationIndex, sequence), encodeEvent(time, event));
  const told = () => {
    const written = { sequence, time, event: storedFields(event) };
    const toldOf = (userIds: UserIds) =>
      ({ applicationId, event: eventOf(written, userIds) }) as EngineEvents[EventType];
    // A record has the user's index, so its id is read.
    return "userIndex" in event
      ? userIdsOf(ledger, applicationIndex, [written]).then(toldOf)
      : toldOf(new Map());
  };
  group.onDurable(() => ledger.services.emit(event.type, told));
}

/** Records which applications have vaults in a sealed batch, and adds an event for each. */
export function tellSealed(
  ledger: TenantLedger,
  group: Group,
  batch: BatchRecord,
  { holders }: VaultColumns,
  time: number,
) {
  const applications = [
    ...new Set([...holders.values()].map(({ applicationIndex }) => applicationIndex)),
  ];
  applications.sort((a, b) => a - b);
  const record = encodeRecord(batchApplicationsRecord, applications);
  group.put(keyOf.batchApplications(batch.mode, batch.batchNumber), record);
  for (const index of applications)
    tell(ledger, group, index, time, batchEvent("batch.sealed", batch));
}

/** Adds an event about a sealed batch for each of its applications. */
export async function tellBatch(
  ledger: TenantLedger,
  group: Group,
  type: BatchEventType,
  batch: BatchRecord,
  time: number,
) {
  const name = `The applications of ${batchIdOf(batch.mode, batch.batchNumber)}`;
  const record = await ledger.store.get(keyOf.batchApplications(batch.mode, batch.batchNumber));
  if (record === undefined) throw new MintmarkError("store_corrupt", `${name} are missing.`);
  for (const index of decodeRecord(batchApplicationsRecord, record, name))
    tell(ledger, group, index, time, batchEvent(type, batch));
}

function batchEvent(type: BatchEventType, batch: BatchRecord): StoredEvent {
  const { batchRoot } = batch;
  if (batchRoot === null) throw new Error("an event of a batch that is not sealed");
  return { type, ...batch, batchRoot };
}

/**
 * An application's durable events in order. They are read one page at a time, so a slow reader
 * holds no more.
 */
async function* events(
  ledger: TenantLedger,
  applicationIndex: number,
  after: number,
  follow: boolean,
  end: AbortSignal,
) {
  for (let known = after; ; ) {
    end.throwIfAborted();
    const newest = ledger.tenants.applications.durable.get(applicationIndex)?.eventCount ?? 0;
    if (known < newest) {
      for (const event of await sharedEvents(
        ledger,
        applicationIndex,
        known + 1,
        Math.min(newest, known + EVENTS_PAGE),
      )) {
        end.throwIfAborted();
        yield event;
        known = event.sequence;
      }
    } else if (follow) await ledger.readers.followers.next(applicationIndex, end);
    else return;
  }
}

/** Reads in progress, by application and sequences, for each ledger. */
const reading = new WeakMap<TenantLedger, Map<string, Promise<readonly ApplicationEvent[]>>>();

/** The events from `first` to `last`, both included. Concurrent readers share one read. */
function sharedEvents(ledger: TenantLedger, application: number, first: number, last: number) {
  const reads = reading.get(ledger) ?? new Map<string, Promise<readonly ApplicationEvent[]>>();
  reading.set(ledger, reads);
  const name = `${application} ${first} ${last}`;
  const known = reads.get(name);
  if (known !== undefined) return known;
  const read = readEvents(ledger, application, first, last).finally(() => reads.delete(name));
  reads.set(name, read);
  return read;
}

async function readEvents(ledger: TenantLedger, application: number, first: number, last: number) {
  const written = await writtenEvents(ledger, application, first, last);
  const userIds = await userIdsOf(ledger, application, written);
  return written.map((event) => eventOf(event, userIds));
}

/** The events from `first` to `last`, both included, without the ids of their users. */
export async function writtenEvents(
  ledger: TenantLedger,
  application: number,
  first: number,
  last: number,
): Promise<WrittenEvent[]> {
  const keys = Array.from({ length: last - first + 1 }, (_, i) =>
    keyOf.applicationEvent(application, first + i),
  );
  const records = await ledger.store.getMany(keys);
  return records.map((record, i) => {
    const name = `Event ${first + i} of application ${application}`;
    if (record === undefined) throw new MintmarkError("store_corrupt", `${name} is missing.`);
    return { sequence: first + i, ...decodeEvent(record, name) };
  });
}

/** An event in the application's log. */
type WrittenEvent = { readonly sequence: number } & ReturnType<typeof decodeEvent>;
type UserIds = ReadonlyMap<number, Uuid>;

async function userIdsOf(
  ledger: TenantLedger,
  application: number,
  written: readonly WrittenEvent[],
): Promise<UserIds> {
  const users = [
    ...new Set(written.flatMap(({ event }) => ("userIndex" in event ? [event.userIndex] : []))),
  ];
  const found = await readUsers(ledger, application, users);
  return new Map(users.map((index, i) => [index, found[i]?.userId ?? ""]));
}

/** An event as everybody gets it: listeners, streams and webhooks. */
function eventOf(
  { sequence, time: createdAt, event }: WrittenEvent,
  userIds: UserIds,
): ApplicationEvent {
  const data = dataOf(event, userIds);
  return { sequence, type: event.type, createdAt, data } as ApplicationEvent;
}

/** The event's data in the API's terms. */
function dataOf(event: StoredEvent, userIds: UserIds): ApplicationEvent["data"] {
  if ("batchNumber" in event) {
    const { type: _, mode, batchNumber, ...data } = event;
    return { batchId: batchIdOf(mode, batchNumber), dataAvailabilityMode: mode, ...data };
  }
  const { type: _, ...data } = event;
  if (!("userIndex" in data)) return data;
  // The name replaces the index in its place: deliveries have the fields in this order for ever.
  const fields = Object.entries(data).map(([name, value]) =>
    name === "userIndex" ? ["userId", userIds.get(data.userIndex) ?? ""] : [name, value],
  );
  return Object.fromEntries(fields) as ApplicationEvent["data"];
}

/** Options of {@link Events.stream}. */
export interface EventOptions {
  /** The sequence of the last known event; default 0, which starts with the first event. */
  readonly after?: number;
  /** Waits for future events instead of ending after the newest. Default false. */
  readonly follow?: boolean;
  /** Ends the iteration, which rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export function eventsOf(context: EngineContext, hub: EventHub): Events {
  return {
    stream(applicationId, { after = 0, follow = false, signal } = {}) {
      const { ledger } = context;
      const { applicationIndex, eventCount } = ledger.tenants.application(applicationId, null);
      if (!Number.isSafeInteger(after) || after < 0 || after > eventCount) {
        const rule = `must be the sequence of an event: the newest is ${eventCount}. 0 starts with the first.`;
        throw argumentError("after", rule);
      }
      const { ended } = ledger.writer;
      const end = signal === undefined ? ended : AbortSignal.any([signal, ended]);
      return events(ledger, applicationIndex, after, follow, end);
    },
    on: (types, listener) => hub.on(types, listener),
  };
}

/**
 * The events of applications and of the process.
 *
 * @example
 * for await (const event of engine.events.stream(applicationId, { after: 41, follow: true }))
 * handle(event);
 */
export interface Events {
  /**
   * An application's events, in order, without gap or duplicate, also across restarts. Throws
   * `application_not_found`, and `validation_failed` for an `after` beyond the newest event. The
   * iteration rejects with `engine_closed`, `store_failed`, `store_corrupt` or the signal's reason.
   * Only `signal` or closing ends a waiting `follow`.
   */
  stream(applicationId: Uuid, options?: EventOptions): AsyncGenerator<ApplicationEvent, void, void>;
  /**
   * Calls `listener` after each durable event of a type; returns the unsubscribe function. An error
   * of a listener does not reach the engine. It becomes an unhandled rejection, which ends
   * the Node process by default.
   */
  on<K extends keyof EngineEvents>(
    types: K | readonly K[],
    listener: (event: EngineEvents[K]) => void,
  ): () => void;
}

type Json<T> = {
  readonly [K in keyof T]: T[K] extends bigint | null ? Exclude<T[K], bigint> | string : T[K];
};

/**
 * An event as streams, pages and webhooks write it: whole numbers in decimal digits, its time in
 * RFC 3339.
 */
export type EventJson = {
  readonly [T in EventType]: {
    readonly sequence: number;
    readonly type: T;
    readonly createdAt: string;
    readonly data: Json<EventData[T]>;
  };
}[EventType];

/** An event as JSON. */
export function eventJson({ sequence, type, createdAt, data }: ApplicationEvent): EventJson {
  const fields = Object.entries(data).map(([name, value]) => [
    name,
    typeof value === "bigint" ? `${value}` : value,
  ]);
  const time = new Date(createdAt).toISOString();
  return { sequence, type, createdAt: time, data: Object.fromEntries(fields) } as EventJson;
}
