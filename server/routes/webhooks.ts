import type { FastifyReply } from "fastify";
import { z } from "zod";
import * as core from "../../core/index.ts";
import { ForbiddenAddress, requireReachable, type WebhookReach } from "../../core/internal.ts";
import { invalid, later } from "../http/errors.ts";
import { idOfRequest } from "../http/idempotency-key.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import { outTime, outUuid, requestComponent, responseComponent } from "./api/fields.ts";
import { eventType } from "./events.ts";

const types = z.array(eventType).max(50);

const webhookBody = requestComponent("NewWebhook", {
  url: z
    .string()
    .max(2000)
    .meta({ pattern: "^https?://\\S+$" })
    .describe("`https:`; in the sandbox also `http:`."),
  types: types.optional().describe("Types of event; default all, also if empty."),
});

const changeBody = requestComponent("WebhookChange", {
  types: types.describe("Types of event; all if empty."),
});

export const webhook = responseComponent("Webhook", {
  webhookId: outUuid,
  url: z.string(),
  types: z.array(z.string()).describe("Types of event; all if empty."),
  status: z.enum(["active", "disabled"]),
  delivered: z
    .int()
    .describe("Sequence of the last event that was delivered, or skipped for its type."),
  failingSince: outTime.nullable(),
  failure: z.string().nullable().describe("Why the last delivery failed."),
  createdAt: outTime,
});

const issuedWebhook = responseComponent("IssuedWebhook", {
  ...webhook.shape,
  secret: z.string().describe("Verifies deliveries. Shown once."),
});

const webhookAttempt = responseComponent("WebhookAttempt", {
  kind: z.enum(["delivery", "test", "redelivery"]),
  sequence: z.int().nullable().describe("The sequence of the event; null for a test."),
  time: outTime.describe("The time when it began."),
  durationMs: z.int(),
  status: z.int().nullable().describe("The endpoint's HTTP status; null without a response."),
  failure: z.string().nullable().describe("null when the endpoint accepted it."),
});

const PATH = "/api/v1/webhooks";
const attempted = json(200, "The outcome.", webhookAttempt);
const found = json(200, "The webhook.", webhook);

