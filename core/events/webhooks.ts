import { hkdfSync } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, tablePage } from "../ledger/list.ts";
import type { Environment, EventType, Uuid } from "../model.ts";
import { EVENT_TYPES } from "../store/event-record.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, encodeRecord } from "../store/layout.ts";
import { rotationRecord, type WebhookRecord } from "../store/records.ts";
import { rotationKey } from "../store/store-keys.ts";
import { requireText, requireUuid } from "../validate.ts";
import { tell } from "./event-log.ts";

/** Webhooks that an application may have. */
const PER_APPLICATION = 10;
/** Characters of why a delivery failed. */
const MAX_FAILURE = 2_000;
/** How long the secret before a rotation is still signed with: a day. */
const OLD_SECRET_MS = 86_400_000;

/** The registrations of webhooks. How far each has been delivered is journaled with them, so a restart goes on where it stood. */
export class LedgerWebhooks implements Webhooks, Deliveries {
  readonly #ledger: Ledger;
  readonly #context: EngineContext;
  readonly #storeSecret: Uint8Array;

  /** @param storeSecret - what the secrets of webhooks are derived from, so that none is stored */
  constructor(ledger: Ledger, context: EngineContext, storeSecret: Uint8Array) {
    this.#ledger = ledger;
    this.#context = context;
    this.#storeSecret = storeSecret;
  }

  async create(
    applicationId: Uuid,
    { url, types = [], webhookId: asked }: NewWebhook,
    { signal }: WaitOptions = {},
  ): Promise<IssuedWebhook> {
    const ledger = this.#usable;
    const address = requireUrl(ledger.environment, url);
    const wanted = requireTypes(types);
    const webhookId = asked === undefined ? uuidv7() : requireUuid("webhookId", asked);
    return ledger.writer.alone(async (group) => {
      const { applicationIndex, eventCount: delivered } = ledger.latestApplication(applicationId);
      const known = ledger.webhooks.latest(this.#indexOf(webhookId));
      if (known !== undefined) return this.#issued(requireSame(known, applicationIndex, address, wanted));
      const present = [...ledger.webhooks.latestValues()].filter(
        (known) => known.applicationIndex === applicationIndex,
      );
      if (present.filter(({ status }) => status !== "deleted").length >= PER_APPLICATION) {
        throw new MintmarkError("too_many_webhooks");
      }
      const webhookIndex = ledger.webhooks.latestCount;
      const facts = { webhookIndex, webhookId, applicationIndex, url: address, types: wanted, delivered };
      const { time } = ledger.record(group, { kind: "webhookCreated", ...facts });
      const fresh = { status: "active", rotations: 0, rotatedAt: null, failingSince: null, failure: null } as const;
      return this.#issued(this.#put(group, { ...facts, ...fresh, createdAt: time }));
    }, signal);
  }

  list(applicationId: Uuid, page: PageOptions = {}): List<Webhook> {
    return listOf(this.#context, "webhooks", applicationId, page, (start) => {
      const { applicationIndex } = this.#usable.application(applicationId);
      return tablePage(this.#ledger.webhooks, start, (record) =>
        record.applicationIndex === applicationIndex && record.status !== "deleted" ? this.#view(record) : null,
      );
    });
  }

  async get(applicationId: Uuid, webhookId: Uuid): Promise<Webhook> {
    const { applicationIndex } = this.#usable.application(applicationId);
    const record = this.#ledger.webhooks.get(this.#indexOf(webhookId));
    return this.#view(requireOwn(record, applicationIndex));
  }

