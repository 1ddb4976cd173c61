import type { AbstractLevel } from "abstract-level";

/** One change of one key. */
export type StoreOperation =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Uint8Array }
  | { readonly type: "del"; readonly key: Buffer };

/** Bounds of a scan, each optional, over the order of the bytes. */
export interface KeyRange {
  readonly gte?: Buffer;
  readonly gt?: Buffer;
  readonly lte?: Buffer;
  readonly lt?: Buffer;
  readonly reverse?: boolean;
  readonly limit?: number;
}

/** Binary keys and values, in the order of the keys' bytes. */
export interface StoreReader {
  /** undefined for a key that is not there. */
  get(key: Buffer): Promise<Buffer | undefined>;
  /** In the order of the keys; undefined for those that are not there. */
  getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]>;
  /** The entries of a range in order, as they were when the first was asked for. */
  entries(range: KeyRange): AsyncIterable<[Buffer, Buffer]>;
}

/**
 * Where an engine keeps everything, its journal too. Failing is never "no such key": every method rejects with `store_failed` then, or
 * with `store_corrupt` for what is known to be damaged. One engine has it at a time; whatever opens it sees to that.
 */
export interface Store extends StoreReader {
  /** Calls `body` with the store as it is now; what is written meanwhile does not show in it. */
  frozen<T>(body: (store: StoreReader) => Promise<T>): Promise<T>;
  /** All operations or none, and durable when it resolves. The engine asks for one write at a time. */
  write(operations: readonly StoreOperation[]): Promise<void>;
  /** Frees what the store holds open. */
  close(): Promise<void>;
}

/**
 * An ordered log outside the store that an engine's journal is copied to, e.g. a replicated one. Entries are opaque bytes, numbered from
 * 0 without a gap.
 */
export interface Journal {
  /** Entries that it holds. */
  length(): Promise<number>;
  /** Puts entries behind the `length` that it holds, in order, and durable when it resolves. A first part of them may be in it when it rejects. */
  append(length: number, entries: readonly Uint8Array[]): Promise<void>;
  /** The entries from a number on, in order. */
  read(from: number): AsyncIterable<Uint8Array>;
}

/** An abstract-level database of any kind; the engine uses it with binary keys and values and closes it with itself. */
// biome-ignore lint/suspicious/noExplicitAny: abstract-level's first parameter is the implementation's private format.
export type Database = AbstractLevel<any, any, any>;
