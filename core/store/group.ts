import { encodeRecord, type Field } from "./layout.ts";
import type { Store, StoreOperation } from "./ports.ts";
import { keyString } from "./store-keys.ts";

/**
 * A class, because V8 makes literals that outlive a scavenge old from the start, and then keeps all
 * that they name. Its fields have `declare`, so that the constructor alone sets them.
 */
class Put {
  declare readonly type: "put";
  declare readonly key: Buffer;
  declare readonly value: Uint8Array;
  constructor(key: Buffer, value: Uint8Array) {
    this.type = "put";
    this.key = key;
    this.value = value;
  }
}

/**
 * The changes of one atomic write, of one or many transitions. Later ones can read here before it
 * is durable.
 */
export class Group {
  readonly operations: StoreOperation[] = [];
  readonly #staged = new Map<string, Buffer | null>();
  readonly #onDurable: (() => void)[] = [];
  #previous: Group | null; // The previous group, while this one's reads may not see its write

  constructor(previous: Group | null = null) {
    this.#previous = previous;
  }

  /** Writes a record that no transition reads before the write is durable. */
  put(key: Buffer, value: Uint8Array): void {
    this.operations.push(new Put(key, value));
  }

  /** Writes a record that the next transitions see. */
  stage(key: Buffer, value: Buffer): void {
    this.#staged.set(keyString(key), value);
    this.operations.push(new Put(key, value));
  }

  remove(key: Buffer): void {
    this.#staged.set(keyString(key), null);
    this.operations.push({ type: "del", key });
  }

  /**
   * The value of a key in this group or the previous one: null when removed, undefined when
   * unchanged.
   */
  staged(key: string): Buffer | null | undefined {
    const own = this.#staged.get(key);
    return own !== undefined || this.#previous === null ? own : this.#previous.staged(key);
  }

  /** The record after this group, given the stored one. */
  resolve(key: Buffer, stored: Buffer | undefined): Buffer | undefined {
    return this.resolveString(keyString(key), stored);
  }

  resolveString(key: string, stored: Buffer | undefined): Buffer | undefined {
    const staged = this.staged(key);
    return staged === undefined ? stored : (staged ?? undefined);
  }

  async read(store: Store, key: Buffer): Promise<Buffer | undefined> {
    const staged = this.staged(keyString(key));
    return staged === undefined ? store.get(key) : (staged ?? undefined);
  }

  /** Calls `publish` once all changes are durable, in the order of these calls. */
  onDurable(publish: () => void): void {
    this.#onDurable.push(publish);
  }

  /** Shows the written changes to readers. */
  published(): void {
    this.#previous = null;
    for (const publish of this.#onDurable) publish();
  }
}

/**
 * Records in memory in two views. Few enough to hold all. Each is in the order of the records'
 * creation.
 */
export class Table<K, V> {
  readonly #latest = new Map<K, V>();
  readonly #durable = new Map<K, V>();
  /** The readers' view. */
  readonly durable: ReadonlyMap<K, V> = this.#durable;
  /** The changes of the current group, shown to readers together. */
  protected filling: { readonly group: Group; readonly records: Map<K, V> } | null = null;

  /**
   * The writer's view, perhaps not durable yet, for a change; the readers' view for null. Only a
   * change has a group, so no reader sees what is not durable.
   */
  view(group: Group | null): ReadonlyMap<K, V> {
    return group === null ? this.#durable : this.#latest;
  }

  /** The record that the disk may have already: it can be a moment ahead of the readers' view. */
  ahead(key: K): V | undefined {
    return this.#latest.get(key);
  }

  /** Sets a record: for the writer at once, for readers when the group is durable. */
  put(group: Group, key: K, value: V): void {
    this.#latest.set(key, value);
    if (this.filling?.group !== group) {
      const records = new Map<K, V>();
      this.filling = { group, records };
      group.onDurable(() => {
        for (const [changed, record] of records) this.#durable.set(changed, record);
        if (this.filling?.group === group) this.filling = null;
      });
    }
    this.filling.records.set(key, value);
  }

  /**
   * The record to change in place: the group's own copy, one for all its transitions. Readers see
   * it later.
   */
  change(group: Group, key: K): Changing<V> {
    const own = this.filling?.group === group ? this.filling.records.get(key) : undefined;
    if (own !== undefined) return own;
    const before = this.#latest.get(key);
    if (before === undefined) throw new Error(`no record ${String(key)} to change`);
    const copy = { ...before };
    this.put(group, key, copy);
    return copy;
  }

