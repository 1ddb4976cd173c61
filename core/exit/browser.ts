/**
 * An owner's page needs this part of the exit: reading a kit, checking it, withdrawing, renewing
 * and trading with it, and bringing tokens back. It runs in browsers.
 */
export { type EntryOptions, enterToken } from "./enter.ts";
export { type ExitKit, parseExitKit, requireWholeKit } from "./kit.ts";
export { type RenewalOptions, type RenewalResult, renewWithKits } from "./renew.ts";
export { type Standing, standingOf } from "./standing.ts";
export {
  type NewOffer,
  OFFER_FORMAT,
  type Offer,
  offerText,
  parseOffer,
  prepareOffer,
  type SettleOptions,
  settleWithKits,
} from "./trade.ts";
export type { ExitAllOptions, ExitOptions, ExitPlan, ExitResult, VaultExit } from "./withdraw.ts";
export { exitWithKit, exitWithKits, planExit } from "./withdraw.ts";
