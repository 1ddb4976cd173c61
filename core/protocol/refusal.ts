import { MintmarkError } from "../errors.ts";

/** Errors of code that gets a value of another type: a proof can be any JSON. */
const OTHER_TYPES = [TypeError, RangeError, SyntaxError];

/**
 * Runs the check of a proof. Anyone can send a proof, so content out of bounds or of a wrong type makes it false, like
 * a wrong hash. Any other error is a fault and is thrown.
 */
export function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch (error) {
    if (error instanceof MintmarkError || OTHER_TYPES.some((type) => error instanceof type)) return false;
    throw error;
  }
}
