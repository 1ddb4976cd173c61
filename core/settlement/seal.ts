import type { Engine } from "../engine.ts";
import { MODES, type Mode } from "../model.ts";

/** When an open batch is closed without being full. How full is full, by vaults and bytes of each mode, the engine's own limits say. */
export interface SealingPolicy {
  /** Milliseconds since its first mint, of both modes or of each; default 60 000. */
  readonly maxAgeMs?: number | Readonly<Record<Mode, number>>;
}

/** Seals the open batches that have become old enough. Returns how many. */
export async function sealDue(engine: Engine, { maxAgeMs = 60_000 }: SealingPolicy, now: number): Promise<number> {
  let sealed = 0;
  for (const mode of MODES) {
    const { vaultCount, timestamps } = engine.openBatch(mode);
    if (vaultCount === 0 || timestamps.open === undefined) continue;
    const allowed = typeof maxAgeMs === "number" ? maxAgeMs : maxAgeMs[mode];
    if (now - timestamps.open >= allowed && (await engine.seal(mode)) !== null) sealed++;
  }
  return sealed;
}
