import type { EventType } from "./event-types.ts";
import type { Uuid } from "./model.ts";
import type { WaitOptions } from "./wait-types.ts";

/** An address that an application's events are delivered to, each at least once and in order. */
export interface Webhook {
  readonly webhookId: Uuid;
  readonly applicationId: Uuid;
  readonly url: string;
  /** Delivered are events of these types; of all, also those that are yet to be, when empty. */
  readonly types: readonly EventType[];
  /** `disabled`: it has failed for so long that nothing is delivered until it is enabled again. */
  readonly status: "active" | "disabled";
  /** The sequence of the last event that was delivered, or passed over for its type. */
  readonly delivered: number;
  /** Since when deliveries have failed, ms since 1970; null when the last one did not. */
  readonly failingSince: number | null;
  /** Why the last one failed; null when it did not. */
  readonly failure: string | null;
  readonly createdAt: number;
}

export interface NewWebhook {
  /** `https:`; in the sandbox `http:` too. Without credentials or a fragment, at most 2,000 characters. */
  readonly url: string;
  /** Default: all. */
  readonly types?: readonly EventType[];
}

export interface IssuedWebhook {
  readonly webhook: Webhook;
  /** `whsec_` and 32 bytes in base64, as Standard Webhooks has it. Shown once. */
  readonly secret: string;
}

/** The webhooks of all applications: what applications do with them, and what delivers to them. */
export interface Webhooks {
  /** Delivers what happens from now on. Throws `validation_failed`, `too_many_webhooks`. */
  create(applicationId: Uuid, webhook: NewWebhook, wait?: WaitOptions): Promise<IssuedWebhook>;
  list(applicationId: Uuid): Promise<readonly Webhook[]>;
  /** Throws `webhook_not_found`, as do all that follow. */
  get(applicationId: Uuid, webhookId: Uuid): Promise<Webhook>;
  delete(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<void>;
  /** A new secret. Deliveries are signed with the one before as well for another day. */
  rotateSecret(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<IssuedWebhook>;
  /** Takes up deliveries where they stopped, and tries at once. */
  enable(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<Webhook>;

  // For what delivers.
  /** Those to deliver to now: active, of applications that are not suspended. */
  deliverable(): readonly Webhook[];
  /** What deliveries are signed with now: the secret, and the one before for a day after it was rotated. */
  secrets(webhookId: Uuid): readonly string[];
  /** Events up to this one need not be delivered again. */
  recordDelivered(webhookId: Uuid, sequence: number, wait?: WaitOptions): Promise<void>;
  /** A failure; the first one after a success begins `failingSince`. */
  recordFailing(webhookId: Uuid, failure: string, wait?: WaitOptions): Promise<void>;
  /** Gives up, and tells the application by the event `webhook.disabled`. */
  recordDisabled(webhookId: Uuid, failure: string, wait?: WaitOptions): Promise<void>;
}
