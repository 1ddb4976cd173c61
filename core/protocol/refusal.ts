import { MintmarkError } from "../errors.ts";

/** What code throws that is given a value of another type than it says: a proof may be any JSON. */
const OTHER_TYPES = [TypeError, RangeError, SyntaxError];

/**
 * Runs a proof's check. A proof comes from whoever sent it, so content that is out of bounds, or not of its type, refuses the proof as a
 * wrong hash does; any other error is a fault and goes on.
 */
export function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch (error) {
    if (error instanceof MintmarkError || OTHER_TYPES.some((type) => error instanceof type)) return false;
    throw error;
  }
}
