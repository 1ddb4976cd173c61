import { z } from "zod";
import { outTime, outUuid, requestComponent, responseComponent, uuid } from "./common.ts";
import { eventSequence, eventType } from "./events.ts";

export const webhookParams = z.strictObject({ webhookId: uuid });

export const webhookDeliveryParams = z.strictObject({ webhookId: uuid, sequence: eventSequence });

export const webhookBody = requestComponent(
  "NewWebhook",
  z.strictObject({
    url: z.string().max(2000).meta({ description: "`https:`; in the sandbox also `http:`." }),
    types: z.array(eventType).max(50).optional().meta({ description: "Types of event; default all, also if empty." }),
  }),
);

const fields = {
  webhookId: outUuid,
  url: z.string(),
  types: z.array(z.string()).meta({ description: "Types of event; all if empty." }),
  status: z.enum(["active", "disabled"]),
  delivered: z.int().meta({ description: "Sequence of the last event that was delivered, or skipped for its type." }),
  failingSince: outTime.nullable(),
  failure: z.string().nullable().meta({ description: "Why the last delivery failed." }),
  createdAt: outTime,
};

export const webhook = responseComponent("Webhook", z.strictObject(fields));

export const issuedWebhook = responseComponent(
  "IssuedWebhook",
  z.strictObject({ ...fields, secret: z.string().meta({ description: "Verifies deliveries. Shown once." }) }),
);

export const webhookList = responseComponent("WebhookList", z.strictObject({ data: z.array(webhook) }));

export const webhookAttempt = responseComponent(
  "WebhookAttempt",
  z.strictObject({
    kind: z.enum(["delivery", "test", "redelivery"]),
    sequence: z.int().nullable().meta({ description: "Of the event; null for a test." }),
    time: outTime.meta({ description: "The time when it began." }),
    durationMs: z.int(),
    status: z.int().nullable().meta({ description: "The receiver's HTTP status; null without a response." }),
    failure: z.string().nullable().meta({ description: "null when the receiver accepted it." }),
  }),
);

export const webhookAttempts = responseComponent(
  "WebhookAttemptList",
  z.strictObject({ data: z.array(webhookAttempt) }),
);
