import type { z } from "zod";
import type { Webhook } from "../../core/index.ts";
import type { webhook, webhookAttempt } from "../schemas/webhooks.ts";
import { time } from "../wire/wire.ts";
import type { Attempt } from "./attempts.ts";

export function webhookToWire(from: Webhook): z.output<typeof webhook> {
  return {
    webhookId: from.webhookId,
    url: from.url,
    types: [...from.types],
    status: from.status,
    delivered: from.delivered,
    failingSince: from.failingSince === null ? null : time(from.failingSince),
    failure: from.failure,
    createdAt: time(from.createdAt),
  };
}

export function attemptToWire(from: Attempt): z.output<typeof webhookAttempt> {
  return {
    kind: from.kind,
    sequence: from.sequence,
    time: time(from.time),
    durationMs: from.durationMs,
    status: from.status,
    failure: from.failure,
  };
}
