import { type Batches, batches, type Proofs } from "./engine/batches.ts";
import { EngineContext, requireEnvironment } from "./engine/context.ts";
import { type Holdings, holdings } from "./engine/holdings.ts";
import { type Minting, minting } from "./engine/minting.ts";
import { type SettlementRecord, settlementRecord } from "./engine/settlement.ts";
import { type Tenants, tenants } from "./engine/tenants.ts";
import { applicationEvents, type EventOptions } from "./events/event-log.ts";
import { LedgerWebhooks, type Webhooks } from "./events/webhooks.ts";
import { Cursors } from "./ledger/cursor.ts";
import { type EngineEvents, EventHub } from "./ledger/event-hub.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { type EngineOptions, readLimits } from "./ledger/options.ts";
import type { ApplicationEvent, Environment, Limits, Uuid } from "./model.ts";
import { canonicalSettlement, openLedger } from "./opening/opening.ts";
import type { Settlement } from "./ports.ts";
import { type VerifyOptions, type VerifyReport, verifyStore } from "./verify/verify.ts";

/**
 * Opens the engine over a store. With `createIfMissing` it creates the store where there is none.
 *
 * @throws MintmarkError `store_missing`, `store_locked`, `store_corrupt`, `store_mismatch`, `store_failed`, or `validation_failed` for bad options
 * @example
 * await using engine = await openEngine({ store: "./data", createIfMissing: true, environment: "sandbox", settlement });
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const limits = readLimits(options.limits);
  requireEnvironment(options.environment);
  const settlement = canonicalSettlement(options.settlement);
  const events = new EventHub();
  const { ledger, secret } = await openLedger({ ...options, settlement }, limits, (type, event) =>
    events.emit(type, event),
  );
  const context = new EngineContext(ledger, new Cursors(secret));
  const close = closing(ledger, events);
  return {
    settlement,
    environment: ledger.environment,
    limits,
    ...tenants(context),
    ...minting(context),
    ...holdings(context),
    ...batches(context),
    ...settlementRecord(context),
    webhooks: new LedgerWebhooks(ledger, secret),
    applicationEvents: (applicationId, told = {}) => applicationEvents(context.ledger, applicationId, told),
    on: (type, listener) => events.on(type, listener),
    verify: async (how = {}) => verifyStore(context.ledger.store, settlement, how),
    ended: ledger.writer.ended,
    clockFault: () => context.ledger.journalClock.fault(context.ledger.head.time),
    reachedTime: () => context.ledger.journalClock.reached(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Finishes what is queued, tells of it, and closes the store, once however often it is called. */
function closing(ledger: Ledger, events: EventHub): () => Promise<void> {
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await ledger.writer.close();
    await events.told();
    await ledger.sealingThread.close();
    await ledger.store.close();
  };
  return () => {
    closed ??= close();
    return closed;
  };
}

/**
 * The minting engine over one store. Every method that changes something resolves when the change is on disk; reads see only what is
 * on disk. Every method rejects with `MintmarkError`; after a failed write each one rejects with `store_failed`, after `close` with
 * `engine_closed`.
 */
export interface Engine extends AsyncDisposable, Tenants, Minting, Holdings, Batches, Proofs, SettlementRecord {
  readonly settlement: Settlement;
  readonly environment: Environment;
  readonly limits: Limits;
  /** Finishes what is queued, then closes the store. Idempotent. */
  close(): Promise<void>;
  /** Aborted once nothing is taken any more: by `close`, or with the error of the store that has failed. */
  readonly ended: AbortSignal;
  /** What is wrong with the system's clock and what to do; null when it fits the journal. */
  clockFault(): string | null;
  /**
   * A time that has certainly been reached, in ms since 1970, however wrong the system's clock is. It stands behind the clock by the
   * time for which nothing ran. What must not expire too early is held against it.
   */
  reachedTime(): number;

  // Events and integrity.
  readonly webhooks: Webhooks;
  /**
   * What an application is told, in order, without gap or duplicate, however often the engine was closed or killed since. Throws
   * `application_not_found`, and `validation_failed` for an `after` beyond the newest event. One who waits with `follow` is ended by
   * `signal` or by closing the engine; until its next event nothing else ends it.
   */
  applicationEvents(applicationId: Uuid, options?: EventOptions): AsyncGenerator<ApplicationEvent, void, void>;
  /**
   * Calls `listener` after each such thing is durable; returns the function that stops it. What a listener throws does
   * not reach the engine: it is an unhandled rejection, which Node ends the process for unless it is listened to.
   */
  on<K extends keyof EngineEvents>(type: K, listener: (event: EngineEvents[K]) => void): () => void;
  /** Derives every record from the journal by a second implementation and compares it; finds any flipped byte. */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
}
