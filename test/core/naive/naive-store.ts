import type { Journal, KeyRange, Store, StoreOperation, StoreReader } from "../../../core/index.ts";

/** The port of a store as plainly as can be: a map, sorted whenever it is looked through. */
export class NaiveStore implements Store {
  #records: ReadonlyMap<string, Buffer>;

  constructor(records: ReadonlyMap<string, Buffer> = new Map()) {
    this.#records = records;
  }

  async get(key: Buffer): Promise<Buffer | undefined> {
    return this.#records.get(key.toString("hex"));
  }

  getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  async *entries({ gte, gt, lte, lt, reverse, limit }: KeyRange): AsyncGenerator<[Buffer, Buffer]> {
    const found = [...this.#records]
      .map(([key, value]): [Buffer, Buffer] => [Buffer.from(key, "hex"), value])
      .filter(([key]) => (!gte || key.compare(gte) >= 0) && (!gt || key.compare(gt) > 0))
      .filter(([key]) => (!lte || key.compare(lte) <= 0) && (!lt || key.compare(lt) < 0))
      .sort(([a], [b]) => (reverse === true ? b.compare(a) : a.compare(b)));
    yield* found.slice(0, limit);
  }

  atSnapshot<T>(body: (store: StoreReader) => Promise<T>): Promise<T> {
    return body(new NaiveStore(this.#records));
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    const records = new Map(this.#records);
    for (const operation of operations) {
      if (operation.type === "put")
        records.set(operation.key.toString("hex"), Buffer.from(operation.value));
      else records.delete(operation.key.toString("hex"));
    }
    this.#records = records;
  }

  async close(): Promise<void> {}
}

/** The port of a journal as plainly as can be: a list. */
export class NaiveJournal implements Journal {
  readonly list: Uint8Array[];

  constructor(list: readonly Uint8Array[] = []) {
    this.list = [...list];
  }

  async length(): Promise<number> {
    return this.list.length;
  }

  async append(length: number, entries: readonly Uint8Array[]): Promise<void> {
    if (length !== this.list.length)
      throw new Error(`it holds ${this.list.length} entries, not ${length}`);
    this.list.push(...entries);
  }

  async *read(from: number): AsyncGenerator<Uint8Array> {
    yield* this.list.slice(from);
  }
}
