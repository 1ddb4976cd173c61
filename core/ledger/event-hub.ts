import type { ApplicationEvent, Batch, EventType, Uuid } from "../model.ts";
import type { BatchEventType } from "../store/event-record.ts";

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
   * Emits an event, or what a function makes or reads of it, behind those that still wait for a
   * read. The function is called for listeners only. A failed read drops the event.
   */
  readonly emit = <K extends keyof EngineEvents>(
    type: K,
    event: EngineEvents[K] | (() => EngineEvents[K] | Promise<EngineEvents[K]>),
  ): void => {
    if (this.#heard(type).length === 0) return;
    const made = typeof event === "function" ? event() : event;
    if (!(made instanceof Promise) && this.#before === null) {
      this.#tell(type, made);
      return;
    }
    const telling = this.#tellLater(type, made, this.#before);
    this.#before = telling;
    void telling.finally(() => {
      if (this.#before === telling) this.#before = null;
    });
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

  /** The listeners of an event of the type. */
  #heard(type: keyof EngineEvents) {
    const all = OF_PROCESS.includes(type) ? [] : (this.#listeners.get("event") ?? []);
    return [...(this.#listeners.get(type) ?? []), ...all];
  }

  #tell<K extends keyof EngineEvents>(type: K, event: EngineEvents[K]): void {
    for (const { listener } of this.#heard(type)) {
      try {
        (listener as Listener<K>)(event);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}

/** The events that concern the process alone. */
const OF_PROCESS: readonly string[] = ["access", "batch", "webhook"];

/** An event of an application, as webhooks and streams tell it. */
interface Told<T extends EventType> {
  readonly applicationId: Uuid;
  readonly event: Extract<ApplicationEvent, { readonly type: T }>;
}

/**
 * Durable changes, told in the order of the journal: by each type of what webhooks and streams
 * tell, of all applications and with the same data. `event` has all of these types. `access`,
 * `batch` and `webhook` concern the process alone.
 */
export interface EngineEvents extends Readonly<{ [T in EventType]: Told<T> }> {
  readonly event: Told<EventType>;
  /**
   * A key was revoked, a sign-in ended, or an application suspended or resumed. null: the
   * operator's sign-in.
   */
  readonly access: { readonly applicationId: Uuid | null };
  /** A step of a batch, told once. Each of its applications has an event of this type besides. */
  readonly batch: { readonly type: BatchEventType; readonly batch: Batch };
  /** A webhook was created, changed, deleted, disabled or enabled. */
  readonly webhook: { readonly webhookId: Uuid; readonly applicationId: Uuid };
}
