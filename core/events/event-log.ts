import type { VaultColumns } from "../columns/vault-columns.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { EngineEvents, EventHub } from "../ledger/event-hub.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { readUsers } from "../ledger/users.ts";
import type { ApplicationEvent, Uuid } from "../model.ts";
import { batchIdOf } from "../model.ts";
import {
  type BatchEventType,
  decodeEvent,
  encodeEvent,
  type StoredEvent,
  type WithdrawalEventType,
} from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { type BatchRecord, batchApplicationsRecord, type WithdrawalRecord } from "../store/records.ts";
import { applicationEventKey, batchApplicationsKey } from "../store/store-keys.ts";

/** Events read from disk at a time: what a reader who never comes back for more holds in memory. */
const PAGE = 128;

/** Appends an event to what an application is told, in the same write as what it tells of. */
export function tell(ledger: Ledger, group: Group, applicationIndex: number, time: number, event: StoredEvent): void {
  const application = ledger.applications.latest(applicationIndex);
  if (application === undefined) throw new Error(`application ${applicationIndex} is not loaded`);
  const sequence = application.eventCount + 1;
  group.put(applicationEventKey(applicationIndex, sequence), encodeEvent(time, event));
  ledger.putApplication(group, { ...application, eventCount: sequence });
}

/** Tells every application that has vaults in a batch that it is sealed, and records which they are. */
export function tellSealed(
  ledger: Ledger,
  group: Group,
  batch: BatchRecord,
  { holders }: VaultColumns,
  time: number,
): void {
  const applications = [...new Set([...holders.values()].map(({ applicationIndex }) => applicationIndex))];
  applications.sort((a, b) => a - b);
  const record = encodeRecord(batchApplicationsRecord, applications);
  group.put(batchApplicationsKey(batch.mode, batch.batchNumber), record);
  for (const index of applications) tell(ledger, group, index, time, batchEvent("batch.sealed", batch));
}

/** Tells them what has become of a sealed batch since. */
export async function tellBatch(
  ledger: Ledger,
  group: Group,
  type: BatchEventType,
  batch: BatchRecord,
  time: number,
): Promise<void> {
  const name = `The applications of ${batchIdOf(batch.mode, batch.batchNumber)}`;
  const record = await ledger.store.get(batchApplicationsKey(batch.mode, batch.batchNumber));
  if (record === undefined) throw new MintmarkError("store_corrupt", `${name} are missing.`);
  for (const index of decodeRecord(batchApplicationsRecord, record, name)) {
    tell(ledger, group, index, time, batchEvent(type, batch));
  }
}

export function batchEvent(type: BatchEventType, batch: BatchRecord): StoredEvent {
  const { mode, batchNumber, vaultCount, batchRoot, l1TxHash, l1BlockNumber } = batch;
  if (batchRoot === null) throw new Error("an event of a batch that is not sealed");
  return { type, mode, batchNumber, vaultCount, batchRoot, l1TxHash, l1BlockNumber };
}

export function withdrawalEvent(type: WithdrawalEventType, withdrawal: WithdrawalRecord): StoredEvent {
  const { withdrawalId, userIndex, chainId, vaultId, quantity, recipient, l1TxHash, l1BlockNumber, failure } =
    withdrawal;
  return { type, withdrawalId, userIndex, chainId, vaultId, quantity, recipient, l1TxHash, l1BlockNumber, failure };
}

/**
 * An application's events in order, as far as they are on disk. They are read a page at a time when asked for, so a slow reader holds
 * no more than that. Throws `application_not_found`, and `validation_failed` for an `after` that no event has; the iteration rejects
 * with `engine_closed`, `store_failed`, `store_corrupt` or the signal's reason.
 */
function applicationEvents(
  ledger: Ledger,
  applicationId: Uuid,
  { after = 0, follow = false, signal }: EventOptions,
): AsyncGenerator<ApplicationEvent, void, void> {
  const { applicationIndex, eventCount } = ledger.application(applicationId);
  if (!Number.isSafeInteger(after) || after < 0 || after > eventCount) {
    const detail = `after must be the sequence of an event: the newest is ${eventCount}. 0 starts with the first.`;
    throw new MintmarkError("validation_failed", detail);
  }
  const { ended } = ledger.writer;
  return events(
    ledger,
    applicationIndex,
    after,
    follow,
    signal === undefined ? ended : AbortSignal.any([signal, ended]),
  );
}

