import { BaseError } from "viem";
import { reasonOf } from "../../core/l1/failure.ts";

/** The message of an error, without its causes, which may contain an RPC's address with its key. */
export function messageOf(error: unknown): string {
  if (error instanceof BaseError) return reasonOf(error);
  return error instanceof Error ? error.message : String(error);
}
