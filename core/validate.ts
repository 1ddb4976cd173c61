import { argumentError, MintmarkError } from "./errors.ts";
import {
  type Address,
  ENVIRONMENTS,
  type Environment,
  type Hash,
  MODES,
  type Mode,
  type Uuid,
} from "./model.ts";
import { bytesToHex, textHash } from "./protocol/hex.ts";
import { isVisible, NOT_HIDDEN } from "./protocol/text.ts";

/** Checks of arguments. Each throws `validation_failed` and names the argument. */

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const HASH = /^0x[0-9a-fA-F]{64}$/;

/** The lower-case address. Refuses the zero address, which has no owner. */
export function requireAddress(name: string, value: unknown): Address {
  if (typeof value !== "string" || !ADDRESS.test(value) || /^0x0{40}$/.test(value))
    throw argumentError(name, "must be 0x and 40 hex digits, and not zero");
  if (!checksumHolds(value)) throw argumentError(name, `is mistyped. ${CHECKSUM_WRONG}`);
  return value.toLowerCase() as Address;
}

/** The error for a wrong checksum. */
export const CHECKSUM_WRONG =
  "The address's mixed case is not its EIP-55 checksum, so a digit may be wrong. Copy it again.";

/** Whether 0x and 40 hex digits are in lower case, in upper case, or match the EIP-55 checksum. */
export function checksumHolds(address: string): boolean {
  const digits = address.slice(2);
  if (digits === digits.toLowerCase() || digits === digits.toUpperCase()) return true;
  const hash = bytesToHex(textHash(digits.toLowerCase()));
  return Array.from(digits).every((digit, i) => {
    const isUpper = Number.parseInt(hash.charAt(2 + i), 16) >= 8;
    return digit === (isUpper ? digit.toUpperCase() : digit.toLowerCase());
  });
}

export function requireHash(name: string, value: unknown): Hash {
  if (typeof value !== "string" || !HASH.test(value))
    throw argumentError(name, "must be 0x and 64 hex digits");
  return value.toLowerCase() as Hash;
}

export function isText(value: unknown, max: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= max && isVisible(value);
}

/** Text of 1 to `max` characters, none hidden. */
export function requireText(name: string, value: unknown, max: number): string {
  if (!isText(value, max))
    throw argumentError(name, `must be text of 1 to ${max} characters ${NOT_HIDDEN}`);
  return value;
}

export function requireUuid(name: string, value: unknown): string {
  const uuid = readUuid(value);
  if (uuid === null) throw argumentError(name, "must be a UUID");
  return uuid;
}

/** The lower-case form of a UUID; null for anything else. */
export function readUuid(value: unknown): Uuid | null {
  return typeof value === "string" && UUID.test(value) ? value.toLowerCase() : null;
}

export function requireEnvironment(environment: Environment): void {
  if (ENVIRONMENTS.includes(environment)) return;
  throw argumentError("environment", `must be one of ${ENVIRONMENTS.join(", ")}`);
}

export function requireFlag(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw argumentError(name, "must be true or false");
  return value;
}

/** Longer text cannot be a known value. */
const MAX_SPELLING = 64;

/**
 * The value of a text, in our spelling or that of the original's SDKs: `MintableErc721`,
 * `ZK_ROLLUP`. null for none.
 */
export function readSpelling<V extends string>(values: readonly V[], text: unknown): V | null {
  const known = values.find((value) => value === text);
  if (known !== undefined || typeof text !== "string" || text.length > MAX_SPELLING)
    return known ?? null;
  const bare = (spelt: string) => spelt.replaceAll(/[-_]/g, "").toLowerCase();
  return values.find((value) => bare(value) === bare(text)) ?? null;
}

/** A default mode; null for none. */
export function requireModeOrNull(mode: Mode | null): Mode | null {
  return mode === null ? null : requireMode(mode);
}

export function requireMode(mode: Mode): Mode {
  if (!MODES.includes(mode)) throw argumentError("mode", `must be one of ${MODES.join(", ")}`);
  return mode;
}

/** The result; null for a refusal with this code. */
export async function orNull<T>(
  code: MintmarkError["code"],
  find: () => Promise<T>,
): Promise<T | null> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof MintmarkError && error.code === code) return null;
    throw error;
  }
}