  async delete(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<void> {
    await this.#change(applicationId, webhookId, "webhookDeleted", { status: "deleted" }, wait);
  }

  async rotateSecret(
    applicationId: Uuid,
    webhookId: Uuid,
    { rotationId: asked, signal }: RotateOptions = {},
  ): Promise<IssuedWebhook> {
    const ledger = this.#usable;
    const rotationId = asked === undefined ? null : requireUuid("rotationId", asked);
    return ledger.writer.alone(async (group) => {
      const { applicationIndex } = ledger.latestApplication(applicationId);
      const record = requireOwn(ledger.webhooks.latest(this.#indexOf(webhookId)), applicationIndex);
      const { webhookIndex } = record;
      const rotations = record.rotations + 1;
      if (rotationId !== null) {
        const key = rotationKey(applicationIndex, rotationId);
        const stored = await group.read(ledger.store, key);
        if (stored !== undefined) {
          const known = decodeRecord(rotationRecord, stored, `Rotation ${rotationId}`);
          if (known.webhookIndex !== webhookIndex) throw new MintmarkError("idempotency_key_reused");
          return this.#issued(record, known.rotations);
        }
        group.stage(key, encodeRecord(rotationRecord, { webhookIndex, rotations }));
      }
      const entry =
        rotationId === null
          ? ({ kind: "webhookSecretRotated", webhookIndex } as const)
          : ({ kind: "webhookSecretRotatedOnce", webhookIndex, rotationId } as const);
      const { time } = ledger.record(group, entry);
      return this.#issued(this.#put(group, { ...record, rotations, rotatedAt: time }));
    }, signal);
  }

  async enable(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<Webhook> {
    const known = await this.get(applicationId, webhookId);
    if (known.status === "active") {
      // What delivers may be waiting for hours after a failure: it tries at once.
      this.#ledger.emit("webhook", { webhookId });
      return known;
    }
    const fresh = { status: "active", failingSince: null, failure: null } as const;
    return this.#view(await this.#change(applicationId, webhookId, "webhookEnabled", fresh, wait));
  }

  deliverable(): readonly Webhook[] {
    const { webhooks, applications } = this.#usable;
    const active = [...webhooks.values()].filter(({ status }) => status === "active");
    return active
      .filter(({ applicationIndex }) => applications.get(applicationIndex)?.suspended === false)
      .map((record) => this.#view(record));
  }

  secrets(webhookId: Uuid): readonly string[] {
    const record = this.#usable.webhooks.get(this.#indexOf(webhookId));
    if (record === undefined) throw new MintmarkError("webhook_not_found");
    const { rotations, rotatedAt } = record;
    const current = this.#secret(webhookId, rotations);
    const old = rotatedAt !== null && this.#ledger.journalClock.present() < rotatedAt + OLD_SECRET_MS;
    return old ? [current, this.#secret(webhookId, rotations - 1)] : [current];
  }

  async recordDelivered(webhookId: Uuid, sequence: number, { signal }: WaitOptions = {}): Promise<void> {
    const ledger = this.#usable;
    // Shares its write with whatever is being written, so that deliveries do not hold mints up.
    await ledger.writer.run(
      {
        weight: 1,
        keys: () => [],
        apply: (group) => {
          const record = this.#latestActive(webhookId);
          if (record === null || sequence <= record.delivered) return;
          const { webhookIndex } = record;
          ledger.record(group, { kind: "webhookDelivered", webhookIndex, sequence });
          this.#put(group, { ...record, delivered: sequence, failingSince: null, failure: null }, "quiet");
        },
      },
      signal,
    );
  }

  async recordFailing(webhookId: Uuid, failure: string, wait?: WaitOptions): Promise<void> {
    await this.#fail(webhookId, "webhookFailing", failure, wait);
  }

  async recordDisabled(webhookId: Uuid, failure: string, wait?: WaitOptions): Promise<void> {
    await this.#fail(webhookId, "webhookDisabled", failure, wait);
  }

  async #fail(
    webhookId: Uuid,
    kind: "webhookFailing" | "webhookDisabled",
    reason: string,
    { signal }: WaitOptions = {},
  ): Promise<void> {
    const failure = requireText("failure", reason, MAX_FAILURE);
    await this.#usable.writer.alone(async (group) => {
      const record = this.#latestActive(webhookId);
      if (record === null) return;
      const { webhookIndex, applicationIndex } = record;
      const { time } = this.#ledger.record(group, { kind, webhookIndex, failure });
      const failing = { ...record, failingSince: record.failingSince ?? time, failure };
      if (kind === "webhookFailing") {
        this.#put(group, failing, "quiet");
        return;
      }
      tell(this.#ledger, group, applicationIndex, time, { type: "webhook.disabled", webhookId, failure });
      this.#put(group, { ...failing, status: "disabled" });
    }, signal);
  }

  /** null once it was deleted or disabled: what was on its way then no longer counts. */
  #latestActive(webhookId: Uuid): WebhookRecord | null {
    const record = this.#ledger.webhooks.latest(this.#indexOf(webhookId));
    return record?.status === "active" ? record : null;
  }

  async #change(
    applicationId: Uuid,
    webhookId: Uuid,
    kind: "webhookDeleted" | "webhookEnabled",
    change: Partial<WebhookRecord>,
    { signal }: WaitOptions = {},
  ): Promise<WebhookRecord> {
    const ledger = this.#usable;
    return ledger.writer.alone(async (group) => {
      const { applicationIndex } = ledger.latestApplication(applicationId);
      const record = requireOwn(ledger.webhooks.latest(this.#indexOf(webhookId)), applicationIndex);
      ledger.record(group, { kind, webhookIndex: record.webhookIndex });
      return this.#put(group, { ...record, ...change });
    }, signal);
  }

  /** Writes a registration as it now is, and tells listeners unless it is only how far deliveries have come. */
  #put(group: Group, record: WebhookRecord, told: "told" | "quiet" = "told"): WebhookRecord {
    this.#ledger.putWebhook(group, record);
    const { webhookId } = record;
    if (told === "told") group.onDurable(() => this.#ledger.emit("webhook", { webhookId }));
    return record;
  }

  /** -1 for one that is not known. */
  #indexOf(webhookId: Uuid): number {
    return this.#ledger.webhookIndices.get(String(webhookId).toLowerCase()) ?? -1;
  }

  #issued(record: WebhookRecord, rotations = record.rotations): IssuedWebhook {
    return { webhook: this.#view(record), secret: this.#secret(record.webhookId, rotations) };
  }

  #view(record: WebhookRecord): Webhook {
    const { webhookId, applicationIndex, url, types, status, delivered, failingSince, failure, createdAt } = record;
    const application = this.#ledger.applications.latest(applicationIndex);
    if (application === undefined || status === "deleted") throw new MintmarkError("webhook_not_found");
    const { applicationId } = application;
    const wanted = types as readonly EventType[];
    return { webhookId, applicationId, url, types: wanted, status, delivered, failingSince, failure, createdAt };
  }

  /** HKDF of the store's own secret (RFC 5869): whoever has a store's files can sign, whoever has its journal alone cannot. */
  #secret(webhookId: Uuid, rotations: number): string {
    const purpose = `mintmark webhook ${webhookId} ${rotations}`;
    return `whsec_${Buffer.from(hkdfSync("sha256", this.#storeSecret, "", purpose, 32)).toString("base64")}`;
  }

  get #usable(): Ledger {
    return this.#context.ledger;
  }
}

