import { randomFillSync } from "node:crypto";
import { crc32 } from "node:zlib";
import { MintmarkError } from "../errors.ts";
import type { Hex, Uuid } from "../model.ts";
import { hexValue } from "../protocol/hex.ts";
import { ByteReader, ByteWriter } from "./binary.ts";

const UUID_BYTES = 16;
const DASH = 0x2d;

/** The layout of one value in a record. */
export interface Field<T> {
  write(to: ByteWriter, value: T): void;
  read(from: ByteReader): T;
}

export type ValueOf<F> = F extends Field<infer T> ? T : never;

/** The fields of a record, in byte order. */
export type Fields = Readonly<Record<string, Field<unknown>>>;
export type RecordOf<S extends Fields> = { readonly [K in keyof S]: ValueOf<S[K]> };

export const varint: Field<number> = {
  write: (to, value) => to.varint(value),
  read: (from) => from.varint(),
};

export const bigVarint: Field<bigint> = {
  write: (to, value) => to.bigVarint(value),
  read: (from) => from.bigVarint(),
};

/** The last time that fits a record: in the year 10889. */
export const MAX_TIME = 2 ** 48 - 1;

/** Milliseconds since 1970, 6 bytes. */
export const time: Field<number> = {
  write: (to, value) => to.u48(value),
  read: (from) => from.u48(),
};

/** u64, 8 bytes. */
export const u64: Field<bigint> = {
  write: (to, value) => to.u64(value),
  read: (from) => from.u64(),
};

export const flag: Field<boolean> = {
  write: (to, value) => to.u8(value ? 1 : 0),
  read: (from) => from.u8() === 1,
};

/** The length as a varint, then UTF-8. */
export const text: Field<string> = {
  write(to, value) {
    const bytes = Buffer.from(value, "utf8");
    to.varint(bytes.length);
    to.bytes(bytes);
  },
  read: (from) => from.bytes(from.varint()).toString("utf8"),
};

/** Exactly `length` bytes. */
function fixedHex(length: number): Field<Hex> {
  return {
    write: (to, value) => to.hex(value),
    read: (from) => from.hex(length),
  };
}

/** The number of bytes as a varint, then the bytes. */
export const hexBytes: Field<Hex> = {
  write(to, value) {
    to.varint((value.length - 2) / 2);
    to.hex(value);
  },
  read: (from) => from.hex(from.varint()),
};

export const address = fixedHex(20);
export const hash = fixedHex(32);

/** 16 bytes. */
export const uuid: Field<Uuid> = {
  write: (to, value) => to.bytes(uuidBytes(value)),
  read: (from) => uuidText(from.bytes(16)),
};

/** The 16 bytes of a UUID in the usual form. Does not check it. */
export function uuidBytes(value: Uuid): Buffer {
  const bytes = Buffer.allocUnsafe(UUID_BYTES);
  putUuid(bytes, 0, value);
  return bytes;
}

/** Writes {@link uuidBytes} into a buffer. */
export function putUuid(into: Buffer, start: number, value: Uuid): void {
  for (let at = start, i = 0; at < start + UUID_BYTES; at++, i += 2) {
    if (value.charCodeAt(i) === DASH) i++;
    into[at] = (hexValue(value.charCodeAt(i)) << 4) | hexValue(value.charCodeAt(i + 1));
  }
}

const HEX_DIGITS = Buffer.from("0123456789abcdef", "latin1");
const uuidScratch = Buffer.alloc(36, DASH);

export function uuidText(bytes: Uint8Array): Uuid {
  for (let i = 0, at = 0; i < UUID_BYTES; i++) {
    const byte = bytes[i] as number;
    if (at === 8 || at === 13 || at === 18 || at === 23) at++;
    uuidScratch[at++] = HEX_DIGITS[byte >> 4] as number;
    uuidScratch[at++] = HEX_DIGITS[byte & 15] as number;
  }
  return uuidScratch.toString("latin1");
}

