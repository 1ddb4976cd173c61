/** What a page of an owner needs of the exit: reading a kit, checking it, and withdrawing with it. Runs in browsers. */
export { type ExitKit, requireWholeKit } from "./kit.ts";
export { parseExitKit } from "./parse.ts";
export { type Standing, standingOf } from "./standing.ts";
export { type ExitOptions, type ExitPlan, type ExitResult, exitWithKit, planExit } from "./withdraw.ts";
export { type ExitAllOptions, exitWithKits, type VaultExit } from "./withdraw-all.ts";
