import { batches } from "./engine/batches.ts";
import { EngineContext } from "./engine/context.ts";
import { holdings } from "./engine/holdings.ts";
import { minting } from "./engine/minting.ts";
import { requireEnvironment } from "./engine/requirements.ts";
import { settlementRecord } from "./engine/settlement.ts";
import { tenants } from "./engine/tenants.ts";
import type { Engine, EngineOptions } from "./engine-types.ts";
import { applicationEvents } from "./events/event-log.ts";
import { LedgerWebhooks } from "./events/webhooks.ts";
import { Cursors } from "./ledger/cursor.ts";
import { EventHub } from "./ledger/event-hub.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { readLimits } from "./ledger/limits.ts";
import { canonicalSettlement, openLedger } from "./opening/opening.ts";
import { verifyStore } from "./opening/verify.ts";

export type * from "./batch-types.ts";
export type * from "./engine-types.ts";
export type * from "./event-types.ts";
export type * from "./holding-types.ts";
export type * from "./list-types.ts";
export type * from "./mint-types.ts";
export type * from "./proof-types.ts";
export type * from "./settlement-types.ts";
export type * from "./tenant-types.ts";
export type * from "./wait-types.ts";
export type * from "./webhook-types.ts";

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
    verify: async (how = {}) => verifyStore(context.ledger, how),
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
