import { MODES, type Mode } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { Clock } from "../ports.ts";

/** When to close an open batch that is not full. The engine's limits define full. */
export interface SealingPolicy {
  /** Milliseconds since its first mint, for both modes or for each; default 60 000. */
  readonly maxAgeMs?: number | Readonly<Record<Mode, number>>;
}

/**
 * Seals open batches that are old enough, by the time of their first mint or since this process first saw them. A clock
 * behind the journal makes the first useless.
 */
export class Sealing {
  readonly #engine: SettlementPort;
  readonly #policy: SealingPolicy;
  readonly #clock: Clock;
  readonly #monotonic: Clock;
  readonly #seen = new Map<Mode, { readonly batchNumber: number; readonly at: number }>();

  /** @param monotonic - a monotonic clock in ms */
  constructor(engine: SettlementPort, policy: SealingPolicy, clock: Clock, monotonic: Clock = () => performance.now()) {
    this.#engine = engine;
    this.#policy = policy;
    this.#clock = clock;
    this.#monotonic = monotonic;
  }

  /** Returns the number of sealed batches. */
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
