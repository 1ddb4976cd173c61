import type { Engine } from "../engine.ts";
import { MODES } from "../model.ts";

/** When an open batch is closed without being full. */
export interface SealingPolicy {
  /** Milliseconds since its first mint; default 60 000. */
  readonly maxAgeMs?: number;
  /** Vaults; default: only the engine's own limits. */
  readonly maxVaults?: number;
}

/** Seals the open batches that have become old or large enough. Returns how many. */
export async function sealDue(engine: Engine, policy: SealingPolicy, now: number): Promise<number> {
  const { maxAgeMs = 60_000, maxVaults = Number.POSITIVE_INFINITY } = policy;
  let sealed = 0;
  for (const mode of MODES) {
    const { vaultCount, timestamps } = engine.openBatch(mode);
    if (vaultCount === 0) continue;
    const isOld = timestamps.open !== undefined && now - timestamps.open >= maxAgeMs;
    if ((isOld || vaultCount >= maxVaults) && (await engine.seal(mode)) !== null) sealed++;
  }
  return sealed;
}