/** What was registered under the same id, if it is what is asked for again. */
function requireSame(
  record: WebhookRecord,
  applicationIndex: number,
  url: string,
  types: readonly string[],
): WebhookRecord {
  const isSame =
    record.applicationIndex === applicationIndex &&
    record.status !== "deleted" &&
    record.url === url &&
    record.types.length === types.length &&
    record.types.every((type, i) => type === types[i]);
  if (!isSame) throw new MintmarkError("idempotency_key_reused");
  return record;
}

function requireOwn(record: WebhookRecord | undefined, applicationIndex: number): WebhookRecord {
  if (record?.applicationIndex !== applicationIndex || record.status === "deleted") {
    throw new MintmarkError("webhook_not_found");
  }
  return record;
}

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

/** What a webhook is registered with. */
export interface NewWebhook {
  /** Default: a new one. The same webhook under the same id again is the same registration, and counts once. */
  readonly webhookId?: Uuid;
  /** `https:`; in the sandbox `http:` too. Without credentials or a fragment, at most 2,000 characters. */
  readonly url: string;
  /** Default: all. */
  readonly types?: readonly EventType[];
}

/** How a secret is rotated so that a repeated call rotates once. */
export interface RotateOptions extends WaitOptions {
  /** Default: a new one. */
  readonly rotationId?: Uuid;
}

/** A webhook with the secret that its deliveries are signed with. */
export interface IssuedWebhook {
  readonly webhook: Webhook;
  /** `whsec_` and 32 bytes in base64, as Standard Webhooks has it. Shown once. */
  readonly secret: string;
}

/**
 * The webhooks of applications.
 *
 * @example
 * const { secret } = await engine.webhooks.create(applicationId, { url: "https://game.example/minted" });
 */
export interface Webhooks {
  /** Delivers what happens from now on. Throws `validation_failed`, `too_many_webhooks`, `idempotency_key_reused`. */
  create(applicationId: Uuid, webhook: NewWebhook, wait?: WaitOptions): Promise<IssuedWebhook>;
  /** Oldest first. */
  list(applicationId: Uuid, page?: PageOptions): List<Webhook>;
  /** Throws `webhook_not_found`, as do all that follow. */
  get(applicationId: Uuid, webhookId: Uuid): Promise<Webhook>;
  /** Nothing more is delivered to it. */
  delete(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<void>;
  /**
   * A new secret. Deliveries are signed with the one before as well for another day. The same `rotationId` again answers the same secret, and
   * for another webhook `idempotency_key_reused`.
   */
  rotateSecret(applicationId: Uuid, webhookId: Uuid, options?: RotateOptions): Promise<IssuedWebhook>;
  /** Takes up deliveries where they stopped, and tries at once. */
  enable(applicationId: Uuid, webhookId: Uuid, wait?: WaitOptions): Promise<Webhook>;
}

/** What delivers to the webhooks of all applications. */
export interface Deliveries {
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

const MAX_URL = 2_000;

/** The address in its canonical form. Where it leads is looked at when it is connected to. */
function requireUrl(environment: Environment, url: string): string {
  const parsed = typeof url === "string" && url.length <= MAX_URL && URL.canParse(url) ? new URL(url) : null;
  const allowed = environment === "live" ? ["https:"] : ["https:", "http:"];
  if (!parsed || !allowed.includes(parsed.protocol) || parsed.username || parsed.password || parsed.hash) {
    const schemes = allowed.map((scheme) => `${scheme}//`).join(" or ");
    throw invalid("/url", `Give an address with ${schemes}, without credentials or fragment.`);
  }
  return parsed.href;
}

/** The types, each once. */
function requireTypes(types: readonly string[]): string[] {
  const unknown = types.findIndex((type) => !EVENT_TYPES.has(type));
  if (unknown >= 0) throw invalid(`/types/${unknown}`, "No such type of event; docs/api.md lists them.");
  return [...new Set(types)];
}

function invalid(pointer: string, detail: string): MintmarkError {
  return new MintmarkError("validation_failed", detail, { issues: [{ pointer, code: "validation_failed", detail }] });
}
