import { z } from "zod";

/**
 * A response schema can show these values of the core: a whole number may be a bigint, and a time
 * is milliseconds.
 */
export type Shown<T> = T extends string
  ? string extends T
    ? string | bigint | number
    : T
  : T extends readonly (infer E)[]
    ? readonly Shown<E>[]
    : T extends { readonly pagination: infer G }
      ? Shown<Omit<T, "pagination">> & Shown<G>
      : T extends object
        ? { readonly [K in keyof T]: Shown<T[K]> }
        : T;

type Write = (value: unknown) => unknown;

/**
 * Converts an object of the core to a schema's form: a bigint to decimal digits, a time to RFC
 * 3339. Writes only fields of the schema, so no later field is published by accident.
 */
export function writerOf<S extends z.ZodType>(
  schema: S,
): (from: Shown<z.output<S>>) => z.output<S> {
  return writeOf(schema) as (from: unknown) => z.output<S>;
}

function writeOf(schema: z.core.$ZodType): Write {
  if (schema instanceof z.ZodISODateTime) return time as Write;
  if (schema instanceof z.ZodNullable) {
    const write = writeOf(schema.unwrap());
    return (value) => (value === null ? null : write(value));
  }
  if (schema instanceof z.ZodOptional) {
    const write = writeOf(schema.unwrap());
    return (value) => (value === undefined ? undefined : write(value));
  }
  if (schema instanceof z.ZodArray) {
    const write = writeOf(schema.element);
    return (value) => (value as unknown[]).map((entry) => write(entry));
  }
  if (schema instanceof z.ZodRecord) {
    const write = writeOf(schema.valueType);
    return (value) => {
      const entries = Object.entries(value as object).filter(([, entry]) => entry !== undefined);
      return Object.fromEntries(entries.map(([name, entry]) => [name, write(entry)]));
    };
  }
  if (schema instanceof z.ZodObject) {
    const fields = Object.entries<z.ZodType>(schema.shape).map(
      ([name, field]) => [name, writeOf(field)] as const,
    );
    return (value) => {
      const written: Record<string, unknown> = {};
      // A page of the core has its pagination beside its entries.
      for (const [name, write] of fields)
        written[name] = write(
          name === "pagination" ? value : (value as Record<string, unknown>)[name],
        );
      return written;
    };
  }
  return (value) => (typeof value === "bigint" ? value.toString() : value);
}

let lastTime = Number.NaN;
let lastText = "";

/** RFC 3339 in UTC. Objects of one response mostly share a time, so the last one is cached. */
export function time(milliseconds: number): string {
  if (milliseconds !== lastTime) {
    lastText = new Date(milliseconds).toISOString();
    lastTime = milliseconds;
  }
  return lastText;
}
