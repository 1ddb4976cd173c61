import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import {
  type Engine,
  type EngineEvents,
  type EventData,
  MintmarkError,
  type Principal,
} from "../../core/index.ts";
import { eventJson } from "../../core/internal.ts";
import { invalid } from "../http/errors.ts";
import type { Service } from "../service.ts";
import { identify } from "./api/authentication.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";

const batch = z.strictObject({
  batchId: z.string(),
  dataAvailabilityMode: s.mode,
  vaultCount: z.int().describe("Vaults of all applications."),
  batchRoot: s.outHash,
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
});

const withdrawal = z.strictObject({
  withdrawalId: s.outUuid,
  userId: s.outUuid,
  chainId: s.outDecimal,
  vaultId: s.outDecimal,
  quantity: s.outDecimal,
  recipient: s.outAddress,
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
  failure: z.string().nullable(),
});

const redeemed = z.strictObject({
  transferId: s.outUuid,
  userId: s.outUuid,
  vaultId: s.outDecimal,
  amount: s.outDecimal.describe("Units; 0: all that was left of the vault."),
});
const deposit = z.strictObject({
  userId: s.outUuid,
  vaultId: s.outDecimal,
  assetId: s.outUuid,
  tokenId: s.outDecimal.nullable(),
  amount: s.outDecimal,
  l1TxHash: s.outHash,
  l1BlockNumber: s.outDecimal,
});
const order = z.strictObject({
  orderId: s.outUuid,
  userId: s.outUuid.describe("The maker's user."),
  vaultId: s.outDecimal,
  counterOrderId: s.outUuid.nullable(),
  l1TxHash: s.outHash.nullable(),
  failure: z.string().nullable(),
});
const asset = z.strictObject({ assetId: s.outUuid });

const DATA = {
  "mint.accepted": z.strictObject({ mintId: s.outUuid, users: z.int(), mints: z.int() }),
  "mint.failed": z.strictObject({
    firstVaultId: s.outDecimal,
    vaults: z.int(),
    failure: z.string(),
  }),
  "asset.enabled": asset,
  "asset.disabled": asset,
  "batch.sealed": batch,
  "batch.submitted": batch,
  "batch.settled": batch,
  "batch.finalized": batch,
  "batch.reverted": batch,
  "withdrawal.accepted": withdrawal,
  "withdrawal.submitted": withdrawal,
  "withdrawal.attempt_refused": withdrawal,
  "withdrawal.settled": withdrawal,
  "withdrawal.finalized": withdrawal,
  "withdrawal.failed": withdrawal,
  "withdrawal.reverted": withdrawal,
  "transfer.accepted": z.strictObject({
    transferId: s.outUuid,
    transfers: z.int(),
    redemptions: z.int(),
  }),
  "transfer.redeemed": redeemed,
  "transfer.failed": z.strictObject({ transferId: s.outUuid, failure: z.string() }),
  "deposit.credited": deposit,
  "order.created": order,
  "order.filled": order,
  "order.submitted": order,
  "order.attempt_refused": order,
  "order.settled": order,
  "order.reopened": order,
  "order.cancelled": order,
  "order.stale": order,
  "order.expired": order,
  "webhook.disabled": z.strictObject({ webhookId: s.outUuid, failure: z.string() }),
} as const satisfies Record<keyof EventData, z.ZodType>;

type Type = keyof typeof DATA;
const TYPES = Object.keys(DATA) as [Type, ...Type[]];
export const eventType = z.enum(TYPES);

const eventOf = <T extends Type>(type: T) =>
  z.strictObject({
    sequence: z.int().describe("1, 2, 3 … within the application, consecutive."),
    type: z.literal(type),
    createdAt: s.outTime,
    data: DATA[type],
  });
type Events = { [T in Type]: ReturnType<typeof eventOf<T>> }[Type];

export const event = s.responseComponent(
  "Event",
  z.discriminatedUnion("type", TYPES.map(eventOf) as unknown as [Events, ...Events[]]),
);

const eventPage = s.responseComponent("EventPage", {
  data: z.array(event),
  hasMore: z
    .boolean()
    .describe("Whether there are more now: continue after the last one's sequence."),
});

const eventQuery = z.strictObject({
  after: s.eventSequence
    .optional()
    .describe("Only events after this one; default all. A Last-Event-ID header has precedence."),
  limit: s.page.limit,
});

const LAST_EVENT_ID = "Last-Event-ID";
const LAST_EVENT_POINTER = "/headers/last-event-id";
const DEFAULT_LIMIT = 50;

