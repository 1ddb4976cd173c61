import type { Group } from "./group.ts";
import { encodeRecord, type Field } from "./layout.ts";

/**
 * Immutable records in memory in two views: the writer's, perhaps not durable yet, and the readers', which is durable.
 * Few enough to hold all: applications, keys, assets, batches.
 */
export class Table<K, V> {
  readonly #latest = new Map<K, V>();
  readonly #durable = new Map<K, V>();
  /** The changes of the current group, shown to readers together. */
  #filling: { readonly group: Group; readonly records: Map<K, V> } | null = null;

  /** The writer's view. */
  latest(key: K): V | undefined {
    return this.#latest.get(key);
  }

  /** The durable view. */
  get(key: K): V | undefined {
    return this.#durable.get(key);
  }

  /** Number of records in the writer's view. */
  get latestCount(): number {
    return this.#latest.size;
  }

  /** Number of durable records. */
  get count(): number {
    return this.#durable.size;
  }

  /** All durable records, in the order of their creation. */
  values(): IterableIterator<V> {
    return this.#durable.values();
  }

  /** The keys of all durable records. */
  keys(): IterableIterator<K> {
    return this.#durable.keys();
  }

  /** All records of the writer's view, in the order of their creation. */
  latestValues(): IterableIterator<V> {
    return this.#latest.values();
  }

  /** Sets a record: for the writer at once, for readers when the group is durable. */
  put(group: Group, key: K, value: V): void {
    this.#latest.set(key, value);
    if (this.#filling?.group !== group) this.#filling = this.#begin(group);
    this.#filling.records.set(key, value);
  }

  /**
   * The record to change in place: a copy of this group's own, which readers see when the group is durable. However many
   * transitions change it, there is one.
   */
  change(group: Group, key: K): Changing<V> {
    const own = this.#filling?.group === group ? this.#filling.records.get(key) : undefined;
    if (own !== undefined) return own;
    const before = this.#latest.get(key);
    if (before === undefined) throw new Error(`no record ${String(key)} to change`);
    const copy = { ...before };
    this.put(group, key, copy);
    return copy;
  }

  #begin(group: Group): { readonly group: Group; readonly records: Map<K, V> } {
    const records = new Map<K, V>();
    group.onDurable(() => {
      for (const [key, value] of records) this.#durable.set(key, value);
      if (this.#filling?.group === group) this.#filling = null;
    });
    return { group, records };
  }

  /** Removes a record: for readers when the group is durable. */
  remove(group: Group, key: K): void {
    this.#latest.delete(key);
    group.onDurable(() => this.#durable.delete(key));
  }

  /** Adds a record read from disk. */
  load(key: K, value: V): void {
    this.#latest.set(key, value);
    this.#durable.set(key, value);
  }

  /** Removes a record that is no longer on disk. */
  unload(key: K): void {
    this.#latest.delete(key);
    this.#durable.delete(key);
  }
}

type Changing<V> = { -readonly [K in keyof V]: V[K] };

/** A table whose records are in the store one by one. A group writes each changed record once. */
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

  /** Writes the changes since the last call; returns their keys. */
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
