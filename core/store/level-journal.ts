import { MintmarkError } from "../errors.ts";
import { journalLength, LevelStore } from "./level-store.ts";
import type { Database, Journal } from "./ports.ts";
import { endOf, journalKey, PREFIX } from "./store-keys.ts";

const JOURNAL = Buffer.from([PREFIX.journal]);

/**
 * A journal in its own LevelDB folder, for example on another disk, or in another abstract-level database.
 *
 * @example
 * await using journal = await LevelJournal.open("/other-disk/journal");
 * const engine = await openEngine({ ...options, journal });
 */
export class LevelJournal implements Journal, AsyncDisposable {
  readonly #store: LevelStore;
  #length: number;

  private constructor(store: LevelStore, length: number) {
    this.#store = store;
    this.#length = length;
  }

  /** Rejects with `store_locked` while another process has it open, with `store_corrupt` or `store_failed`. */
  static async open(journal: string | Database): Promise<LevelJournal> {
    const store = await LevelStore.open(journal, true);
    return new LevelJournal(store, await journalLength(store));
  }

  async length(): Promise<number> {
    return this.#length;
  }

  async append(length: number, entries: readonly Uint8Array[]): Promise<void> {
    if (length !== this.#length)
      throw new MintmarkError("store_mismatch", `The journal holds ${this.#length} entries, not ${length}.`);
    await this.#store.raiseFormat();
    await this.#store.write(entries.map((value, i) => ({ type: "put", key: journalKey(length + i), value })));
    this.#length += entries.length;
  }

  async *read(from: number): AsyncGenerator<Uint8Array, void, void> {
    for await (const [, entry] of this.#store.entries({ gte: journalKey(from), lt: endOf(JOURNAL) })) yield entry;
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