/** Random bytes drawn at a time, because a draw costs much more than its bytes. */
const POOL_BYTES = 4096;
const randomPool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;
const newUuid = Buffer.alloc(UUID_BYTES);

/**
 * A UUID of version 7 (RFC 9562): ms since 1970, then 74 random bits. Neighbours in time are neighbours in the store.
 */
export function timeUuid(now: number): Uuid {
  if (used + 10 > POOL_BYTES) {
    randomFillSync(randomPool);
    used = 0;
  }
  newUuid.writeUIntBE(now, 0, 6);
  for (let i = 6; i < 16; i++) newUuid[i] = randomPool[used++] as number;
  newUuid[6] = 0x70 | ((newUuid[6] as number) & 0x0f);
  newUuid[8] = 0x80 | ((newUuid[8] as number) & 0x3f);
  return uuidText(newUuid);
}

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

/** One after the other. */
export function pairOf<A, B>(first: Field<A>, second: Field<B>): Field<readonly [A, B]> {
  return {
    write(to, [a, b]) {
      first.write(to, a);
      second.write(to, b);
    },
    read: (from) => [first.read(from), second.read(from)],
  };
}

/** The fields one after another. */
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

/** First byte of every record of this version of the store. */
export const RECORD_VERSION = 1;

/** A stored record: `version(1) = 0x01 ‖ fields ‖ crc32(4)` of all before it, which finds a flipped bit on reading. */
export function encodeRecord<T>(field: Field<T>, value: T): Buffer {
  const writer = new ByteWriter(128);
  writer.u8(RECORD_VERSION);
  field.write(writer, value);
  return withChecksum(writer);
}

/** The value of a record. Throws `store_corrupt` for anything but output of {@link encodeRecord}. */
export function decodeRecord<T>(field: Field<T>, record: Uint8Array, name: string): T {
  const reader = new ByteReader(checkedRecord(record, name), 1);
  const value = field.read(reader);
  reader.end();
  return value;
}

/** Appends the checksum and copies the record out. */
export function withChecksum(writer: ByteWriter): Buffer {
  writer.u32(crc32(writer.view()));
  return writer.copy();
}

/** The record without its checksum, after checking it and the version. Throws `store_corrupt`. */
export function checkedRecord(record: Uint8Array, name: string): Uint8Array {
  const body = record.subarray(0, Math.max(0, record.length - 4));
  const stored = Buffer.from(record.buffer, record.byteOffset + body.length, record.length - body.length);
  if (body.length === 0 || stored.readUInt32BE(0) !== crc32(body) || body[0] !== RECORD_VERSION) {
    throw new MintmarkError(
      "store_corrupt",
      `The engine did not write ${name} like this. Restore the store from a copy.`,
    );
  }
  return body;
}

/** Kinds of a record by name: each has a number on disk, and its fields. */
export type KindFields = Readonly<Record<string, readonly [number, Fields]>>;

/** The content of a record of one kind. */
export type ContentOf<K extends KindFields, N extends keyof K> = RecordOf<K[N][1]>;

export interface Kind<N> {
  readonly kind: N;
  readonly number: number;
  readonly field: Field<Record<string, unknown>>;
}

/** Finds the layout of a kind's content: by name for writing, by number for reading. */
export class Kinds<K extends KindFields> {
  readonly #byName = new Map<keyof K, Kind<keyof K>>();
  readonly #byNumber = new Map<number, Kind<keyof K>>();

  constructor(kinds: K) {
    for (const [kind, [number, fields]] of Object.entries(kinds)) {
      const field = layout(fields) as Field<Record<string, unknown>>;
      const found = { kind, number, field };
      this.#byName.set(kind, found);
      this.#byNumber.set(number, found);
    }
  }

  named(kind: keyof K): Kind<keyof K> {
    const found = this.#byName.get(kind);
    if (found === undefined) throw new Error(`no kind ${String(kind)}`);
    return found;
  }

  /** undefined for an unknown number. */
  numbered(number: number): Kind<keyof K> | undefined {
    return this.#byNumber.get(number);
  }
}
