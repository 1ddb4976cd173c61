import type { EngineEvents } from "../../engine-types.ts";

type Listener<K extends keyof EngineEvents> = (event: EngineEvents[K]) => void;

/** Tells listeners what has become durable. A listener that throws is reported as an unhandled rejection, and the others still hear. */
export class EventHub {
  readonly #listeners = new Map<keyof EngineEvents, Set<Listener<never>>>();

  on<K extends keyof EngineEvents>(type: K, listener: Listener<K>): () => void {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners);
    // A fresh function, so that one listener added twice is called twice and stopped one by one.
    const own: Listener<K> = (event) => listener(event);
    listeners.add(own);
    return () => listeners.delete(own);
  }

  emit<K extends keyof EngineEvents>(type: K, event: EngineEvents[K]): void {
    for (const listener of this.#listeners.get(type) ?? []) {
      try {
        (listener as Listener<K>)(event);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}
