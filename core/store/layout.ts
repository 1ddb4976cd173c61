import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";
import type { Hex } from "../model.ts";
import { ByteReader, type ByteWriter, RECORD_VERSION, record } from "./binary.ts";

/** The layout of one value in a record. */
export interface Field<T> {
  write(to: ByteWriter, value: T): void;
  read(from: ByteReader): T;
}

export type ValueOf<F> = F extends Field<infer T> ? T : never;

/** The fields of a record, in byte order. */
export type Fields = Readonly<Record<string, Field<unknown>>>;
export type RecordOf<S extends Fields> = { readonly [K in keyof S]: ValueOf<S[K]> };

/**
 * A value that {@link ByteWriter} and {@link ByteReader} have a method for, of this length if that
 * varies.
 */
function plain<N extends "varint" | "bigVarint" | "u48" | "u64" | "uuid" | "hex">(
  name: N,
  length?: number,
): Field<ReturnType<ByteReader[N]>> {
  return {
    write: (to, value) => to[name](value as never),
    read: (from) => from[name](length as never) as ReturnType<ByteReader[N]>,
  };
}

export const varint = plain("varint");
export const bigVarint = plain("bigVarint");
/** Milliseconds since 1970, 6 bytes. */
export const time = plain("u48");
export const u64 = plain("u64");
export const uuid = plain("uuid");
export const address = plain("hex", 20);
export const hash = plain("hex", 32);

export const MAX_TIME = 2 ** 48 - 1; // The last time that fits a record: in the year 10889

/** The length as a varint, then UTF-8. */
export const text: Field<string> = {
  write(to, value) {
    const bytes = Buffer.from(value, "utf8");
    to.varint(bytes.length);
    to.bytes(bytes);
  },
  read: (from) => from.bytes(from.varint()).toString("utf8"),
};

/** The number of bytes as a varint, then the bytes. */
export const hexBytes: Field<Hex> = {
  write(to, value) {
    to.varint((value.length - 2) / 2);
    to.hex(value);
  },
  read: (from) => from.hex(from.varint()),
};

/** One byte: the position in the list. */
export function oneOf<const T>(values: readonly T[]): Field<T> {
  return {
    write: (to, value) => to.u8(values.indexOf(value)),
    read(from) {
      const value = values[from.u8()];
      if (value === undefined) throw new MintmarkError("store_corrupt");
      return value;
    },
  };
}

export const flag = oneOf([false, true]);

/** 0, or 1 and the value. */
export function nullable<T>(field: Field<T>): Field<T | null> {
  return {
    write(to, value) {
      to.u8(value === null ? 0 : 1);
      if (value !== null) field.write(to, value);
    },
    read: (from) => (from.u8() === 1 ? field.read(from) : null),
  };
}

/** The number as a varint, then each value. */
export function listOf<T>(field: Field<T>): Field<readonly T[]> {
  return {
    write(to, values) {
      to.varint(values.length);
      for (const value of values) field.write(to, value);
    },
    read: (from) => Array.from({ length: from.varint() }, () => field.read(from)),
  };
}

export function layout<S extends Fields>(fields: S): Field<RecordOf<S>> {
  const entries = Object.entries(fields);
  return {
    write(to, value) {
      for (const [name, field] of entries) field.write(to, value[name]);
    },
    read(from) {
      const value: Record<string, unknown> = {};
      for (const [name, field] of entries) value[name] = field.read(from);
      return value as RecordOf<S>;
    },
  };
}

const ZEROS = new Uint8Array(256);

/**
 * The value whose bytes are all zero: numbers are 0, lists are empty, and what can be null is null.
 */
export function emptyOf<T>(field: Field<T>): T {
  return field.read(new ByteReader(ZEROS));
}

/** Fields of one layout with these names, in their order. */
export function each<F, const N extends string>(field: F, ...names: N[]): { readonly [K in N]: F } {
  return Object.fromEntries(names.map((name) => [name, field])) as { readonly [K in N]: F };
}

/**
 * A stored record: `version(1) = 0x01 ‖ fields ‖ crc32(4)` of all before it, which finds a flipped
 * bit on reading.
 */
export function encodeRecord<T>(field: Field<T>, value: T): Buffer {
  field.write(record.begin(), value);
  return record.end();
}

/**
 * The value of a record. Throws `store_corrupt` for anything but output of {@link encodeRecord}.
 */
export function decodeRecord<T>(field: Field<T>, record: Uint8Array, name: string): T {
  const reader = new ByteReader(checkedRecord(record, name), 1);
  const value = field.read(reader);
  reader.end();
  return value;
}

/** The record without its checksum, after checking it and the version. Throws `store_corrupt`. */
export function checkedRecord(record: Uint8Array, name: string): Uint8Array {
  const body = record.subarray(0, Math.max(0, record.length - 4));
  const stored = Buffer.from(
    record.buffer,
    record.byteOffset + body.length,
    record.length - body.length,
  );
  if (body.length === 0 || stored.readUInt32BE(0) !== crc32(body) || body[0] !== RECORD_VERSION) {
    throw new MintmarkError(
      "store_corrupt",
      `The engine did not write ${name} like this. Restore the store from a copy.`,
    );
  }
  return body;
}

/**
 * The beginning of a record that {@link Kinds} wrote, up to its content. Throws `store_corrupt`.
 */
export function openRecord(record: Uint8Array, name: string) {
  const from = new ByteReader(checkedRecord(record, name), 1);
  return { time: from.u48(), number: from.u8(), from };
}

/** Kinds of a record by name: each has a number on disk, and its fields. */
export type KindFields = Readonly<Record<string, readonly [number, Fields]>>;

export const kind = <F extends Fields>(number: number, fields: F): readonly [number, F] => [
  number,
  fields,
];

export type ContentOf<K extends KindFields, N extends keyof K> = RecordOf<K[N][1]>;

interface Kind<N> {
  readonly kind: N;
  readonly number: number;
  readonly field: Field<Record<string, unknown>>;
}

export class Kinds<K extends KindFields> {
  readonly byName: { readonly [N in keyof K]: Kind<N> };
  readonly #byNumber = new Map<number, Kind<keyof K>>();

  constructor(kinds: K) {
    const byName: Record<string, Kind<keyof K>> = {};
    for (const [kind, [number, fields]] of Object.entries(kinds)) {
      const field = layout(fields) as Field<Record<string, unknown>>;
      byName[kind] = { kind, number, field };
      this.#byNumber.set(number, byName[kind]);
    }
    this.byName = byName as typeof this.byName;
  }

  /** Writes `version(1) = 0x01 ‖ time(6) ‖ number(1) ‖ content ‖ crc32(4)`. */
  encode(time: number, kind: keyof K, content: object): Buffer {
    const { number, field } = this.byName[kind];
    record.begin().u48(time);
    record.u8(number);
    field.write(record, content as Record<string, unknown>);
    return record.end();
  }

  /** Reads the content of a kind's number. Throws `store_corrupt` for an unknown one. */
  read(
    number: number,
    from: ByteReader,
    name: string,
  ): { readonly kind: keyof K; readonly content: object } {
    const found = this.#byNumber.get(number);
    if (found === undefined)
      throw new MintmarkError("store_corrupt", `${name} is of unknown kind ${number}.`);
    return { kind: found.kind, content: found.field.read(from) };
  }
}
