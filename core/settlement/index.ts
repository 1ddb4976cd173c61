/** Brings an engine's batches and withdrawals to L1, and L1's events to the engine. */

export type { ConsentStanding } from "./consents.ts";
export { type AdoptOptions, adoptFromL1 } from "./from-l1.ts";
export {
  type MirrorRound,
  MirrorSettler,
  type MirrorSettlerOptions,
  type SettledMirror,
} from "./mirror-settler.ts";
export { type RescanOptions, rescan } from "./rescan.ts";
export { ROLLUP_DATA, type RollupData } from "./rollup-data.ts";
export { type Round, Settler, type SettlerOptions, type SettlerWork } from "./settler.ts";
