import type { Group } from "./group.ts";
import { encodeRecord, type Field } from "./layout.ts";

/**
 * Immutable records in memory in two views: as the writer has them, which may not be on disk yet, and as readers may see them, which
 * is. Few enough to be held whole: applications, keys, assets, batches.
 */
export class Table<K, V> {
  readonly #latest = new Map<K, V>();
  readonly #durable = new Map<K, V>();
  /** What the group that is being filled puts in, shown to readers in one go. */
  #filling: { readonly group: Group; readonly records: Map<K, V> } | null = null;

  /** As the writer has it. */
  latest(key: K): V | undefined {
    return this.#latest.get(key);
  }

  /** As it is on disk. */
  get(key: K): V | undefined {
    return this.#durable.get(key);
  }

  /** The number of records that the writer has. */
  get latestCount(): number {
    return this.#latest.size;
  }

  /** The number of records that are on disk. */
  get count(): number {
    return this.#durable.size;
  }

  /** All that are on disk, in the order of their making. */
  values(): IterableIterator<V> {
    return this.#durable.values();
  }

  /** The keys of all that are on disk. */
  keys(): IterableIterator<K> {
    return this.#durable.keys();
  }

  /** All that the writer has, in the order of their making. */
  latestValues(): IterableIterator<V> {
    return this.#latest.values();
  }

  /** Sets a record for the writer at once, for readers when the group is on disk. */
  put(group: Group, key: K, value: V): void {
    this.#latest.set(key, value);
    if (this.#filling?.group !== group) this.#filling = this.#begin(group);
    this.#filling.records.set(key, value);
  }

  #begin(group: Group): { readonly group: Group; readonly records: Map<K, V> } {
    const records = new Map<K, V>();
    group.onDurable(() => {
      for (const [key, value] of records) this.#durable.set(key, value);
      if (this.#filling?.group === group) this.#filling = null;
    });
    return { group, records };
  }

  /** Takes out a record, for readers when the group is on disk. */
  remove(group: Group, key: K): void {
    this.#latest.delete(key);
    group.onDurable(() => this.#durable.delete(key));
  }

  /** Puts in what was read from disk. */
  load(key: K, value: V): void {
    this.#latest.set(key, value);
    this.#durable.set(key, value);
  }

  /** Takes out what was removed from disk. */
  unload(key: K): void {
    this.#latest.delete(key);
    this.#durable.delete(key);
  }
}

/** A table of records that are in the store one by one: a group writes each once, however often its transitions change it. */
export class RecordTable<K, V> extends Table<K, V> {
  readonly #keyOf: (key: K) => Buffer;
  readonly #field: Field<V>;
  readonly #changed = new Set<K>();

  constructor(keyOf: (key: K) => Buffer, field: Field<V>) {
    super();
    this.#keyOf = keyOf;
    this.#field = field;
  }

  override put(group: Group, key: K, value: V): void {
    super.put(group, key, value);
    this.#changed.add(key);
  }

  /** Writes what was put since the last time; returns the keys. */
  flush(group: Group): K[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const key of changed) {
      const value = this.latest(key);
      if (value !== undefined) group.put(this.#keyOf(key), encodeRecord(this.#field, value));
    }
    return changed;
  }
}
