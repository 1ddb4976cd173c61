import { MODES, type Mode } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { Clock } from "../ports.ts";

/** When an open batch is closed without being full. How full is full, by vaults and bytes of each mode, the engine's own limits say. */
export interface SealingPolicy {
  /** Milliseconds since its first mint, of both modes or of each; default 60 000. */
  readonly maxAgeMs?: number | Readonly<Record<Mode, number>>;
}

/**
 * Seals the open batches that have become old enough: by the time of their first mint, or since they were first seen here. A clock that
 * is behind the journal says nothing of the first.
 */
export class Sealing {
  readonly #engine: SettlementPort;
  readonly #policy: SealingPolicy;
  readonly #clock: Clock;
  readonly #monotonic: Clock;
  readonly #seen = new Map<Mode, { readonly batchNumber: number; readonly at: number }>();

  /** @param monotonic - milliseconds of any origin that only grow */
  constructor(engine: SettlementPort, policy: SealingPolicy, clock: Clock, monotonic: Clock = () => performance.now()) {
    this.#engine = engine;
    this.#policy = policy;
    this.#clock = clock;
    this.#monotonic = monotonic;
  }

  /** Returns how many batches it has sealed. */
  async sealDue(): Promise<number> {
    const { maxAgeMs = 60_000 } = this.#policy;
    let sealed = 0;
    for (const mode of MODES) {
      const { batchNumber, vaultCount, timestamps } = this.#engine.batches.getOpen(mode);
      if (vaultCount === 0 || timestamps.open === undefined) continue;
      const now = this.#monotonic();
      const known = this.#seen.get(mode);
      const seen = known?.batchNumber === batchNumber ? known : { batchNumber, at: now };
      this.#seen.set(mode, seen);
      const age = Math.max(this.#clock() - timestamps.open, now - seen.at);
      const allowed = typeof maxAgeMs === "number" ? maxAgeMs : maxAgeMs[mode];
      if (age >= allowed && (await this.#engine.operator.seal(mode)) !== null) sealed++;
    }
    return sealed;
  }
}
