/** One try at a receiver, as its application sees it. */
export interface Attempt {
  readonly kind: "delivery" | "test" | "redelivery";
  /** Of the event; null for a test. */
  readonly sequence: number | null;
  /** When it began, ms since 1970. */
  readonly time: number;
  readonly durationMs: number;
  /** Of the receiver's answer; null when there was none. */
  readonly status: number | null;
  /** null when the receiver took it. */
  readonly failure: string | null;
}

/** Of one webhook. */
const KEPT = 50;
/** Webhooks whose attempts are kept: those tried last. */
const WEBHOOKS = 10_000;

/** The newest attempts at each webhook. In memory: each on disk would cost a write for every delivery. */
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
