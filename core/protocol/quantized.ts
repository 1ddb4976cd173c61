import { invalid, MintmarkError } from "../errors.ts";
import { MAX_AMOUNT } from "../model.ts";

/** Decimals and quantum of an ERC-20 token. */
export interface Units {
  /** Base units of the token in one quantized unit. */
  readonly quantum: bigint;
  /** Decimals of the token: 10^decimals base units are one token. */
  readonly decimals: number;
}

/** Decimal text of whole tokens. */
export const DECIMAL = /^(0|[1-9]\d{0,77})(?:\.(\d{1,255}))?$/;

/**
 * Converts a decimal amount to a quantized one. Never rounds.
 *
 * @throws MintmarkError `validation_failed` for text that is not a decimal, or not a whole number
 *   of units; `amount_out_of_range` unless it is 1 to 2^63 - 1 units
 * @example
 * quantizedAmount("12.5", { decimals: 6, quantum: 1_000n }) // 12_500n: 12,500,000 base units
 */
export function quantizedAmount(text: string, units: Units): bigint {
  const [, whole, fraction = ""] = DECIMAL.exec(text) ?? [];
  if (whole === undefined) throw invalid('must be decimal text such as "12.5"');
  const digits = fraction.replace(/0+$/, "");
  const { decimals, quantum } = units;
  const base = digits.length > decimals ? null : BigInt(whole + digits.padEnd(decimals, "0"));
  if (base === null || base % quantum !== 0n) {
    throw invalid(
      `must be a whole number of units; one unit is ${decimalAmount(1n, units)} of the token`,
    );
  }
  const amount = base / quantum;
  if (amount >= 1n && amount <= MAX_AMOUNT) return amount;
  const most = decimalAmount(MAX_AMOUNT, units);
  throw new MintmarkError(
    "amount_out_of_range",
    `must be from ${decimalAmount(1n, units)} to ${most}`,
  );
}

/**
 * Converts a quantized amount to decimal text: the inverse of {@link quantizedAmount}.
 *
 * @example
 * decimalAmount(12_500n, { decimals: 6, quantum: 1_000n }) // "12.5"
 */
export function decimalAmount(amount: bigint, { decimals, quantum }: Units): string {
  const digits = (amount * quantum).toString().padStart(decimals + 1, "0");
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  const whole = digits.slice(0, digits.length - decimals);
  return decimals === 0 || fraction === "" ? whole : `${whole}.${fraction}`;
}
