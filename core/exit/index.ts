/** The owner's exit without engine, server and operator: making a kit, reading it, and withdrawing with it. */
export { exportExitKit, type KitChain, type ProveFromL1Options, proveFromL1 } from "./export.ts";
export {
  EXIT_KIT_FORMAT,
  EXIT_KIT_VERSION,
  type ExitKit,
  type ExitKitJson,
  exitKitToJson,
  requireWholeKit,
} from "./kit.ts";
export { parseExitKit } from "./parse.ts";
export { type ExitOptions, type ExitPlan, type ExitResult, exitWithKit, planExit } from "./withdraw.ts";
export { type ExitAllOptions, exitWithKits, type VaultExit } from "./withdraw-all.ts";
