import { hkdfSync } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { argumentError, MintmarkError } from "../errors.ts";
import { EVENTS_PAGE, tell, writtenEvents } from "../events/event-log.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { TenantLedger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, tablePage } from "../ledger/list.ts";
import type { Environment, EventType, Uuid } from "../model.ts";
import { EVENT_TYPES } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { rotationRecord, type WebhookRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { requireText, requireUuid } from "../validate.ts";

/** Most webhooks of an application. */
const PER_APPLICATION = 10;
/** Most characters of a delivery's failure. */
const MAX_FAILURE = 2_000;
/** Most pages of events among which a skip looks for an earlier one. */
const MOST_PAGES = 100;
/** Time for which the previous secret still signs after a rotation: a day. */
const OLD_SECRET_MS = 86_400_000;
const SUPERSEDED =
  "A later rotation has replaced the secret of this one. Rotate again with another key.";

/**
 * The registrations of webhooks. The journal holds the progress of their deliveries, so a restart
 * resumes.
 *
 * @param storeSecret - derives the secrets of webhooks, so none is stored
 */
export function webhooksOf(context: EngineContext, storeSecret: Uint8Array): Webhooks & Deliveries {
  /**
   * HKDF of the store's own secret (RFC 5869). The store's files are enough to sign; the journal
   * alone is not.
   */
  const secretOf = (webhookId: Uuid, rotations: number): string => {
    const purpose = `mintmark webhook ${webhookId} ${rotations}`;
    return `whsec_${Buffer.from(hkdfSync("sha256", storeSecret, "", purpose, 32)).toString("base64")}`;
  };
  const issued = (ledger: TenantLedger, record: WebhookRecord, replayed = false): IssuedWebhook => {
    return {
      webhook: webhookView(ledger, record),
      secret: secretOf(record.webhookId, record.rotations),
      replayed,
    };
  };
  const change = (
    [applicationId, webhookId]: readonly [Uuid, Uuid],
    kind: "webhookDeleted" | "webhookEnabled",
    changes: Partial<WebhookRecord>,
    wait?: WaitOptions,
  ) =>
    context.change((ledger, group) => {
      const record = ownWebhook(ledger, applicationId, webhookId, group);
      ledger.journal.record(group, { kind, webhookIndex: record.webhookIndex });
      return putWebhook(ledger, group, { ...record, ...changes });
    }, wait);
  const fail = async (
    webhookId: Uuid,
    isDisabled: boolean,
    reason: string,
    wait?: WaitOptions,
  ): Promise<void> => {
    const failure = requireText("failure", reason, MAX_FAILURE);
    await context.change((ledger, group) => {
      const record = latestActive(ledger, group, webhookId);
      if (record === null) return;
      const { webhookIndex, applicationIndex } = record;
      const kind = isDisabled ? "webhookDisabled" : "webhookFailing";
      const { time } = ledger.journal.record(group, { kind, webhookIndex, failure });
      const failing = { ...record, failingSince: record.failingSince ?? time, failure };
      if (!isDisabled) return ledger.tenants.webhooks.set(group, failing);
      tell(ledger, group, applicationIndex, time, { type: "webhook.disabled", webhookId, failure });
      putWebhook(ledger, group, { ...failing, status: "disabled" });
    }, wait);
  };
  const get: Webhooks["get"] = async (applicationId, webhookId) => {
    const { ledger } = context;
    return webhookView(ledger, ownWebhook(ledger, applicationId, webhookId, null));
  };
  return {
    async create(applicationId, { url, types = [], webhookId: asked }, wait) {
      const address = requireUrl(context.ledger.services.environment, url);
      const wanted = requireTypes(types);
      const webhookId = asked === undefined ? uuidv7() : requireUuid("webhookId", asked);
      return context.change((ledger, group) => {
        const { applicationIndex, eventCount: delivered } = ledger.tenants.application(
          applicationId,
          group,
        );
        const known = ledger.tenants.webhooks.named(webhookId, group);
        if (known !== undefined) {
          const isSame =
            known.url === address &&
            known.types.join() === wanted.join() &&
            known.status !== "deleted";
          if (!isSame || known.applicationIndex !== applicationIndex)
            throw new MintmarkError("idempotency_key_reused");
          return issued(ledger, known, true);
        }
        if (ledger.tenants.webhooksOf.numbers(applicationIndex).length >= PER_APPLICATION)
          throw new MintmarkError("too_many_webhooks");
        const webhookIndex = ledger.tenants.webhooks.view(group).size;
        const created = {
          webhookIndex,
          webhookId,
          applicationIndex,
          url: address,
          types: wanted,
          delivered,
        };
        const { time } = ledger.journal.record(group, { kind: "webhookCreated", ...created });
        const record: WebhookRecord = {
          ...created,
          status: "active",
          rotations: 0,
          rotatedAt: null,
          failingSince: null,
          failure: null,
          createdAt: time,
        };
        return issued(ledger, putWebhook(ledger, group, record));
      }, wait);
    },
    list: (applicationId, page = {}) =>
      listOf(context, "webhooks", applicationId, page, (start, ledger) => {
        const { applicationIndex } = ledger.tenants.application(applicationId, null);
        const view = (record: WebhookRecord) =>
          record.status === "deleted" ? null : webhookView(ledger, record);
        const numbers = ledger.tenants.webhooksOf.numbers(applicationIndex);
        return tablePage(ledger.tenants.webhooks.durable, start, view, "asc", numbers);
      }),
    get,
    async delete(applicationId, webhookId, wait) {
      await change([applicationId, webhookId], "webhookDeleted", { status: "deleted" }, wait);
    },
    async rotateSecret(applicationId, webhookId, { rotationId: asked, ...wait } = {}) {
      const rotationId = asked === undefined ? null : requireUuid("rotationId", asked);
      return context.change(async (ledger, group) => {
        const record = ownWebhook(ledger, applicationId, webhookId, group);
        const { applicationIndex, webhookIndex } = record;
        const rotations = record.rotations + 1;
        if (rotationId !== null) {
          const key = keyOf.rotation(applicationIndex, rotationId);
          const stored = await group.read(ledger.store, key);
          if (stored !== undefined) {
            const known = decodeRecord(rotationRecord, stored, `Rotation ${rotationId}`);
            if (known.webhookIndex !== webhookIndex)
              throw new MintmarkError("idempotency_key_reused");
            // An older secret signs no longer, or not for long.
            if (known.rotations !== record.rotations)
              throw new MintmarkError("idempotency_key_reused", SUPERSEDED);
            return issued(ledger, record, true);
          }
          group.stage(key, encodeRecord(rotationRecord, { webhookIndex, rotations }));
        }
        const { time } =
          rotationId === null
            ? ledger.journal.record(group, { kind: "webhookSecretRotated", webhookIndex })
            : ledger.journal.record(group, {
                kind: "webhookSecretRotatedOnce",
                webhookIndex,
                rotationId,
              });
        return issued(ledger, putWebhook(ledger, group, { ...record, rotations, rotatedAt: time }));
      }, wait);
    },
    async enable(applicationId, webhookId, wait) {
      const { ledger } = context;
      const known = await get(applicationId, webhookId);
      if (known.status === "active") {
        // A delivery may be waiting for hours after a failure. This starts it at once.
        ledger.services.emit("webhook", { webhookId, applicationId });
        return known;
      }
      const enabled = { status: "active", failingSince: null, failure: null } as const;
      return webhookView(
        ledger,
        await change([applicationId, webhookId], "webhookEnabled", enabled, wait),
      );
    },
    async change(applicationId, webhookId, { types: asked }, wait) {
      const types = requireTypes(asked);
      return context.change((ledger, group) => {
        const record = ownWebhook(ledger, applicationId, webhookId, group);
        const { webhookIndex } = record;
        ledger.journal.record(group, { kind: "webhookChanged", webhookIndex, types });
        return webhookView(ledger, putWebhook(ledger, group, { ...record, types }));
      }, wait);
    },
    async skip(applicationId, webhookId, sequence, options) {
      const known = await get(applicationId, webhookId);
      if (sequence <= known.delivered) return known;
      await requireNext(context.ledger, known, sequence, options);
      return context.change((ledger, group) => {
        const record = ownWebhook(ledger, applicationId, webhookId, group);
        if (sequence <= record.delivered) return webhookView(ledger, record);
        if (record.types.join() !== known.types.join())
          throw argumentError(
            "sequence",
            "is uncertain: the types have changed meanwhile. Repeat it.",
          );
        const { webhookIndex } = record;
        ledger.journal.record(group, { kind: "webhookEventSkipped", webhookIndex, sequence });
        const skipped = { delivered: sequence, failingSince: null, failure: null };
        return webhookView(ledger, putWebhook(ledger, group, { ...record, ...skipped }));
      }, options);
    },
    applications() {
      const { applications, webhooksOf } = context.ledger.tenants;
      return [...applications.durable.values()]
        .filter(({ applicationIndex }) => webhooksOf.numbers(applicationIndex).length > 0)
        .map(({ applicationId }) => applicationId);
    },
    deliverable(applicationId) {
      const { ledger } = context;
      const { suspended, applicationIndex } = ledger.tenants.application(applicationId, null);
      const own = suspended ? [] : ledger.tenants.webhooksOf.records(applicationIndex, null);
      return own
        .filter(({ status }) => status === "active")
        .map((record) => webhookView(ledger, record));
    },
    secrets(webhookId) {
      const { ledger } = context;
      const record = ledger.tenants.webhooks.named(webhookId, null);
      if (record === undefined) throw new MintmarkError("webhook_not_found");
      const { rotations, rotatedAt } = record;
      const current = secretOf(webhookId, rotations);
      const old = rotatedAt !== null && ledger.journal.clock.present() < rotatedAt + OLD_SECRET_MS;
      return old ? [current, secretOf(webhookId, rotations - 1)] : [current];
    },
    async recordDelivered(webhookId, sequence, wait) {
      const { ledger } = context;
      const apply = (group: Group): void => {
        const record = latestActive(ledger, group, webhookId);
        if (record === null || sequence <= record.delivered) return;
        ledger.journal.record(group, {
          kind: "webhookDelivered",
          webhookIndex: record.webhookIndex,
          sequence,
        });
        ledger.tenants.webhooks.set(group, {
          ...record,
          delivered: sequence,
          failingSince: null,
          failure: null,
        });
      };
      // Joins the write in progress, so deliveries do not delay mints.
      await context.writer.run({ weight: 1, keys: () => [], apply }, wait?.signal);
    },
    recordFailing: (webhookId, failure, wait) => fail(webhookId, false, failure, wait),
    recordDisabled: (webhookId, failure, wait) => fail(webhookId, true, failure, wait),
  };
}

/** Throws `validation_failed` unless this event is the one that is delivered next. */
async function requireNext(
  ledger: TenantLedger,
  webhook: Webhook,
  sequence: number,
  { onPage, signal = ledger.writer.ended }: SkipOptions = {},
): Promise<void> {
  const { applicationId, delivered } = webhook;
  const { applicationIndex, eventCount } = ledger.tenants.application(applicationId, null);
  const refusal = (rule: string) => argumentError("sequence", rule);
  if (!Number.isSafeInteger(sequence) || sequence > eventCount)
    throw refusal(
      `cannot be skipped: the newest event is ${eventCount}. The webhook has got or skipped those up to ${delivered}`,
    );
  const [named] = await writtenEvents(ledger, applicationIndex, sequence, sequence);
  if (named === undefined || !isWanted(webhook, named.event.type))
    throw refusal("cannot be skipped: the webhook does not get events of its type");
  for (let first = delivered + 1, pages = 1; first < sequence; first += EVENTS_PAGE, pages++) {
    signal.throwIfAborted();
    if (pages > MOST_PAGES)
      throw refusal(
        `cannot be skipped: it has more than ${MOST_PAGES * EVENTS_PAGE} others before it. Enable the webhook, and skip the event when its delivery fails.`,
      );
    await onPage?.(pages);
    const last = Math.min(sequence, first + EVENTS_PAGE) - 1;
    const page = await writtenEvents(ledger, applicationIndex, first, last);
    const earlier = page.find(({ event }) => isWanted(webhook, event.type));
    if (earlier !== undefined)
      throw refusal(`must be ${earlier.sequence}, the event that is delivered next`);
  }
}

/** Whether a webhook gets events of this type. */
export function isWanted({ types }: Pick<Webhook, "types">, type: EventType): boolean {
  return types.length === 0 || types.includes(type);
}

/** null once deleted or disabled: a delivery in progress then no longer counts. */
function latestActive(ledger: TenantLedger, group: Group, webhookId: Uuid): WebhookRecord | null {
  const record = ledger.tenants.webhooks.named(webhookId, group);
  return record?.status === "active" ? record : null;
}

/** Writes a registration, and notifies listeners. The progress of deliveries is written without. */
function putWebhook(ledger: TenantLedger, group: Group, record: WebhookRecord): WebhookRecord {
  ledger.tenants.webhooks.set(group, record);
  const { webhookId, applicationIndex } = record;
  const applicationId = ledger.tenants.applicationIdAt(applicationIndex);
  group.onDurable(() => ledger.services.emit("webhook", { webhookId, applicationId }));
  return record;
}

function webhookView(ledger: TenantLedger, record: WebhookRecord): Webhook {
  const {
    webhookId,
    applicationIndex,
    url,
    types,
    status,
    delivered,
    failingSince,
    failure,
    createdAt,
  } = record;
  if (status === "deleted") throw new MintmarkError("webhook_not_found");
  const wanted = types as readonly EventType[];
  return {
    webhookId,
    applicationId: ledger.tenants.applicationIdAt(applicationIndex),
    url,
    types: wanted,
    status,
    delivered,
    failingSince,
    failure,
    createdAt,
  };
}

/** Throws `application_not_found`, `webhook_not_found`. */
function ownWebhook(
  ledger: TenantLedger,
  applicationId: Uuid,
  webhookId: Uuid,
  group: Group | null,
): WebhookRecord {
  const { applicationIndex } = ledger.tenants.application(applicationId, group);
  const record = ledger.tenants.webhooks.named(webhookId, group);
  if (record?.applicationIndex !== applicationIndex || record.status === "deleted")
    throw new MintmarkError("webhook_not_found");
  return record;
}

/** An address for an application's events. Each event is delivered at least once, in order. */
export interface Webhook {
  readonly webhookId: Uuid;
  readonly applicationId: Uuid;
  readonly url: string;
  /** Only events of these types are delivered. Empty: all types, future ones included. */
  readonly types: readonly EventType[];
  /** `disabled`: deliveries have failed for so long that they stopped until it is enabled again. */
  readonly status: "active" | "disabled";
  /** The sequence of the last event that was delivered, or skipped for its type. */
  readonly delivered: number;
  /**
   * Time of the first failure in a row, milliseconds since 1970; null when the last delivery
   * succeeded.
   */
  readonly failingSince: number | null;
  /** The reason of the last failure; null when the last delivery succeeded. */
  readonly failure: string | null;
  readonly createdAt: number;
}

/** Input of {@link Webhooks.create}. */
export interface NewWebhook {
  /** Default: a new one. Repeating a registration with its id returns the same one. */
  readonly webhookId?: Uuid;
  /**
   * `https:`; in the sandbox also `http:`. No credentials or fragment, at most 2,000 characters.
   */
  readonly url: string;
  /** Default: all. */
  readonly types?: readonly EventType[];
}

/** Options of {@link Webhooks.rotateSecret}. */
interface RotateOptions extends WaitOptions {
  /** Default: a new one. A call repeated with its id rotates once. */
  readonly rotationId?: Uuid;
}

/** Options of {@link Webhooks.skip}. */
export interface SkipOptions extends WaitOptions {
  /**
   * Called with the number of each page of earlier events, before it is read. The search goes on
   * when it resolves, and rejects as it does.
   */
  readonly onPage?: ((pages: number) => void | Promise<void>) | undefined;
}

/** A webhook with the secret that signs its deliveries. */
export interface IssuedWebhook {
  readonly webhook: Webhook;
  /** `whsec_` and 32 bytes in base64, as in Standard Webhooks. Shown once. */
  readonly secret: string;
  /** Whether an earlier call with the same id made it. */
  readonly replayed: boolean;
}

/**
 * The webhooks of applications.
 *
 * @example
 * const { secret } = await engine.webhooks.create(applicationId, { url:
 * "https://game.example/minted" });
 */
export interface Webhooks {
  /**
   * Delivers all events from now on. Throws `validation_failed`, `too_many_webhooks`,
   * `idempotency_key_reused`.
   */
  create(applicationId: Uuid, webhook: NewWebhook, wait?: WaitOptions): Promise<IssuedWebhook>;
  /** Oldest first. */
  list(applicationId: Uuid, page?: PageOptions): List<Webhook>;
  /** Throws `webhook_not_found`, as do all methods below. */
  get(applicationId: Uuid, webhookId: Uuid): Promise<Webhook>;
  /** Ends its deliveries. */
  delete(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<void>;
  /**
   * Creates a new secret. For another day, deliveries also carry a signature by the previous one. A
   * repeated `rotationId` returns the same secret. Throws `idempotency_key_reused` for the id of
   * another webhook's rotation, or of one that a later rotation replaced.
   */
  rotateSecret(
    applicationId: Uuid,
    webhookId: Uuid,
    options?: RotateOptions,
  ): Promise<IssuedWebhook>;
  /** Delivers events of these types from now on; all types if there are none. */
  change(
    applicationId: Uuid,
    webhookId: Uuid,
    changes: { readonly types: readonly EventType[] },
    wait?: WaitOptions,
  ): Promise<Webhook>;
  /**
   * Never delivers the event that is delivered next, and goes on with the one after it. Changes
   * nothing for an event that was delivered or skipped before. Throws `validation_failed` for a
   * later one, for one that the webhook does not get, and for one with very many others before it.
   */
  skip(
    applicationId: Uuid,
    webhookId: Uuid,
    sequence: number,
    options?: SkipOptions,
  ): Promise<Webhook>;
  /** Resumes deliveries where they stopped, at once. */
  enable(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<Webhook>;
}

/** The deliveries to the webhooks of all applications. */
export interface Deliveries {
  /** Applications that have webhooks. */
  applications(): readonly Uuid[];
  /** An application's webhooks that receive deliveries now: active ones, unless it is suspended. */
  deliverable(applicationId: Uuid): readonly Webhook[];
  /**
   * The secrets that sign deliveries now: the current one, and the previous one for a day after a
   * rotation.
   */
  secrets(webhookId: Uuid): readonly string[];
  /** Records that events up to `sequence` need no further delivery. */
  recordDelivered(webhookId: Uuid, sequence: number, wait?: WaitOptions): Promise<void>;
  /** Records a failure. The first after a success sets `failingSince`. */
  recordFailing(webhookId: Uuid, failure: string, wait?: WaitOptions): Promise<void>;
  /** Disables the webhook, and sends the application the event `webhook.disabled`. */
  recordDisabled(webhookId: Uuid, failure: string, wait?: WaitOptions): Promise<void>;
}

const MAX_URL = 2_000;

/** The canonical form of the address. Its target is checked on connecting. */
function requireUrl(environment: Environment, url: string): string {
  const parsed =
    typeof url === "string" && url.length <= MAX_URL && URL.canParse(url) ? new URL(url) : null;
  const allowed = environment === "live" ? ["https:"] : ["https:", "http:"];
  if (
    !parsed ||
    !allowed.includes(parsed.protocol) ||
    parsed.username ||
    parsed.password ||
    parsed.hash
  ) {
    const schemes = allowed.map((scheme) => `${scheme}//`).join(" or ");
    throw argumentError(
      "url",
      `must be an address with ${schemes}, without credentials or fragment`,
    );
  }
  return parsed.href;
}

/** The types without repetitions. */
function requireTypes(types: readonly string[]): string[] {
  const unknown = types.findIndex((type) => !EVENT_TYPES.has(type));
  if (unknown >= 0)
    throw argumentError(`types[${unknown}]`, "is no type of event; docs/events.md lists them");
  return [...new Set(types)];
}
