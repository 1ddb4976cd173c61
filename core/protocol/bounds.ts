import { argumentError, MintmarkError } from "../errors.ts";

export const MAX_UINT64 = (1n << 64n) - 1n;
export const MAX_UINT256 = (1n << 256n) - 1n;

/**
 * Checks a caller's whole number against inclusive bounds.
 *
 * @throws MintmarkError `validation_failed` that names the argument
 */
export function requireInteger(name: string, value: number, min: number, max: number): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw argumentError(name, `must be a whole number from ${min} to ${max}, got ${value}`);
  }
}

/** {@link requireInteger} for bigint. */
export function requireBigint(name: string, value: bigint, min: bigint, max: bigint): void {
  if (typeof value !== "bigint") throw argumentError(name, `must be a bigint, got ${value}`);
  if (value < min || value > max)
    throw argumentError(name, `must be a whole number from ${min} to ${max}, got ${value}`);
}

/** Checks a condition that only a defect of Mintmark can break. */
export function invariant(condition: boolean, fault: string): asserts condition {
  if (!condition) throw new Error(`Mintmark is at fault: ${fault}`);
}

/** Errors of code that gets a value of another type: a proof can be any JSON. */
const OTHER_TYPES = [TypeError, RangeError, SyntaxError];

/**
 * Runs the check of a proof. Anyone can send a proof, so content out of bounds or of a wrong type
 * makes it false, like a wrong hash. Any other error is a fault and is thrown.
 */
export function holds(check: () => boolean): boolean {
  try {
    return check();
  } catch (error) {
    if (error instanceof MintmarkError || OTHER_TYPES.some((type) => error instanceof type))
      return false;
    throw error;
  }
}
