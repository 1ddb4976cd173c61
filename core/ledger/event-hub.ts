import type { Batch, EventType, Uuid, Withdrawal } from "../model.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";

type Listener<K extends keyof EngineEvents> = (event: EngineEvents[K]) => void;

/** Tells listeners what has become durable. A listener that throws is reported as an unhandled rejection, and the others still hear. */
export class EventHub {
  readonly #listeners = new Map<keyof EngineEvents, Set<Listener<never>>>();
  /** The telling of what came before and has to be read first; null when there is nothing like it. */
  #before: Promise<void> | null = null;

  on<K extends keyof EngineEvents>(type: K, listener: Listener<K>): () => void {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners);
    // A fresh function, so that one listener added twice is called twice and stopped one by one.
    const own: Listener<K> = (event) => listener(event);
    listeners.add(own);
    return () => listeners.delete(own);
  }

  /**
   * Tells an event at once, or behind those that are still being read.
   *
   * @param event - or what reads it. When that fails the store has, and says so to everyone: the event is not told.
   */
  emit<K extends keyof EngineEvents>(type: K, event: EngineEvents[K] | (() => Promise<EngineEvents[K]>)): void {
    if (typeof event !== "function" && this.#before === null) this.#tell(type, event);
    else if (typeof event !== "function" || this.#listeners.has(type)) {
      const telling = this.#tellLater(type, typeof event === "function" ? event() : event, this.#before);
      this.#before = telling;
      void telling.finally(() => {
        if (this.#before === telling) this.#before = null;
      });
    }
  }

  /** Resolves when everything that was emitted has been told. */
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
    for (const listener of this.#listeners.get(type) ?? []) {
      try {
        (listener as Listener<K>)(event);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}

/** What happened, told after it is durable and in the order of the journal. */
export interface EngineEvents {
  readonly mint: { readonly applicationId: Uuid; readonly mintId: Uuid; readonly mints: number };
  readonly batchSealed: Batch;
  /** Slots became void: L1 refuses them. */
  readonly slotsVoided: { readonly batch: Batch; readonly slots: readonly VoidSlots[] };
  readonly batchSubmitted: Batch;
  readonly batchCommitted: Batch;
  readonly batchFinalized: Batch;
  /** A reorganisation took the batch back from settled to submitted. */
  readonly batchReverted: Batch;
  /** A key of the application was revoked, or the application was suspended or let in again. */
  readonly access: { readonly applicationId: Uuid };
  /** A webhook was made, deleted, disabled, enabled again, or got a new secret. */
  readonly webhook: { readonly webhookId: Uuid };
  /** A withdrawal was accepted or changed its status. */
  readonly withdrawal: {
    readonly applicationId: Uuid;
    readonly type: Extract<EventType, `withdrawal.${string}`>;
    readonly withdrawal: Withdrawal;
  };
}
