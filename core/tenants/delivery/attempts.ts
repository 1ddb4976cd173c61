/** One attempt at a delivery, as its application sees it. */
export interface Attempt {
  readonly kind: "delivery" | "test" | "redelivery";
  /** The event's sequence; null for a test. */
  readonly sequence: number | null;
  /** Start, in milliseconds since 1970. */
  readonly time: number;
  readonly durationMs: number;
  /** The status of the receiver's answer; null without one. */
  readonly status: number | null;
  /** null for a success. */
  readonly failure: string | null;
}

/** Most kept attempts of one webhook. */
const KEPT = 50;
/** Most webhooks with kept attempts; the one tried longest ago is dropped first. */
const WEBHOOKS = 10_000;

/** The newest attempts at each webhook. In memory only, because the disk would cost a write for each delivery. */
export class Attempts {
  readonly #byWebhook = new Map<string, Attempt[]>();

  add(webhookId: string, attempt: Attempt): void {
    const known = this.#byWebhook.get(webhookId) ?? [];
    this.#byWebhook.delete(webhookId);
    this.#byWebhook.set(webhookId, [...known.slice(1 - KEPT), attempt]);
    const [oldest] = this.#byWebhook.keys();
    if (this.#byWebhook.size > WEBHOOKS && oldest !== undefined) this.#byWebhook.delete(oldest);
  }

  /** Newest first. */
  of(webhookId: string): readonly Attempt[] {
    return (this.#byWebhook.get(webhookId) ?? []).toReversed();
  }
}
