/**
 * The owner's exit without engine, server and operator: making a kit, reading it, and withdrawing
 * or renewing with it.
 */
export * from "./browser.ts";
export { exportExitKit, type KitChain, type ProveFromL1Options, proveFromL1 } from "./export.ts";
export {
  EXIT_KIT_FORMAT,
  EXIT_KIT_VERSION,
  type ExitKitJson,
  type ExitTip,
  exitKitToJson,
} from "./kit.ts";
