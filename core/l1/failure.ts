import {
  type Abi,
  BaseError,
  ContractFunctionRevertedError,
  decodeErrorResult,
  type Hex,
  HttpRequestError,
  TimeoutError,
} from "viem";
import { MintmarkError } from "../errors.ts";

/** Turns whatever viem threw into `l1_failed`, with the shortest sentence that names the reason. Passes our own errors and aborts on. */
export function l1Failure(doing: string, error: unknown): Error {
  if (error instanceof MintmarkError) return error;
  if (error instanceof Error && error.name === "AbortError") return error;
  return new MintmarkError("l1_failed", `${doing}: ${reasonOf(error)}`, { cause: error });
}

/** Runs one exchange with L1; everything that goes wrong in it becomes `l1_failed`. */
export async function askL1<T>(doing: string, exchange: () => Promise<T>): Promise<T> {
  try {
    return await exchange();
  } catch (error) {
    throw l1Failure(doing, error);
  }
}

/** Whether nobody answered for the chain, so that asking later may help: no connection, no answer in time, or a busy node. */
export function isUnreachable(error: unknown): boolean {
  const cause = error instanceof MintmarkError ? error.cause : error;
  if (!(cause instanceof BaseError)) return false;
  const failed = cause.walk((inner) => inner instanceof HttpRequestError || inner instanceof TimeoutError);
  if (!(failed instanceof HttpRequestError)) return failed instanceof TimeoutError;
  return failed.status === undefined || failed.status === 429 || failed.status >= 500;
}

/** Characters of a contract's reason. */
const MOST_REASON = 1_000;

/** How nodes, each in its own words, say that the EVM stopped a call: its code used up all gas, or is not code. */
const HALT = /out ?of ?gas|invalid ?opcode|invalid ?jump|stack ?(?:over|under)flow|stack ?limit/i;

/**
 * The contract's own reason when it has reverted, e.g. `BatchNumberMismatch(4, 3)`, or how the EVM stopped it; else null: the chain was not asked,
 * or did not answer.
 */
export function revertReason(error: unknown): string | null {
  if (error instanceof MintmarkError) return revertReason(error.cause);
  if (!(error instanceof BaseError)) return null;
  const revert = error.walk((inner) => inner instanceof ContractFunctionRevertedError);
  if (!(revert instanceof ContractFunctionRevertedError))
    return HALT.exec(error.details ?? "")?.[0].toLowerCase() ?? null;
  if (revert.data === undefined) return legible(revert.reason || revert.signature || "reverted without a reason");
  return legible(`${revert.data.errorName}(${(revert.data.args ?? []).map(String).join(", ")})`);
}

/** What a contract's error data says, e.g. `TokenRefused(0x…, 0x…)`; the data itself when the error is none of the contract's own. */
export function reasonIn(abi: Abi, data: Hex): string {
  try {
    const { errorName, args = [] } = decodeErrorResult({ abi, data });
    return legible(`${errorName}(${args.map(String).join(", ")})`);
  } catch {
    return legible(data);
  }
}

/** In one line of bounded length: whoever wrote the contract chose the words, and they are recorded and shown. */
function legible(words: string): string {
  return words
    .slice(0, MOST_REASON)
    .replaceAll(/\p{Cc}+/gu, " ")
    .toWellFormed();
}

/** The call reverted, or returned nothing: the contract has no such function. */
export function saysNothing(error: unknown): boolean {
  return revertReason(error) !== null || (error instanceof Error && error.message.includes('returned no data ("0x")'));
}

/** The shortest sentence that names the reason of anything thrown; of viem's errors without request and stack. */
export function reasonOf(error: unknown): string {
  const reverted = revertReason(error);
  if (reverted !== null) return `the contract refused with ${reverted}`;
  if (error instanceof BaseError)
    return `${error.shortMessage}${error.details ? ` (${firstLine(error.details)})` : ""}`;
  return error instanceof Error ? firstLine(error.message) : String(error);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
