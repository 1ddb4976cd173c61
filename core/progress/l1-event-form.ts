import { MAX_AMOUNT } from "../model.ts";
import type { L1Event } from "../ports.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "../protocol/bounds.ts";
import { requireHash } from "../validate.ts";

const MAX_LOG_INDEX = 2 ** 32 - 1;

/** Holds what an L1 event says to what a chain can tell, whichever reader it comes from. Throws `validation_failed`. */
export function requireForm(event: L1Event): void {
  requireHash("txHash", event.txHash);
  requireBigint("blockNumber", event.blockNumber, 0n, MAX_UINT64);
  requireInteger("logIndex", event.logIndex, 0, MAX_LOG_INDEX);
  if (event.type === "withdrawn") {
    requireBigint("quantity", event.quantity, 0n, MAX_AMOUNT);
    requireBigint("withdrawnTotal", event.withdrawnTotal, 0n, MAX_AMOUNT);
  }
  if (event.type === "authorizationCancelled") requireHash("digest", event.digest);
  if (event.type === "batchCommitted" || event.type === "batchImported") {
    requireBigint("committedAt", event.committedAt, 0n, MAX_UINT64);
    requireBigint("sequence", event.sequence, 0n, MAX_UINT64);
  }
}