async function* events(
  ledger: Ledger,
  applicationIndex: number,
  after: number,
  follow: boolean,
  end: AbortSignal,
): AsyncGenerator<ApplicationEvent, void, void> {
  for (let known = after; ; ) {
    end.throwIfAborted();
    const newest = ledger.applications.get(applicationIndex)?.eventCount ?? 0;
    if (known < newest) {
      for (const event of await sharedEvents(ledger, applicationIndex, known + 1, Math.min(newest, known + PAGE))) {
        end.throwIfAborted();
        yield event;
        known = event.sequence;
      }
    } else if (follow) await ledger.followers.next(applicationIndex, end);
    else return;
  }
}

/** Reads that are under way, by application and sequences, for each ledger. */
const reading = new WeakMap<Ledger, Map<string, Promise<readonly ApplicationEvent[]>>>();

/** The events of these sequences, both included. Readers who are woken together share one read and its events. */
function sharedEvents(
  ledger: Ledger,
  application: number,
  first: number,
  last: number,
): Promise<readonly ApplicationEvent[]> {
  const reads = reading.get(ledger) ?? new Map<string, Promise<readonly ApplicationEvent[]>>();
  reading.set(ledger, reads);
  const name = `${application} ${first} ${last}`;
  const known = reads.get(name);
  if (known !== undefined) return known;
  const read = readEvents(ledger, application, first, last).finally(() => reads.delete(name));
  reads.set(name, read);
  return read;
}

async function readEvents(
  ledger: Ledger,
  application: number,
  first: number,
  last: number,
): Promise<ApplicationEvent[]> {
  const keys = Array.from({ length: last - first + 1 }, (_, i) => applicationEventKey(application, first + i));
  const records = await ledger.store.getMany(keys);
  const stored = records.map((record, i) => {
    const name = `Event ${first + i} of application ${application}`;
    if (record === undefined) throw new MintmarkError("store_corrupt", `${name} is missing.`);
    return { sequence: first + i, ...decodeEvent(record, name) };
  });
  const users = [...new Set(stored.flatMap(({ event }) => ("userIndex" in event ? [event.userIndex] : [])))];
  const found = await readUsers(ledger, application, users);
  const userIds = new Map(users.map((index, i) => [index, found[i]?.userId ?? ""]));
  return stored.map(({ sequence, time: createdAt, event }) => {
    return { sequence, type: event.type, createdAt, data: dataOf(event, userIds) } as ApplicationEvent;
  });
}

/** What an event tells, in the words of callers. */
function dataOf(event: StoredEvent, userIds: ReadonlyMap<number, Uuid>): ApplicationEvent["data"] {
  if ("userIndex" in event) {
    const { type: _, userIndex, ...data } = event;
    return { ...data, userId: userIds.get(userIndex) ?? "" };
  }
  if ("batchNumber" in event) {
    const { type: _, mode, batchNumber, ...data } = event;
    return { batchId: batchIdOf(mode, batchNumber), dataAvailabilityMode: mode, ...data };
  }
  const { type: _, ...data } = event;
  return data;
}

/** Where a stream of events begins and ends. */
export interface EventOptions {
  /** The sequence of the last event that is known already; default 0, from the first. */
  readonly after?: number;
  /** Waits for what is still to come, instead of ending with the newest event. Default false. */
  readonly follow?: boolean;
  /** Ends the iteration: it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export function eventsOf(context: EngineContext, hub: EventHub): Events {
  return {
    stream: (applicationId, options = {}) => applicationEvents(context.ledger, applicationId, options),
    on: (type, listener) => hub.on(type, listener),
  };
}

/**
 * What applications are told, and what the process is told.
 *
 * @example
 * for await (const event of engine.events.stream(applicationId, { after: 41, follow: true })) handle(event);
 */
export interface Events {
  /**
   * What an application is told, in order, without gap or duplicate, however often the engine was closed or killed since. Throws
   * `application_not_found`, and `validation_failed` for an `after` beyond the newest event. `signal` or closing the engine ends a
   * stream that waits with `follow`; until its next event nothing else ends it.
   */
  stream(applicationId: Uuid, options?: EventOptions): AsyncGenerator<ApplicationEvent, void, void>;
  /**
   * Calls `listener` after each such thing is durable; returns the function that stops it. What a listener throws does
   * not reach the engine: it is an unhandled rejection, which Node ends the process for unless it is listened to.
   */
  on<K extends keyof EngineEvents>(type: K, listener: (event: EngineEvents[K]) => void): () => void;
}
