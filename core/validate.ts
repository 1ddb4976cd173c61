import { argumentError, MintmarkError } from "./errors.ts";
import { type Address, type Hash, type Hex, MODES, type Mode, type Uuid } from "./model.ts";
import { bytesToHex, textHash } from "./protocol/hex.ts";
import { isVisible, NOT_HIDDEN } from "./protocol/text.ts";

/**
 * Checks of arguments and of the files that owners keep. Each throws `validation_failed` and names
 * the argument, or the place in the file. docs/architecture.md says what checks other input.
 */

/** Takes a value by its name, or throws an {@link argumentError}. */
export type Read<T> = (name: string, value: unknown) => T;

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

const readMode = oneOf(MODES);

export function requireMode(mode: Mode): Mode {
  return readMode("mode", mode);
}

/** A default mode; null for none. */
export function requireModeOrNull(mode: Mode | null): Mode | null {
  return nullOr(readMode)("mode", mode);
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

export function oneOf<const V>(values: readonly V[]): Read<V> {
  return (name, value) => {
    const found = values.find((each) => each === value);
    if (found !== undefined) return found;
    throw argumentError(name, `must be ${values.length > 1 ? "one of " : ""}${values.join(", ")}`);
  };
}

export function nullOr<T>(read: Read<T>): Read<T | null> {
  return (name, value) => (value === null ? null : read(name, value));
}

/** A whole number as text in decimal digits. */
export function decimal(name: string, value: unknown): bigint {
  if (typeof value === "string" && /^\d{1,78}$/.test(value)) return BigInt(value);
  throw argumentError(name, "must be a whole number in decimal digits, as text");
}

export function wholeNumber(least: number, most: number): Read<number> {
  return (name, value) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most)
      return value;
    throw argumentError(name, `must be a whole number from ${least} to ${most}`);
  };
}

/** Bytes in hex, so many of them. */
export function hex(least: number, most: number): Read<Hex> {
  const form = new RegExp(`^0x(?:[0-9a-f]{2}){${least},${most}}$`);
  const bytes = least === most ? `${most}` : `at most ${most}`;
  return (name, value) => {
    if (typeof value === "string" && form.test(value)) return value as Hex;
    throw argumentError(name, `must be ${bytes} bytes of lower-case hex`);
  };
}

export function list<T>(read: Read<T>, most: number): Read<T[]> {
  return (name, value) => {
    if (!Array.isArray(value) || value.length > most)
      throw argumentError(name, `must be a list of at most ${most}`);
    return value.map((each, i) => read(`${name}[${i}]`, each));
  };
}

/** An object with exactly these fields. Its name is empty for a whole file. */
export function object<F extends Readonly<Record<string, Read<unknown>>>>(
  fields: F,
): Read<{ [K in keyof F]: ReturnType<F[K]> }> {
  return (name, value) => {
    if (typeof value !== "object" || value === null)
      throw argumentError(name || "it", "must be an object");
    const within = (field: string) => (name === "" ? field : `${name}.${field}`);
    for (const field of Object.keys(value))
      if (!Object.hasOwn(fields, field)) throw argumentError(within(field), "is unknown");
    const given = value as Record<string, unknown>;
    const read = Object.entries(fields).map(([field, each]) => [
      field,
      each(within(field), given[field]),
    ]);
    return Object.fromEntries(read) as { [K in keyof F]: ReturnType<F[K]> };
  };
}
