import type { Uuid } from "../../model.ts";
import type { Entry, EntryOf } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import { rotationRecord, type WebhookRecord, webhookRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { ReferenceEvents } from "./reference-events.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

export class ReferenceWebhooks {
  readonly #told: ReferenceEvents;
  readonly #webhooks: WebhookRecord[] = [];

  constructor(told: ReferenceEvents) {
    this.#told = told;
  }

  apply(entry: Entry, time: number): Expected[] {
    switch (entry.kind) {
      case "webhookCreated":
        this.#create(entry, time);
        return [];
      case "webhookDeleted":
        return this.#change(entry, { status: "deleted" });
      case "webhookSecretRotated":
        return this.#rotate(entry, time);
      case "webhookSecretRotatedOnce":
        return this.#rotate(entry, time, entry.rotationId);
      case "webhookEnabled":
        return this.#change(entry, { status: "active", failingSince: null, failure: null });
      case "webhookDelivered":
        return this.#change(entry, { delivered: entry.sequence, failingSince: null, failure: null });
      case "webhookFailing":
        return this.#change(entry, { failingSince: this.#failingSince(entry, time), failure: entry.failure });
      case "webhookDisabled": {
        const { webhookIndex, failure } = entry;
        this.#change(entry, { status: "disabled", failingSince: this.#failingSince(entry, time), failure });
        const { applicationIndex, webhookId } = this.#webhooks[webhookIndex] ?? { applicationIndex: 0, webhookId: "" };
        return [this.#told.tell(applicationIndex, time, { type: "webhook.disabled", webhookId, failure })];
      }
      default:
        return [];
    }
  }

  finish(): Expected[] {
    return this.#webhooks.map((record, i) =>
      expectedRecord(keys.webhookKey(i), encodeRecord(webhookRecord, record), `webhook ${record.webhookId}`),
    );
  }

  #create({ kind: _, ...facts }: EntryOf<"webhookCreated">, time: number): void {
    const fresh = { rotations: 0, rotatedAt: null, failingSince: null, failure: null };
    this.#webhooks.push({ ...facts, ...fresh, status: "active", createdAt: time });
  }

  #rotate({ webhookIndex }: { readonly webhookIndex: number }, time: number, rotationId?: Uuid): Expected[] {
    const { applicationIndex = 0, rotations: before = 0 } = this.#webhooks[webhookIndex] ?? {};
    const rotations = before + 1;
    this.#change({ webhookIndex }, { rotations, rotatedAt: time });
    if (rotationId === undefined) return [];
    const record = encodeRecord(rotationRecord, { webhookIndex, rotations });
    return [expectedRecord(keys.rotationKey(applicationIndex, rotationId), record, `rotation ${rotationId}`)];
  }

  #failingSince({ webhookIndex }: { readonly webhookIndex: number }, time: number): number {
    return this.#webhooks[webhookIndex]?.failingSince ?? time;
  }

  #change({ webhookIndex }: { readonly webhookIndex: number }, change: Partial<WebhookRecord>): Expected[] {
    const known = this.#webhooks[webhookIndex];
    if (known !== undefined) this.#webhooks[webhookIndex] = { ...known, ...change };
    return [];
  }
}
