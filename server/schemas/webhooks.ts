import { z } from "zod";
import { outTime, outUuid, requestComponent, responseComponent } from "./common.ts";
import { eventType } from "./events.ts";

export const webhookBody = requestComponent("NewWebhook", {
  url: z.string().max(2000).describe("`https:`; in the sandbox also `http:`."),
  types: z.array(eventType).max(50).optional().describe("Types of event; default all, also if empty."),
});

const fields = {
  webhookId: outUuid,
  url: z.string(),
  types: z.array(z.string()).describe("Types of event; all if empty."),
  status: z.enum(["active", "disabled"]),
  delivered: z.int().describe("Sequence of the last event that was delivered, or skipped for its type."),
  failingSince: outTime.nullable(),
  failure: z.string().nullable().describe("Why the last delivery failed."),
  createdAt: outTime,
};

export const webhook = responseComponent("Webhook", fields);

export const issuedWebhook = responseComponent("IssuedWebhook", {
  ...fields,
  secret: z.string().describe("Verifies deliveries. Shown once."),
});
export const webhookList = responseComponent("WebhookList", { data: z.array(webhook) });

export const webhookAttempt = responseComponent("WebhookAttempt", {
  kind: z.enum(["delivery", "test", "redelivery"]),
  sequence: z.int().nullable().describe("Of the event; null for a test."),
  time: outTime.describe("The time when it began."),
  durationMs: z.int(),
  status: z.int().nullable().describe("The endpoint's HTTP status; null without a response."),
  failure: z.string().nullable().describe("null when the endpoint accepted it."),
});

export const webhookAttempts = responseComponent("WebhookAttemptList", { data: z.array(webhookAttempt) });
