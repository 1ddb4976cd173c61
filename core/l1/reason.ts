import type { BaseError, ContractFunctionRevertedError } from "viem";
import { MintmarkError } from "../errors.ts";
import { visible } from "../protocol/text.ts";

/** The words for what viem throws. They need no viem, so that an error is told at once. */

/** Whether viem has thrown it, an application's own viem too. */
export function isViems(error: unknown): error is BaseError {
  return error instanceof Error && "walk" in error && "shortMessage" in error;
}

/** Most characters of a contract's reason. */
const MOST_REASON = 1_000;

/** Nodes' various words for a call that the EVM stopped: out of gas, or invalid code. */
const HALT = /out ?of ?gas|invalid ?opcode|invalid ?jump|stack ?(?:over|under)flow|stack ?limit/i;

/** The code of a node's own faults, which some nodes give to reverts too. */
export const INTERNAL = -32603;
const REVERT = /revert|vm exception/i;
/** A contract's error data begin with four bytes. */
const ERROR_DATA = /"0x[\da-f]{8}/i;

/** A fault of the node itself, which viem takes for a contract's revert without a reason. */
function isInternal(error: BaseError): boolean {
  let isInternal = false;
  let isRevert = false;
  error.walk((inner) => {
    const { code, data, details, message } = inner as Error & Record<string, unknown>;
    if (code !== INTERNAL) return false;
    isInternal = true;
    const words = `${details ?? message}`;
    isRevert ||= REVERT.test(words) || HALT.test(words);
    isRevert ||= ERROR_DATA.test(JSON.stringify(data ?? null));
    return false;
  });
  return isInternal && !isRevert;
}

/**
 * The contract's own reason for a revert, e.g. `BatchNumberMismatch(4, 3)`, or how the EVM stopped
 * the call. Null when the chain did not answer.
 */
export function revertReason(error: unknown): string | null {
  if (error instanceof MintmarkError) return revertReason(error.cause);
  if (!isViems(error) || isInternal(error)) return null;
  const revert = error.walk((inner) => (inner as Error).name === "ContractFunctionRevertedError");
  if (revert === null) return HALT.exec(error.details ?? "")?.[0].toLowerCase() ?? null;
  const { data, reason, signature } = revert as ContractFunctionRevertedError;
  if (data === undefined) return legible(reason || signature || "reverted without a reason");
  return legible(`${data.errorName}(${(data.args ?? []).map(String).join(", ")})`);
}

/**
 * One line of bounded length, because the contract's author chose the words, and they are recorded
 * and shown.
 */
export function legible(words: string): string {
  return visible(words.slice(0, MOST_REASON));
}

/**
 * The shortest sentence that names the reason of an error; of viem's errors without request and
 * stack.
 */
export function reasonOf(error: unknown): string {
  const reverted = revertReason(error);
  if (reverted !== null) return `the contract refused with ${reverted}`;
  if (isViems(error))
    return `${error.shortMessage}${error.details ? ` (${firstLine(error.details)})` : ""}`;
  return error instanceof Error ? firstLine(error.message) : String(error);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
