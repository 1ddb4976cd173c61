import type { Uuid } from "../../model.ts";
import { rotationRecord, webhookRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { factsOf, type Handlers, Kept, Part } from "./reference-records.ts";

/** The part of the reference for webhooks. */
export class ReferenceWebhooks extends Part {
  readonly #webhooks = new Kept(this.out, "webhook", keys.webhookKey, webhookRecord);

  readonly on = {
    webhookCreated: (entry) => {
      const fresh = { rotations: 0, rotatedAt: null, failingSince: null, failure: null } as const;
      const record = { ...factsOf(entry), ...fresh, status: "active", createdAt: this.out.time } as const;
      this.#webhooks.set(this.#webhooks.size, record);
    },
    webhookDeleted: ({ webhookIndex }) => this.#webhooks.change(webhookIndex, { status: "deleted" }),
    webhookSecretRotated: ({ webhookIndex }) => this.#rotate(webhookIndex),
    webhookSecretRotatedOnce: ({ webhookIndex, rotationId }) => this.#rotate(webhookIndex, rotationId),
    webhookEnabled: ({ webhookIndex }) =>
      this.#webhooks.change(webhookIndex, { status: "active", failingSince: null, failure: null }),
    webhookDelivered: ({ webhookIndex, sequence: delivered }) =>
      this.#webhooks.change(webhookIndex, { delivered, failingSince: null, failure: null }),
    webhookFailing: ({ webhookIndex, failure }) =>
      this.#webhooks.change(webhookIndex, { failingSince: this.#failingSince(webhookIndex), failure }),
    webhookDisabled: ({ webhookIndex, failure }) => {
      const failingSince = this.#failingSince(webhookIndex);
      this.#webhooks.change(webhookIndex, { status: "disabled", failingSince, failure });
      const { applicationIndex = 0, webhookId = "" } = this.#webhooks.get(webhookIndex) ?? {};
      this.out.tell(applicationIndex, { type: "webhook.disabled", webhookId, failure });
    },
  } satisfies Handlers;

  finish(): void {
    this.#webhooks.finish();
  }

  #rotate(webhookIndex: number, rotationId?: Uuid): void {
    const { applicationIndex = 0, rotations: before = 0 } = this.#webhooks.get(webhookIndex) ?? {};
    const rotations = before + 1;
    this.#webhooks.change(webhookIndex, { rotations, rotatedAt: this.out.time });
    if (rotationId === undefined) return;
    const key = keys.rotationKey(applicationIndex, rotationId);
    this.out.put(key, rotationRecord, { webhookIndex, rotations }, `rotation ${rotationId}`);
  }

  #failingSince(webhookIndex: number): number {
    return this.#webhooks.get(webhookIndex)?.failingSince ?? this.out.time;
  }
}
