import type { AbstractLevel } from "abstract-level";

/** One change of one key. */
export type StoreOperation =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Uint8Array }
  | { readonly type: "del"; readonly key: Buffer };

/** Optional bounds of a scan, in byte order. */
export interface KeyRange {
  readonly gte?: Buffer;
  readonly gt?: Buffer;
  readonly lte?: Buffer;
  readonly lt?: Buffer;
  readonly reverse?: boolean;
  readonly limit?: number;
}

/** Binary keys and values, in byte order of the keys. */
export interface StoreReader {
  /** undefined for a missing key. */
  get(key: Buffer): Promise<Buffer | undefined>;
  /** Values in the order of `keys`; undefined for missing ones. */
  getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]>;
  /** The entries of a range in order, as of the first read. */
  entries(range: KeyRange): AsyncIterable<[Buffer, Buffer]>;
}

/**
 * The store of an engine with everything, including its journal. A failure never reads as a missing
 * key: every method then rejects with `store_failed`, or `store_corrupt` for known damage. Only one
 * engine may have it open.
 */
export interface Store extends StoreReader {
  /** Calls `body` with a snapshot of the store. */
  atSnapshot<T>(body: (store: StoreReader) => Promise<T>): Promise<T>;
  /** Atomic, and durable when it resolves. The engine makes one write at a time. */
  write(operations: readonly StoreOperation[]): Promise<void>;
  /** Aborted with `store_failed` when the store is found to be another process's between writes. */
  readonly lost?: AbortSignal | undefined;
  /** Releases the store's resources. */
  close(): Promise<void>;
}

/**
 * An ordered log that receives a copy of an engine's journal: opaque bytes, with consecutive
 * numbers from 0.
 */
export interface Journal {
  /** Number of its entries. */
  length(): Promise<number>;
  /**
   * Appends entries after the first `length`, durable when it resolves. May have added some when it
   * rejects.
   */
  append(length: number, entries: readonly Uint8Array[]): Promise<void>;
  /** The entries from a number on, in order. */
  read(from: number): AsyncIterable<Uint8Array>;
}

/** Any abstract-level database. The engine uses it with binary keys and values, and closes it. */
// biome-ignore lint/suspicious/noExplicitAny: abstract-level's first parameter is the implementation's private format.
export type Database = AbstractLevel<any, any, any>;
