import { BaseError } from "viem";
import { reasonOf } from "../../core/l1/failure.ts";
import { listenFailure } from "../../server/process/startup-error.ts";
import { isUnanswered } from "./exit-codes.ts";

/** The message of an error, without its causes, which may contain an RPC's address with its key. */
export function messageOf(error: unknown): string {
  if (error instanceof BaseError) return reasonOf(error);
  // Node says only "fetch failed". The cause has the reason.
  if (isUnanswered(error)) return `the server does not answer (${codeOf(error.cause)}): is its address right?`;
  if (codeOf(error) === "ENOENT" && error instanceof Error && "path" in error) return `${error.path} does not exist`;
  return error instanceof Error ? (listenFailure(error) ?? error.message) : String(error);
}

function codeOf(cause: unknown): string {
  return (cause as { readonly code?: string } | undefined)?.code ?? "no connection";
}