export const webhookEndpoints: readonly Endpoint[] = [
  endpoint("Webhooks", "webhooks", `POST ${PATH}`, "createWebhook", {
    summary: "Deliver events to an address",
    description:
      "All later events are posted there in order, each at least once, signed according to Standard Webhooks. The secret is shown once.",
    body: webhookBody,
    example: {
      url: "https://example.com/mintmark",
      types: ["mint.accepted", "withdrawal.settled"],
    },
    success: json(201, "The webhook and its secret.", issuedWebhook),
    errors: ["too_many_webhooks"],
    async handle({
      engine,
      service,
      applicationId,
      principal,
      body: { url, types = [] },
      request,
      reply,
    }) {
      requireAllowed(service.webhookReach, url);
      const asked = { url, types, ...idOfRequest("webhookId", principal, request) };
      return issued(reply, await engine.webhooks.create(applicationId, asked));
    },
  }),
  endpoint("Webhooks", "webhooks", `GET ${PATH}`, "listWebhooks", {
    summary: "The application's webhooks and their status",
    success: json(
      200,
      "All of them.",
      responseComponent("WebhookList", { data: z.array(webhook) }),
    ),
    handle: ({ engine, applicationId }) => engine.webhooks.list(applicationId),
  }),
  endpoint("Webhooks", "webhooks", `GET ${PATH}/{webhookId}`, "getWebhook", {
    summary: "One webhook",
    success: found,
    handle: ({ engine, applicationId, params }) =>
      engine.webhooks.get(applicationId, params.webhookId),
  }),
  endpoint("Webhooks", "webhooks", `PUT ${PATH}/{webhookId}`, "changeWebhook", {
    summary: "Deliver events of other types from now on",
    body: changeBody,
    example: { types: ["mint.accepted"] },
    success: found,
    handle: ({ engine, applicationId, params, body }) =>
      engine.webhooks.change(applicationId, params.webhookId, body),
  }),
  endpoint("Webhooks", "webhooks", `DELETE ${PATH}/{webhookId}`, "deleteWebhook", {
    summary: "Delete a webhook and end its deliveries",
    success: { ...found, description: "The webhook before its deletion." },
    async handle({ engine, applicationId, params }) {
      const last = await engine.webhooks.get(applicationId, params.webhookId);
      await engine.webhooks.delete(applicationId, params.webhookId);
      return last;
    },
  }),
  endpoint("Webhooks", "webhooks", `POST ${PATH}/{webhookId}/secret`, "rotateWebhookSecret", {
    summary: "Give a webhook a new secret",
    description:
      "For a day deliveries also have a signature by the old secret, so that the endpoint can change over. A repetition with the same Idempotency-Key returns the same secret, even after a restart. Once a later rotation has replaced that secret, it is refused.",
    keysInStore: true,
    success: json(200, "The webhook and its new secret.", issuedWebhook),
    async handle({ engine, applicationId, principal, params, request, reply }) {
      const asked = idOfRequest("rotationId", principal, request);
      return issued(
        reply,
        await engine.webhooks.rotateSecret(applicationId, params.webhookId, asked),
      );
    },
  }),
  endpoint("Webhooks", "webhooks", `PUT ${PATH}/{webhookId}/enablement`, "enableWebhook", {
    summary: "Enable a failed webhook again; its deliveries resume at once where they stopped",
    success: found,
    handle: ({ engine, applicationId, params }) =>
      engine.webhooks.enable(applicationId, params.webhookId),
  }),
  endpoint("Webhooks", "webhooks", `POST ${PATH}/{webhookId}/test`, "testWebhook", {
    summary: "Deliver a test event now, also to a disabled webhook",
    description:
      "The event has the type `webhook.test` and the sequence 0. Its outcome does not change the webhook, and is in memory only: after a restart, a repetition with the same Idempotency-Key delivers it again, with the same `webhook-id`.",
    success: attempted,
    async handle({ engine, service: { webhooks }, applicationId, principal, params, request }) {
      const webhook = await engine.webhooks.get(applicationId, params.webhookId);
      return attemptOf(
        await webhooks.test(webhook, idOfRequest("testId", principal, request).testId),
      );
    },
  }),
  endpoint("Webhooks", "webhooks", `GET ${PATH}/{webhookId}/deliveries`, "listWebhookDeliveries", {
    summary: "The last 50 attempts at a webhook since the server started, newest first",
    success: json(
      200,
      "The attempts.",
      responseComponent("WebhookAttemptList", { data: z.array(webhookAttempt) }),
    ),
    async handle({ engine, service: { webhooks }, applicationId, params }) {
      const { webhookId } = await engine.webhooks.get(applicationId, params.webhookId);
      return { data: webhooks.attempts(webhookId) };
    },
  }),
  endpoint(
    "Webhooks",
    "webhooks",
    `POST ${PATH}/{webhookId}/deliveries/{sequence}/redeliver`,
    "redeliverEvent",
    {
      summary: "Deliver an event of the application again, with the same `webhook-id`",
      description:
        "After a restart, a repetition with the same Idempotency-Key delivers it again: attempts are in memory only, and endpoints identify an event by its `webhook-id`.",
      success: attempted,
      async handle({
        engine,
        service: { webhooks },
        applicationId,
        params: { webhookId, sequence },
      }) {
        const known = await engine.webhooks.get(applicationId, webhookId);
        return attemptOf(
          await webhooks.redeliver(known, await eventOf(engine, applicationId, sequence)),
        );
      },
    },
  ),
  endpoint(
    "Webhooks",
    "webhooks",
    `POST ${PATH}/{webhookId}/deliveries/{sequence}/skip`,
    "skipEvent",
    {
      summary: "Never deliver the event that a webhook fails at, and go on with the next",
      description:
        "`sequence` is that of the event that is delivered next, so nobody skips one by mistake. A repetition changes nothing. A disabled webhook stays disabled until it is enabled.",
      success: found,
      handle: ({ engine, service, applicationId, params, request, reply }) =>
        engine.webhooks.skip(applicationId, params.webhookId, params.sequence, {
          async onPage(pages) {
            request.account?.pay(pages);
            await service.turns.turn(applicationId, reply.raw);
          },
        }),
    },
  ),
];

function issued(reply: FastifyReply, { webhook, secret, replayed }: core.IssuedWebhook) {
  if (replayed) reply.header("idempotency-replayed", "true");
  return { ...webhook, secret };
}

/** Throws `rate_limited` for null: another attempt that somebody asked for is in progress. */
function attemptOf(attempt: core.Attempt | null) {
  if (attempt !== null) return attempt;
  const detail =
    "A test or redelivery to this webhook is in progress; repeat the request when it has ended.";
  throw later("rate_limited", 1, detail);
}

async function eventOf(
  engine: core.Engine,
  applicationId: string,
  sequence: number,
): Promise<core.ApplicationEvent> {
  try {
    for await (const event of engine.events.stream(applicationId, { after: sequence - 1 }))
      return event;
  } catch (error) {
    if (!(error instanceof core.MintmarkError) || error.code !== "validation_failed") throw error;
  }
  throw invalid(
    "/path/sequence",
    "The application has no event with this sequence; GET /api/v1/events lists them.",
  );
}

/**
 * Throws at once when every delivery would fail. Names are checked when resolved, before each
 * connection.
 */
function requireAllowed(reach: WebhookReach, url: string): void {
  try {
    if (URL.canParse(url)) requireReachable(reach, new URL(url));
  } catch (error) {
    throw error instanceof ForbiddenAddress ? invalid("/url", error.message) : error;
  }
}