  /** Removes a record: for readers when the group is durable. */
  remove(group: Group, key: K): void {
    this.#latest.delete(key);
    if (this.filling?.group === group) this.filling.records.delete(key);
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

/** One value in the two views of a {@link Table}. */
export class TwoViews<T> {
  readonly #values = new Table<null, T>();

  constructor(value: T) {
    this.load(value);
  }

  get durable(): T {
    return this.#values.durable.get(null) as T;
  }

  view(group: Group): T {
    return this.#values.view(group).get(null) as T;
  }

  put(group: Group, value: T): void {
    this.#values.put(group, null, value);
  }

  load(value: T): void {
    this.#values.load(null, value);
  }
}

/** A table of stored records, by a number or name in them. Some have an id besides. */
export class RecordTable<V, Key extends keyof V> extends Table<V[Key], V> {
  readonly #keyOf: (key: V[Key]) => Buffer;
  readonly #field: Field<V>;
  readonly #key: Key;
  readonly #id: keyof V | undefined;
  /**
   * Keys by id. They never change, so one view is enough: the table says whether a record is on
   * disk.
   */
  readonly #keys = new Map<unknown, V[Key]>();
  readonly #indexes: RecordIndex<V>[] = [];

  constructor(keyOf: (key: V[Key]) => Buffer, field: Field<V>, key: Key, id?: keyof V) {
    super();
    this.#keyOf = keyOf;
    this.#field = field;
    this.#key = key;
    this.#id = id;
  }

  /** The record of an id, in lower case or not; undefined for an unknown one. */
  named(id: string, group: Group | null): V | undefined {
    const key = this.#keys.get(id) ?? this.#keys.get(String(id).toLowerCase());
    return key === undefined ? undefined : this.view(group).get(key);
  }

  /** Lists numbered records under a name in each, from now on; undefined: not listed. */
  indexBy(nameOf: (record: V) => unknown): RecordIndex<V> {
    const index = new RecordIndex<V>(this as unknown as Table<number, V>, nameOf);
    this.#indexes.push(index);
    return index;
  }

  set(group: Group, record: V): void {
    this.put(group, this.#keyIn(record, this.view(group), group), record);
  }

  /** Adds a record read from disk. */
  add(record: V): void {
    this.load(this.#keyIn(record, this.durable, null), record);
  }

  /** Writes the records that the group has changed, each once; returns their keys. */
  flush(group: Group): Iterable<V[Key]> {
    if (this.filling?.group !== group) return [];
    const { records } = this.filling;
    for (const [key, record] of records)
      group.put(this.#keyOf(key), encodeRecord(this.#field, record));
    return records.keys();
  }

  #keyIn(record: V, before: ReadonlyMap<V[Key], V>, group: Group | null): V[Key] {
    const key = record[this.#key];
    if (this.#id !== undefined) this.#keys.set(record[this.#id], key);
    for (const index of this.#indexes) index.update(key as number, before.get(key), record, group);
    return key;
  }
}

/**
 * The numbers of a table's records by a name in them, such as their application, so that nobody
 * reads the records of others, or those that are gone. A number has a name as long as its record
 * has it in either view.
 */
export class RecordIndex<V> {
  readonly #table: Table<number, V>;
  readonly #nameOf: (record: V) => unknown;
  readonly #numbers = new Map<unknown, number[]>();

  constructor(table: Table<number, V>, nameOf: (record: V) => unknown) {
    this.#table = table;
    this.#nameOf = nameOf;
  }

  /** The numbers in ascending order. */
  numbers(name: unknown): readonly number[] {
    return this.#numbers.get(name) ?? [];
  }

  records(name: unknown, group: Group | null): V[] {
    const records = this.#table.view(group);
    return this.numbers(name)
      .flatMap((number) => records.get(number) ?? [])
      .filter((record) => this.#nameOf(record) === name);
  }

  /** Called with each record before the table has it. */
  update(number: number, before: V | undefined, record: V, group: Group | null): void {
    const [earlier, name] = [before && this.#nameOf(before), this.#nameOf(record)];
    if (before !== undefined && earlier === name) return;
    if (group === null) this.drop(earlier, number);
    else if (earlier !== undefined) group.onDurable(() => this.#leave(earlier, number));
    if (name === undefined) return;
    const numbers = this.#numbers.get(name) ?? [];
    this.#numbers.set(name, numbers);
    const place = placeIn(numbers, number);
    if (numbers[place] !== number) numbers.splice(place, 0, number);
  }

  /**
   * Drops a name that the record had, unless the next group has given it back. No group after that
   * one has begun, because the writer applies only the next one during a write: it could have taken
   * the name away again, while readers are about to see it.
   */
  #leave(earlier: unknown, number: number): void {
    const record = this.#table.ahead(number);
    if (record === undefined || this.#nameOf(record) !== earlier) this.drop(earlier, number);
  }

  /** Lists a record no longer. */
  drop(name: unknown, number: number): void {
    const numbers = this.#numbers.get(name) ?? [];
    const place = placeIn(numbers, number);
    if (numbers[place] === number) numbers.splice(place, 1);
    if (numbers.length === 0) this.#numbers.delete(name);
  }
}

/** The place of the first number that is not smaller. */
function placeIn(numbers: readonly number[], number: number): number {
  const place = numbers.findLastIndex((each) => each < number);
  return place + 1;
}