export const eventEndpoints: readonly Endpoint[] = [
  endpoint("Events", "read", "GET /api/v1/events", "listEvents", {
    summary: "The application's events in order: as pages, or as a stream",
    description:
      "One page; with `Accept: text/event-stream`, as EventSource sends it, a stream of Server-Sent Events until the client leaves. A client that reconnects with its last `id` misses nothing.",
    headers: {
      [LAST_EVENT_ID]: "The `id` of the client's last event. EventSource sends it automatically.",
    },
    query: eventQuery,
    success: {
      ...json(200, "The events.", eventPage),
      stream:
        "Server-Sent Events: `id` is the event's sequence, `data` the event in the form of the page's entries.",
    },
    errors: ["too_many_streams"],
    handle({ service, principal, query: { after = 0, limit = DEFAULT_LIMIT }, request, reply }) {
      const { applicationId } = principal;
      const seen = lastEventId(request);
      const from = seen ?? after;
      const pointer = seen === null ? "/query/after" : LAST_EVENT_POINTER;
      const events = eventsAfter(service.engine, applicationId, from, pointer);
      if (!(request.headers.accept ?? "").includes("text/event-stream") || request.method !== "GET")
        return page(events, limit);
      const answer = stream(service, principal, from, request);
      // Proxies that buffer responses would delay events.
      reply.headers({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
      return answer;
    },
  }),
];

/**
 * The header of a reconnecting client has precedence over the address, which it repeats unchanged.
 */
function lastEventId(request: FastifyRequest): number | null {
  const header = request.headers["last-event-id"];
  if (header === undefined || header === "") return null;
  const read = s.eventSequence.safeParse(header);
  if (read.success) return read.data;
  throw invalid(LAST_EVENT_POINTER, read.error.issues[0]?.message ?? "");
}

/**
 * The events after a sequence. Throws `validation_failed` with the pointer when it is beyond the
 * newest.
 */
function eventsAfter(engine: Engine, applicationId: string, after: number, pointer: string) {
  try {
    return engine.events.stream(applicationId, { after });
  } catch (error) {
    if (!(error instanceof MintmarkError) || error.code !== "validation_failed") throw error;
    throw invalid(pointer, error.message, error.message);
  }
}

async function page(events: ReturnType<Engine["events"]["stream"]>, limit: number) {
  const data = [];
  for await (const event of events) {
    if (data.length === limit) return { data, hasMore: true };
    data.push(eventJson(event));
  }
  return { data, hasMore: false };
}

/** The answers for programs after an `access` event, by their credentials. */
const answers = new WeakMap<EngineEvents["access"], Map<string, Promise<void>>>();

/**
 * Identifies the caller after an `access` event, once for all streams with the same key and token:
 * a thousand at once would hold up everybody.
 */
function identifiedAfter(
  event: EngineEvents["access"],
  request: FastifyRequest,
  service: Service,
): Promise<void> {
  const { "x-api-key": key, authorization } = request.headers;
  // A person signs in by other headers, so each stream is looked at.
  if (key === undefined && authorization === undefined) return identify("read", request, service);
  const known = answers.get(event) ?? new Map<string, Promise<void>>();
  answers.set(event, known);
  const credentials = JSON.stringify([key, authorization]);
  const answer = known.get(credentials) ?? identify("read", request, service);
  known.set(credentials, answer);
  return answer;
}

const RETRY_MS = 2000;

/**
 * Events as Server-Sent Events (WHATWG HTML, 9.2): `id` is the sequence, `data` the event as one
 * line of JSON. Writes no faster than the client reads; comments keep the connection alive. Ends
 * when the client leaves, the server stops, or the caller may no longer read, which each heartbeat
 * checks; the client's next request gets the reason.
 */
function stream(
  service: Service,
  { applicationId, keyId }: Principal,
  after: number,
  request: FastifyRequest,
) {
  const { engine, streams, feeds, heartbeatMs, stopping } = service;
  const ended = new AbortController();
  const { signal } = ended;
  const closed = streams.take(keyId);
  const answer = new PassThrough();
  const end = (): void => ended.abort();
  const check = (identified = identify("read", request, service)): void =>
    void identified.catch(end);
  const heartbeat = setInterval(() => {
    check();
    if (!answer.writableNeedDrain) answer.write(":\n\n");
  }, heartbeatMs);
  const deaf = engine.events.on("access", (event) => {
    if ((event.applicationId ?? applicationId) === applicationId)
      check(identifiedAfter(event, request, service));
  });
  signal.addEventListener("abort", () => {
    clearInterval(heartbeat);
    deaf();
    closed();
  });
  stopping.addEventListener("abort", end, { signal });
  if (stopping.aborted) end();
  answer.once("close", end);
  answer.write(`retry: ${RETRY_MS}\n\n`);
  const write = async () => {
    for await (const frames of feeds.follow(applicationId, after, signal))
      if (!answer.write(frames)) await once(answer, "drain", { signal });
  };
  void write()
    .catch((error) => {
      // The stream's own end is no failure. Any other, such as a damaged record, cuts the response
      // off.
      if (!signal.aborted) answer.destroy(error);
    })
    .finally(() => {
      end();
      answer.end();
    });
  return answer;
}
