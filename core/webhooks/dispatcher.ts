import { createHmac, randomUUID } from "node:crypto";
import { type Backoff, backoffDelay, pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import { type Events, eventJson } from "../events/event-log.ts";
import type { ApplicationEvent } from "../model.ts";
import type { WebhookReach } from "./address-policy.ts";
import { Deliverer, type Outcome } from "./delivery.ts";
import { type Deliveries, isWanted, type Webhook } from "./webhooks.ts";

/** One attempt at a delivery, as its application sees it. */
export interface Attempt {
  readonly kind: "delivery" | "test" | "redelivery";
  /** The event's sequence; null for a test. */
  readonly sequence: number | null;
  /** Start, in milliseconds since 1970. */
  readonly time: number;
  readonly durationMs: number;
  /** The status of the endpoint's answer; null without one. */
  readonly status: number | null;
  /** null for a success. */
  readonly failure: string | null;
}

/** Options of {@link WebhookDispatcher}. */
export interface DispatcherOptions {
  /** Waits between attempts. Default: 5 s, doubling up to 6 hours. */
  readonly backoff?: Backoff;
  /** A webhook that has failed for this long is disabled. Default: 3 days. */
  readonly giveUpAfterMs?: number;
  /** Longest time for one attempt. Default: 15 s. */
  readonly timeoutMs?: number;
  /**
   * Longest time until a delivery is recorded. A crash repeats deliveries without record. Default:
   * 250 ms.
   */
  readonly recordEveryMs?: number;
  /**
   * Allowed addresses; `public-and-loopback` is for a sandbox on one's own machine. Default: public
   * ones only.
   */
  readonly reach?: WebhookReach;
  /**
   * Called with errors of this process. Failures of endpoints are recorded with their webhooks.
   * Default: no call.
   */
  readonly onError?: (error: unknown) => void;
  /** Called after each attempt. Default: no call. */
  readonly onAttempt?: (attempt: Attempt) => void;
}

const DEFAULTS: Required<DispatcherOptions> = {
  backoff: { firstMs: 5_000, maxMs: 6 * 3_600_000 },
  giveUpAfterMs: 3 * 86_400_000,
  timeoutMs: 15_000,
  recordEveryMs: 250,
  reach: "public",
  onError: () => {},
  onAttempt: () => {},
};

/** Most kept attempts of one webhook. */
const KEPT = 50;
/** Most webhooks with kept attempts; the one tried longest ago is dropped first. */
const WEBHOOKS = 10_000;

/** The type of test deliveries. No event of an application has it. */
const TEST_TYPE = "webhook.test";

/**
 * Least attempts since the start before a webhook is disabled: about ten minutes with the default
 * waits. Otherwise a webhook that failed before the server went down would be disabled at the first
 * failure.
 */
const LEAST_TRIES = 8;

interface Running {
  /** The webhook when it was last changed; the progress of its deliveries may be further. */
  webhook: Webhook;
  readonly stop: AbortController;
  readonly done: Promise<void>;
  /** Aborts the wait after a failure. */
  wake: AbortController;
}

/** The parts of an engine that deliveries need. */
interface DeliveringEngine {
  readonly events: Events;
  readonly operator: { readonly webhooks: Deliveries };
}

/** A message to an endpoint: its `webhook-id` and its signed body. */
interface Message {
  readonly id: string;
  readonly body: string;
  readonly about: Pick<Attempt, "kind" | "sequence">;
}

/**
 * Delivers events to webhooks. Each webhook gets its events in order, one at a time, each at least
 * once. Webhooks run side by side. One dispatcher serves an engine. The engine records progress a
 * little later than the deliveries, so after a crash the last deliveries are repeated under the
 * same `webhook-id`.
 *
 * @example
 * const webhooks = new WebhookDispatcher(engine, { onError: console.error });
 * webhooks.start();
 * await webhooks.stop(); // before the engine is closed
 */
export class WebhookDispatcher {
  readonly #engine: DeliveringEngine;
  readonly #options: Required<DispatcherOptions>;
  readonly #deliverer: Deliverer;
  readonly #running = new Map<string, Running>();
  /** The ids of each application's running webhooks. */
  readonly #runningOf = new Map<string, Set<string>>();
  /**
   * The newest of each webhook, oldest first. In memory only: the disk would cost a write for each
   * delivery.
   */
  readonly #attempts = new Map<string, readonly Attempt[]>();
  /** Webhooks with a test or a redelivery in progress. */
  readonly #asked = new Set<string>();
  readonly #stopping = new AbortController();
  #unsubscribe: (() => void)[] = [];

  constructor(engine: DeliveringEngine, options: DispatcherOptions = {}) {
    this.#engine = engine;
    this.#options = { ...DEFAULTS, ...options };
    this.#deliverer = new Deliverer(this.#options.reach, this.#options.timeoutMs);
  }

  start(): void {
    this.#unsubscribe = [
      this.#engine.events.on("webhook", ({ webhookId, applicationId }) => {
        this.#adjust(applicationId);
        this.#running.get(webhookId)?.wake.abort();
      }),
      this.#engine.events.on("access", ({ applicationId }) => {
        if (applicationId !== null) this.#adjust(applicationId);
      }),
    ];
    for (const applicationId of this.#engine.operator.webhooks.applications())
      this.#adjust(applicationId);
  }

  /**
   * Ends all deliveries. Resolves when their progress is recorded. Tests and redeliveries reject
   * with `reason`.
   */
  async stop(reason: Error = new MintmarkError("engine_closed")): Promise<void> {
    this.#stopping.abort(reason);
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    for (const { stop } of this.#running.values()) stop.abort();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
    this.#deliverer[Symbol.dispose]();
  }

  /** The attempts at a webhook since the process started, newest first. */
  attempts(webhookId: string): readonly Attempt[] {
    return (this.#attempts.get(webhookId) ?? []).toReversed();
  }

  /**
   * Posts a test event now, also to a disabled webhook. Does not change the webhook. The message's
   * id has `testId`. Resolves with null, without a post, while another test or redelivery to the
   * webhook is in progress.
   */
  test(webhook: Webhook, testId: string = randomUUID()): Promise<Attempt | null> {
    const { webhookId } = webhook;
    const createdAt = new Date().toISOString();
    const body = JSON.stringify({ sequence: 0, type: TEST_TYPE, createdAt, data: { webhookId } });
    return this.#ask(webhook, {
      id: `test_${testId}`,
      body,
      about: { kind: "test", sequence: null },
    });
  }

  /** Posts an event again, under the same `webhook-id`. Resolves with null like {@link test}. */
  redeliver(webhook: Webhook, event: ApplicationEvent): Promise<Attempt | null> {
    return this.#ask(webhook, messageOf(webhook, event, "redelivery"));
  }

  /**
   * Posts one message at a time to each webhook, so nobody floods an endpoint through this process.
   */
  async #ask(webhook: Webhook, message: Message): Promise<Attempt | null> {
    const { webhookId } = webhook;
    if (this.#asked.has(webhookId)) return null;
    this.#asked.add(webhookId);
    try {
      return (await this.#post(webhook, message, this.#stopping.signal)).attempt;
    } finally {
      this.#asked.delete(webhookId);
    }
  }

  /** Starts an application's new webhooks, and stops its removed or disabled ones. */
  #adjust(applicationId: string): void {
    const deliverable = this.#engine.operator.webhooks.deliverable(applicationId);
    const wanted = new Map(deliverable.map((webhook) => [webhook.webhookId, webhook]));
    for (const webhookId of this.#runningOf.get(applicationId) ?? [])
      if (!wanted.has(webhookId)) this.#running.get(webhookId)?.stop.abort();
    for (const [webhookId, webhook] of wanted) {
      const running = this.#running.get(webhookId);
      if (running === undefined) this.#run(webhook);
      else running.webhook = webhook;
    }
  }

  #run(webhook: Webhook): void {
    const { webhookId, applicationId } = webhook;
    const stop = new AbortController();
    const running = { webhook, stop, wake: new AbortController() };
    const done = this.#deliverAll(running).catch((error) => {
      if (!stop.signal.aborted) this.#options.onError(error);
    });
    this.#running.set(webhookId, Object.assign(running, { done }));
    const own = this.#runningOf.get(applicationId) ?? new Set();
    this.#runningOf.set(applicationId, own.add(webhookId));
    void done.then(() => {
      this.#running.delete(webhookId);
      own.delete(webhookId);
      if (own.size === 0) this.#runningOf.delete(applicationId);
      // Another subscriber may want it again by now.
      if (this.#unsubscribe.length > 0 && stop.signal.aborted) this.#adjust(applicationId);
    });
  }

  async #deliverAll(running: Omit<Running, "done">): Promise<void> {
    const { signal } = running.stop;
    const { webhookId, applicationId, delivered: after } = running.webhook;
    const { webhooks } = this.#engine.operator;
    const progress = progressOf(
      (sequence) => webhooks.recordDelivered(webhookId, sequence),
      this.#options,
    );
    let { failingSince } = running.webhook;
    try {
      for await (const event of this.#engine.events.stream(applicationId, {
        after,
        follow: true,
        signal,
      })) {
        if (isDue(running, event)) {
          if (!(await this.#deliver(running, event, failingSince, progress))) return;
          failingSince = null;
        }
        progress.reached(event.sequence);
      }
    } finally {
      await progress.end();
    }
  }

  /**
   * Attempts until the endpoint accepts the event, or somebody skips it or its type; false when the
   * webhook was disabled instead.
   */
  async #deliver(
    running: Omit<Running, "done">,
    event: ApplicationEvent,
    since: number | null,
    progress: ReturnType<typeof progressOf>,
  ): Promise<boolean> {
    const { webhook, stop } = running;
    const { signal } = stop;
    const { backoff, giveUpAfterMs } = this.#options;
    let failingSince = since;
    let recorded = webhook.failingSince === since ? webhook.failure : null;
    for (let attempt = 1; ; attempt++) {
      const { outcome } = await this.#post(webhook, messageOf(webhook, event, "delivery"), signal);
      if (outcome.kind === "delivered" || !isDue(running, event)) return true;
      const { webhooks } = this.#engine.operator;
      await progress.flush();
      const tooLong = failingSince !== null && Date.now() - failingSince >= giveUpAfterMs;
      if (outcome.kind === "gone" || (tooLong && attempt >= LEAST_TRIES)) {
        await webhooks.recordDisabled(webhook.webhookId, outcome.failure);
        return false;
      }
      // Each record is an entry in the journal, so an unchanged failure is not recorded again.
      if (outcome.failure !== recorded)
        await webhooks.recordFailing(webhook.webhookId, outcome.failure);
      recorded = outcome.failure;
      failingSince ??= Date.now();
      // Longer if the endpoint asks, up to the longest wait.
      const asked = Math.min(outcome.retryAfterMs ?? 0, backoff.maxMs);
      // Somebody who changes the webhook ends the wait.
      running.wake = new AbortController();
      const ended = AbortSignal.any([signal, running.wake.signal]);
      const ms = Math.max(backoffDelay(backoff, attempt), asked);
      await pause(ms, ended).catch(() => signal.throwIfAborted());
      if (!isDue(running, event)) return true;
    }
  }

  async #post({ webhookId, url }: Webhook, { id, body, about }: Message, signal: AbortSignal) {
    const time = Date.now();
    const secrets = this.#engine.operator.webhooks.secrets(webhookId);
    const headers = {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": "mintmark",
      ...signatureHeaders(id, Math.floor(time / 1000), body, secrets),
    };
    const started = performance.now();
    const outcome: Outcome = await this.#deliverer.post(url, headers, body, signal);
    const durationMs = Math.round(performance.now() - started);
    const failure = outcome.kind === "delivered" ? null : outcome.failure;
    const attempt: Attempt = { ...about, time, durationMs, status: outcome.status, failure };
    const known = this.#attempts.get(webhookId) ?? [];
    // Last in the map, whose first has been tried longest ago.
    this.#attempts.delete(webhookId);
    this.#attempts.set(webhookId, [...known.slice(1 - KEPT), attempt]);
    const [oldest] = this.#attempts.keys();
    if (this.#attempts.size > WEBHOOKS && oldest !== undefined) this.#attempts.delete(oldest);
    this.#options.onAttempt(attempt);
    return { outcome, attempt };
  }
}

