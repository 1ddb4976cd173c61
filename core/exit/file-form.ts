import { MintmarkError } from "../errors.ts";
import type { Hex } from "../model.ts";

/**
 * Forms of the files that owners keep. They are no schemas of zod, which would make the pages that
 * read these files heavier than all else in them.
 */

/** Reads a value at a place of a file, or throws a {@link WrongForm}. */
export type Read<T> = (value: unknown, place: string) => T;

/** Says what is wrong in a file, and where. */
export class WrongForm extends Error {}

/** The value in a file's text. Throws `validation_failed`, for `sort` such as "an exit kit". */
export function readFile<T>(text: string, sort: string, read: Read<T>): T {
  try {
    return read(JSON.parse(text), "");
  } catch (error) {
    const what = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    if (!(error instanceof SyntaxError || error instanceof WrongForm)) throw error;
    throw new MintmarkError("validation_failed", `This is not ${sort}: ${what}.`);
  }
}

export function integer(value: unknown, place: string): bigint {
  if (typeof value === "string" && /^\d{1,78}$/.test(value)) return BigInt(value);
  throw new WrongForm(`${place} is not a decimal integer`);
}

export function number(least: number, most: number): Read<number> {
  return (value, place) => {
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most)
      return value;
    throw new WrongForm(`${place} is not a whole number from ${least} to ${most}`);
  };
}

export function hex(least: number, most: number): Read<Hex> {
  const form = new RegExp(`^0x(?:[0-9a-f]{2}){${least},${most}}$`);
  const bytes = least === most ? `${most}` : `at most ${most}`;
  return (value, place) => {
    if (typeof value === "string" && form.test(value)) return value as Hex;
    throw new WrongForm(`${place} is not ${bytes} bytes of lower-case hex`);
  };
}

export function oneOf<const V>(values: readonly V[]): Read<V> {
  return (value, place) => {
    const found = values.find((each) => each === value);
    if (found !== undefined) return found;
    throw new WrongForm(`${place} is not ${values.join(", ")}`);
  };
}

export function orNull<T>(read: Read<T>): Read<T | null> {
  return (value, place) => (value === null ? null : read(value, place));
}

export function list<T>(read: Read<T>, most: number): Read<T[]> {
  return (value, place) => {
    if (!Array.isArray(value) || value.length > most)
      throw new WrongForm(`${place} is not a list of at most ${most}`);
    return value.map((each, i) => read(each, `${place}[${i}]`));
  };
}

/** An object with exactly these fields. */
export function object<F extends Readonly<Record<string, Read<unknown>>>>(
  fields: F,
): Read<{ [K in keyof F]: ReturnType<F[K]> }> {
  return (value, place) => {
    if (typeof value !== "object" || value === null)
      throw new WrongForm(`${place || "it"} is not an object`);
    const within = (name: string) => (place === "" ? name : `${place}.${name}`);
    for (const name of Object.keys(value))
      if (!Object.hasOwn(fields, name)) throw new WrongForm(`${within(name)} is unknown`);
    const given = value as Record<string, unknown>;
    const read = Object.entries(fields).map(([name, field]) => [
      name,
      field(given[name], within(name)),
    ]);
    return Object.fromEntries(read) as { [K in keyof F]: ReturnType<F[K]> };
  };
}
