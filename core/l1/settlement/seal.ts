import { MODES, type Mode } from "../../model.ts";
import type { SettlementPort } from "../../operator.ts";
import type { Clock } from "../../ports.ts";

/** When to close an open batch that is not full. The engine's limits define full. */
export interface SealingPolicy {
  /** Milliseconds since its first mint, for both modes or for each; default 60 000. */
  readonly maxAgeMs?: number | Readonly<Record<Mode, number>>;
}

/** Most batches of transfers that one pass seals. */
const MOST_TRANSFER_BATCHES = 16;

/**
 * Seals open batches that are old enough, and waiting transfers by the policy of `zk-rollup`. The age counts from the
 * first mint or transfer, or from when this process first saw it if that is longer ago by the clocks: a clock behind the
 * journal's makes the former useless.
 */
export class Sealing {
  readonly #engine: SettlementPort;
  readonly #policy: SealingPolicy;
  readonly #clock: Clock;
  readonly #monotonic: Clock;
  readonly #seen = new Map<Mode | "transfers", { readonly first: number; readonly at: number }>();

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
    const { batches, operator } = this.#engine;
    const allowed = (mode: Mode) => (typeof maxAgeMs === "number" ? maxAgeMs : maxAgeMs[mode]);
    for (const mode of MODES) {
      const { batchNumber, vaultCount, timestamps } = batches.getOpen(mode);
      if (vaultCount === 0 || timestamps.open === undefined) continue;
      const age = this.#ageOf(mode, batchNumber, timestamps.open);
      if (age >= allowed(mode) && (await operator.seal(mode)) !== null) sealed++;
    }
    const since = await operator.waitingTransfersSince();
    if (since === null || this.#ageOf("transfers", since, since) < allowed("zk-rollup")) return sealed;
    // The later ones are younger, and each batch holds only what one commit carries.
    for (let made = 0; made < MOST_TRANSFER_BATCHES && (await operator.sealTransfers()) !== null; made++) sealed++;
    return sealed;
  }

  /** @param first - tells what is open now from what was open before */
  #ageOf(kind: Mode | "transfers", first: number, openedAt: number): number {
    const now = this.#monotonic();
    const known = this.#seen.get(kind);
    const seen = known?.first === first ? known : { first, at: now };
    this.#seen.set(kind, seen);
    return Math.max(this.#clock() - openedAt, now - seen.at);
  }
}
