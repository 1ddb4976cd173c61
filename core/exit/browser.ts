/**
 * An owner's page needs this part of the exit: reading a kit, checking it, and withdrawing or
 * renewing with it. It runs in browsers.
 */
export { type ExitKit, parseExitKit, requireWholeKit } from "./kit.ts";
export { type RenewalOptions, type RenewalResult, renewWithKits } from "./renew.ts";
export { type Standing, standingOf } from "./standing.ts";
export type { ExitAllOptions, ExitOptions, ExitPlan, ExitResult, VaultExit } from "./withdraw.ts";
export { exitWithKit, exitWithKits, planExit } from "./withdraw.ts";
