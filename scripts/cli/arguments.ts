import { MAX_AMOUNT, MintmarkError } from "../../core/index.ts";
import { CHECKSUM_WRONG, checksumHolds } from "../../core/internal.ts";
import { quantizedAmount, type Units } from "../../core/protocol/quantized.ts";
import { instant } from "../../server/schemas/common.ts";
import { UsageError } from "./exit-codes.ts";

/** Seconds of a duration's unit. */
const UNITS: Readonly<Record<string, bigint>> = { m: 60n, h: 3_600n, d: 86_400n };

/** An address in lower case, not the zero address. `name` is the argument's, for the error. */
export function addressOf(text: unknown, name: string, advice = "give an address"): `0x${string}` {
  if (typeof text !== "string" || !/^0x(?!0{40}$)[0-9a-fA-F]{40}$/.test(text))
    throw new UsageError(`${name}: ${advice}`);
  if (!checksumHolds(text)) throw new UsageError(`${name}: ${CHECKSUM_WRONG}`);
  return text.toLowerCase() as `0x${string}`;
}

/** 1 to 2^63 - 1 quantized units. */
export function unitsOf(text: unknown, name: string): bigint {
  if (!/^[1-9]\d{0,18}$/.test(String(text)) || BigInt(String(text)) > MAX_AMOUNT)
    throw new UsageError(`${name}: give a whole number of units`);
  return BigInt(String(text));
}

/** Whole tokens, such as `12.5`, in quantized units. */
export function tokensOf(text: unknown, name: string, units: Units): bigint {
  try {
    return quantizedAmount(String(text), units);
  } catch (error) {
    throw error instanceof MintmarkError ? new UsageError(`${name} ${error.message}`) : error;
  }
}

/** A time, such as `2026-12-01T00:00:00Z`, or a duration from now, such as `12h`, in seconds since 1970. */
export function secondsOf(text: unknown, name: string): bigint {
  const [, count, unit = ""] = /^([1-9]\d{0,4})([mhd])$/.exec(String(text)) ?? [];
  if (count !== undefined) return nowInSeconds() + BigInt(count) * (UNITS[unit] ?? 0n);
  const time = instant.safeParse(text);
  if (time.success) return BigInt(Math.floor(time.data / 1000));
  throw new UsageError(`${name}: give a time such as 2026-12-01T00:00:00Z, or a duration such as 90m, 12h or 7d`);
}

export function nowInSeconds(): bigint {
  return BigInt(Math.floor(Date.now() / 1000));
}
