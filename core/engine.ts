import type { Engine, EngineOptions } from "./engine-types.ts";

export type * from "./engine-types.ts";

/**
 * Opens the engine over a store, and makes the store when it is new.
 * Rejects with `store_locked`, `store_corrupt`, `store_mismatch` or `store_failed`.
 */
export declare function openEngine(options: EngineOptions): Promise<Engine>;
