import type { ApplicationEvent, Batch, EventType, Uuid, Withdrawal } from "../model.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";

type Listener<K extends keyof EngineEvents> = (event: EngineEvents[K]) => void;

/**
 * Tells listeners of durable changes. One that throws becomes an unhandled rejection; the others
 * are still called.
 */
export class EventHub {
  readonly #listeners = new Map<keyof EngineEvents, Set<{ readonly listener: Listener<never> }>>();
  /** The earlier events that still wait for a read; null when none does. */
  #before: Promise<void> | null = null;

  on<K extends keyof EngineEvents>(types: K | readonly K[], listener: Listener<K>): () => void {
    // A new object, so that a listener that was added twice is called twice and removed one by one.
    const own = { listener };
    const added = [types].flat().map((type) => {
      const listeners = this.#listeners.get(type) ?? new Set();
      this.#listeners.set(type, listeners);
      return listeners.add(own);
    });
    return () => {
      for (const listeners of added) listeners.delete(own);
    };
  }

  /**
   * Emits an event, or what a function reads, behind those that still wait for a read. A failed
   * read drops it.
   */
  readonly emit = <K extends keyof EngineEvents>(
    type: K,
    event: EngineEvents[K] | (() => Promise<EngineEvents[K]>),
  ): void => {
    if (typeof event !== "function" && this.#before === null) this.#tell(type, event);
    else if (typeof event !== "function" || this.#listeners.has(type)) {
      const telling = this.#tellLater(
        type,
        typeof event === "function" ? event() : event,
        this.#before,
      );
      this.#before = telling;
      void telling.finally(() => {
        if (this.#before === telling) this.#before = null;
      });
    }
  };

  /** Resolves when every emitted event has been delivered. */
  async told(): Promise<void> {
    await this.#before;
  }

  async #tellLater<K extends keyof EngineEvents>(
    type: K,
    event: EngineEvents[K] | Promise<EngineEvents[K]>,
    before: Promise<void> | null,
  ): Promise<void> {
    const [read] = await Promise.allSettled([event, before]);
    if (read.status === "fulfilled") this.#tell(type, read.value);
  }

  #tell<K extends keyof EngineEvents>(type: K, event: EngineEvents[K]): void {
    for (const { listener } of this.#listeners.get(type) ?? []) {
      try {
        (listener as Listener<K>)(event);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}

/** A batch is told under the names that webhooks and streams have. */
type BatchEvents = { readonly [T in Extract<EventType, `batch.${string}`>]: Batch };
/** Everything that webhooks and streams tell of withdrawals. */
type WithdrawalEvents = {
  readonly [T in Extract<EventType, `withdrawal.${string}`>]: {
    readonly applicationId: Uuid;
    readonly type: T;
    /** Its current state. */
    readonly withdrawal: Withdrawal;
  };
};

/** Everything that webhooks and streams tell of orders. */
type OrderEvents = {
  readonly [T in Extract<EventType, `order.${string}`>]: {
    readonly type: T;
    readonly orderId: Uuid;
  };
};

/**
 * A durable change, told in the order of the journal. It has the name that webhooks and streams
 * have for it, and the engine's own record as its data. `event` has all types, with the data of
 * webhooks; `access` and `webhook` concern the process alone.
 */
export interface EngineEvents extends BatchEvents, WithdrawalEvents, OrderEvents {
  /** Everything that webhooks and streams tell, of all applications and with the same data. */
  readonly event: { readonly applicationId: Uuid; readonly event: ApplicationEvent };
  readonly "mint.accepted": {
    readonly applicationId: Uuid;
    readonly mintId: Uuid;
    readonly mints: number;
  };
  /** Slots became void because L1 refuses them. */
  readonly "mint.failed": { readonly batch: Batch; readonly slots: readonly VoidSlots[] };
  /**
   * A key was revoked, a sign-in ended, or an application suspended or resumed. null: the
   * operator's sign-in.
   */
  readonly access: { readonly applicationId: Uuid | null };
  /** A webhook was created, changed, deleted, disabled or enabled. */
  readonly webhook: { readonly webhookId: Uuid; readonly applicationId: Uuid };
}
