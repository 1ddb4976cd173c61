import { type Engine, MODES, type Mode } from "../core/index.ts";
import type { ReadinessCheck } from "./service.ts";

/** What can be asked of the engine alone: whether its store answers, and how long mints have been waiting in the open batches. */
export function engineChecks(engine: Engine): Readonly<Record<string, ReadinessCheck>> {
  return {
    store: async () => {
      const { countValidium, countRollup } = await engine.committedState();
      const count = countValidium + countRollup;
      return count === 1 ? "1 batch committed" : `${count} batches committed`;
    },
    openBatches: async () => MODES.map((mode) => describeOpenBatch(engine, mode)).join(", "),
  };
}

function describeOpenBatch(engine: Engine, mode: Mode): string {
  const { vaultCount, timestamps } = engine.openBatch(mode);
  if (vaultCount === 0 || timestamps.open === undefined) return `${mode}: empty`;
  return `${mode}: ${vaultCount} ${vaultCount === 1 ? "vault" : "vaults"} since ${new Date(timestamps.open).toISOString()}`;
}
