import type { FastifyReply, FastifyRequest } from "fastify";
import { type Engine, MintmarkError, type Principal } from "../../core/index.ts";
import { eventJson } from "../../core/internal.ts";
import { invalid } from "../http/errors.ts";
import { eventStream } from "../http/wire/event-stream.ts";
import { eventSequence } from "../schemas/common.ts";
import { eventPage, eventQuery } from "../schemas/events.ts";
import type { Service } from "../service.ts";
import { authenticate } from "./api/authentication.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";

const LAST_EVENT_ID = "Last-Event-ID";
const LAST_EVENT_POINTER = "/headers/last-event-id";
const DEFAULT_LIMIT = 50;

export const eventEndpoints: readonly Endpoint[] = [
  endpoint("Events", "read", "GET /api/v1/events", "listEvents", {
    summary: "The application's events in order: as pages, or as a stream",
    description:
      "One page; with `Accept: text/event-stream`, as EventSource sends it, a stream of Server-Sent Events until the client leaves. A client that reconnects with its last `id` misses nothing.",
    headers: { [LAST_EVENT_ID]: "The `id` of the client's last event. EventSource sends it automatically." },
    query: eventQuery,
    success: {
      ...json(200, "The events.", eventPage),
      stream: "Server-Sent Events: `id` is the event's sequence, `data` the event in the form of the page's entries.",
    },
    errors: ["too_many_streams"],
    handle({ service, principal, query: { after = 0, limit = DEFAULT_LIMIT }, request, reply }) {
      const { applicationId } = principal;
      const seen = lastEventId(request);
      const from = seen ?? after;
      const pointer = seen === null ? "/query/after" : LAST_EVENT_POINTER;
      const events = eventsAfter(service.engine, applicationId, from, pointer);
      if (wantsStream(request)) return stream(service, principal, from, request, reply);
      return page(events, limit);
    },
  }),
];

/** The header of a reconnecting client has precedence over the address, which it repeats unchanged. */
function lastEventId(request: FastifyRequest): number | null {
  const header = request.headers["last-event-id"];
  if (header === undefined || header === "") return null;
  const read = eventSequence.safeParse(header);
  if (read.success) return read.data;
  throw invalid(LAST_EVENT_POINTER, read.error.issues[0]?.message ?? "");
}

function wantsStream({ method, headers: { accept = "" } }: FastifyRequest): boolean {
  return method === "GET" && accept.includes("text/event-stream");
}

/**
 * The events after a sequence. Throws `validation_failed` with the parameter's pointer when it is beyond the newest.
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

function stream(service: Service, principal: Principal, after: number, request: FastifyRequest, reply: FastifyReply) {
  const { engine, streams, heartbeatMs, stopping } = service;
  const { applicationId, keyId } = principal;
  const closed = streams.take(keyId);
  try {
    const events = eventStream({
      open: (signal) => engine.events.stream(applicationId, { after, follow: true, signal }),
      allowed: () => authenticate(request, service),
      onAccess: (changed) =>
        engine.events.on("access", (event) => (event.applicationId ?? applicationId) === applicationId && changed()),
      ...{ heartbeatMs, stopping, closed },
    });
    // Proxies that buffer responses would delay events.
    reply.headers({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
    return events;
  } catch (error) {
    closed();
    throw error;
  }
}
