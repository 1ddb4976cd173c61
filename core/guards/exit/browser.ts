/**
 * What a page of an owner needs of the exit: reading a kit, checking it, and withdrawing with it.
 * Runs in browsers.
 */
export { type ExitKit, parseExitKit, requireWholeKit } from "./kit.ts";
export { type Standing, standingOf } from "./standing.ts";
export type { ExitAllOptions, ExitOptions, ExitPlan, ExitResult, VaultExit } from "./withdraw.ts";
export { exitWithKit, exitWithKits, planExit } from "./withdraw.ts";
