import { webhook, webhookAttempt } from "../schemas/webhooks.ts";
import { writerOf } from "../wire/writer.ts";

export const webhookToWire = writerOf(webhook);
export const attemptToWire = writerOf(webhookAttempt);
