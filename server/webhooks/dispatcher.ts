import {
  type ApplicationEvent,
  type Backoff,
  backoffDelay,
  type Engine,
  pause,
  type Webhook,
} from "../../core/index.ts";
import { eventToWire } from "../event-wire.ts";
import type { Reach } from "./address-policy.ts";
import { Deliverer, type Outcome } from "./delivery.ts";
import { signatureHeaders } from "./signature.ts";

export interface DispatcherOptions {
  /** Waits between attempts. Default: 5 s, doubling up to 6 hours. */
  readonly backoff?: Backoff;
  /** A webhook that has failed for this long is disabled. Default: 3 days. */
  readonly giveUpAfterMs?: number;
  /** Longest time for one attempt. Default: 15 s. */
  readonly timeoutMs?: number;
  /** How long a delivery may be on disk nowhere: what a crash repeats. Default: 250 ms. */
  readonly recordEveryMs?: number;
  /** Where webhooks may lead; `public-and-loopback` is for the sandbox on one's own machine. Default: public addresses only. */
  readonly reach?: Reach;
  /** Told of what went wrong here; receivers' failures are recorded with their webhooks. Default: nobody. */
  readonly onError?: (error: unknown) => void;
}

const DEFAULTS: Required<DispatcherOptions> = {
  backoff: { firstMs: 5_000, maxMs: 6 * 3_600_000 },
  giveUpAfterMs: 3 * 86_400_000,
  timeoutMs: 15_000,
  recordEveryMs: 250,
  reach: "public",
  onError: () => {},
};

/** Tries since the start before giving up: for a webhook that was failing when the server went down, ten minutes at the default waits. */
const LEAST_TRIES = 8;

/** Milliseconds until the next try: as a busy receiver asks, but no sooner than without it and within the longest wait. */
export function waitBefore(backoff: Backoff, attempt: number, retryAfterMs = 0): number {
  return Math.max(backoffDelay(backoff, attempt), Math.min(retryAfterMs, backoff.maxMs));
}

interface Running {
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/**
 * Delivers events to webhooks: each webhook's in order, one at a time, at least once; webhooks beside each other. One dispatcher serves an
 * engine. How far it has come is recorded in the engine a little later than it happens, so after a crash the last deliveries are repeated
 * under the same `webhook-id`.
 */
export class WebhookDispatcher {
  readonly #engine: Engine;
  readonly #options: Required<DispatcherOptions>;
  readonly #deliverer: Deliverer;
  readonly #running = new Map<string, Running>();
  #deaf: (() => void)[] = [];

  constructor(engine: Engine, options: DispatcherOptions = {}) {
    this.#engine = engine;
    this.#options = { ...DEFAULTS, ...options };
    this.#deliverer = new Deliverer(this.#options.reach, this.#options.timeoutMs);
  }

  start(): void {
    const adjust = (): void => this.#adjust();
    this.#deaf = [this.#engine.on("webhook", adjust), this.#engine.on("access", adjust)];
    this.#adjust();
  }

  /** Resolves when nothing is on its way any more and what was delivered is recorded. */
  async stop(): Promise<void> {
    for (const deaf of this.#deaf.splice(0)) deaf();
    for (const { stop } of this.#running.values()) stop.abort();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
    this.#deliverer[Symbol.dispose]();
  }

  /** Starts what is to run and does not, and stops what runs and is not to. */
  #adjust(): void {
    const wanted = new Map(this.#engine.webhooks.deliverable().map((webhook) => [webhook.webhookId, webhook]));
    for (const [webhookId, { stop }] of this.#running) if (!wanted.has(webhookId)) stop.abort();
    for (const [webhookId, webhook] of wanted) if (!this.#running.has(webhookId)) this.#run(webhook);
  }

  #run(webhook: Webhook): void {
    const stop = new AbortController();
    const done = this.#deliverAll(webhook, stop.signal).catch((error) => {
      if (!stop.signal.aborted) this.#options.onError(error);
    });
    this.#running.set(webhook.webhookId, { stop, done });
    void done.then(() => {
      this.#running.delete(webhook.webhookId);
      // It may have been wanted again while it came to its end.
      if (this.#deaf.length > 0 && stop.signal.aborted) this.#adjust();
    });
  }

  async #deliverAll(webhook: Webhook, signal: AbortSignal): Promise<void> {
    const { webhookId, applicationId, types, delivered: after } = webhook;
    const progress = new Progress(this.#engine, webhookId, this.#options.recordEveryMs, this.#options.onError);
    let { failingSince } = webhook;
    try {
      for await (const event of this.#engine.applicationEvents(applicationId, { after, follow: true, signal })) {
        if (types.length === 0 || types.includes(event.type)) {
          if (!(await this.#deliver(webhook, event, failingSince, progress, signal))) return;
          failingSince = null;
        }
        progress.reached(event.sequence);
      }
    } finally {
      await progress.end();
    }
  }

  /** Tries until the receiver takes the event; false when the webhook was disabled instead. */
  async #deliver(
    webhook: Webhook,
    event: ApplicationEvent,
    since: number | null,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { backoff, giveUpAfterMs } = this.#options;
    let failingSince = since;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(webhook, event, signal);
      if (outcome.kind === "delivered") return true;
      const { webhooks } = this.#engine;
      await progress.flush();
      const tooLong = failingSince !== null && Date.now() - failingSince >= giveUpAfterMs;
      if (outcome.kind === "gone" || (tooLong && attempt >= LEAST_TRIES)) {
        await webhooks.recordDisabled(webhook.webhookId, outcome.failure);
        return false;
      }
      if (failingSince === null) await webhooks.recordFailing(webhook.webhookId, outcome.failure);
      failingSince ??= Date.now();
      await pause(waitBefore(backoff, attempt, outcome.retryAfterMs), signal);
    }
  }

  #attempt({ webhookId, applicationId, url }: Webhook, event: ApplicationEvent, signal: AbortSignal): Promise<Outcome> {
    const body = JSON.stringify(eventToWire(event));
    const secrets = this.#engine.webhooks.secrets(webhookId);
    const id = `evt_${applicationId}_${event.sequence}`;
    const signed = signatureHeaders(id, Math.floor(Date.now() / 1000), body, secrets);
    const length = String(Buffer.byteLength(body));
    const headers = {
      "content-type": "application/json",
      "content-length": length,
      "user-agent": "mintmark",
      ...signed,
    };
    return this.#deliverer.post(url, headers, body, signal);
  }
}

/** Records how far a webhook has come, now and then: each time is an entry in the journal. */
class Progress {
  readonly #engine: Engine;
  readonly #webhookId: string;
  readonly #everyMs: number;
  readonly #onError: (error: unknown) => void;
  #reached = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(engine: Engine, webhookId: string, everyMs: number, onError: (error: unknown) => void) {
    this.#engine = engine;
    this.#webhookId = webhookId;
    this.#everyMs = everyMs;
    this.#onError = onError;
  }

  reached(sequence: number): void {
    this.#reached = sequence;
    this.#timer ??= setTimeout(() => void this.end(), this.#everyMs);
  }

  async flush(): Promise<void> {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    await this.#engine.webhooks.recordDelivered(this.#webhookId, this.#reached);
  }

  /** The last record: when it fails the deliveries since the one before are repeated, which receivers tell by their ids. */
  async end(): Promise<void> {
    await this.flush().catch(this.#onError);
  }
}