function isDue(
  { webhook }: Pick<Running, "webhook">,
  { sequence, type }: ApplicationEvent,
): boolean {
  return sequence > webhook.delivered && isWanted(webhook, type);
}

export function messageOf(
  { applicationId }: Pick<Webhook, "applicationId">,
  event: ApplicationEvent,
  kind: Attempt["kind"],
): Message {
  const { sequence } = event;
  return {
    id: `evt_${applicationId}_${sequence}`,
    body: JSON.stringify(eventJson(event)),
    about: { kind, sequence },
  };
}

/**
 * Records a webhook's progress from time to time, because each record is an entry in the journal.
 */
function progressOf(
  record: (sequence: number) => Promise<void>,
  { recordEveryMs, onError }: Pick<Required<DispatcherOptions>, "recordEveryMs" | "onError">,
) {
  let newest = 0;
  let timer: NodeJS.Timeout | null = null;
  const flush = async (): Promise<void> => {
    if (timer === null) return;
    clearTimeout(timer);
    timer = null;
    await record(newest);
  };
  /**
   * The last record. If it fails, the deliveries since the previous one are repeated under the same
   * ids.
   */
  const end = (): Promise<void> => flush().catch(onError);
  const reached = (sequence: number): void => {
    newest = sequence;
    timer ??= setTimeout(() => void end(), recordEveryMs);
  };
  return { reached, flush, end };
}

/**
 * The header fields of a delivery by Standard Webhooks. Each secret makes a `v1` signature: the
 * HMAC-SHA256 of `<id>.<timestamp>.<body>`. Source:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 *
 * @param secrets - `whsec_` and the key in base64
 * @param seconds - since 1970; endpoints refuse times that are minutes away from their own clock
 */
export function signatureHeaders(
  id: string,
  seconds: number,
  body: string,
  secrets: readonly string[],
) {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": signatures.join(" "),
  };
}
