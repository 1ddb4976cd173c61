import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Address, Principal } from "../model.ts";

/**
 * Asks for what an owner has signed of vaults: an application of its own ones, or the owner of any
 * application's.
 */
export type VaultCaller = Principal | { readonly owner: Address };

/**
 * Most seconds until the deadline of a request: 30 days. After that the engine gives up what L1
 * keeps refusing, and frees the vaults.
 */
const MAX_VALIDITY = 2_592_000n;

/** Throws unless the deadline is so many seconds ahead, and at most 30 days. */
export function requireDeadline(ledger: Ledger, deadline: bigint, least: bigint): void {
  const now = secondsNow(ledger);
  if (deadline < now + least || deadline > now + MAX_VALIDITY)
    throw new MintmarkError(
      "deadline_invalid",
      `The deadline must be ${least} seconds to 30 days ahead.`,
    );
}

/** The engine's clock, in the seconds of deadlines. */
export function secondsNow(ledger: Ledger): bigint {
  return BigInt(Math.floor(ledger.journalClock.now() / 1000));
}

/** The error that a check throws; null when it passes. */
export function faultOf(check: () => unknown): MintmarkError | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof MintmarkError) return error;
    throw error;
  }
}
