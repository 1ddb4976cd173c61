import type { Store, StoreOperation } from "./ports.ts";
import { keyString } from "./store-keys.ts";

/**
 * The changes that go to disk in one atomic write: those of one transition, or of many that arrived together. Whatever a later
 * transition may ask for before this is on disk can be looked up here.
 */
export class Group {
  readonly operations: StoreOperation[] = [];
  readonly #staged = new Map<string, Buffer | null>();
  readonly #onDurable: (() => void)[] = [];
  /** The group before, while its write may not have been seen by this one's reads. */
  #previous: Group | null;

  constructor(previous: Group | null = null) {
    this.#previous = previous;
  }

  /** Writes a record that no transition reads back before it is on disk. */
  put(key: Buffer, value: Uint8Array): void {
    this.operations.push({ type: "put", key, value });
  }

  /** Writes a record that the next transitions see. */
  stage(key: Buffer, value: Buffer): void {
    this.#staged.set(keyString(key), value);
    this.operations.push({ type: "put", key, value });
  }

  remove(key: Buffer): void {
    this.#staged.set(keyString(key), null);
    this.operations.push({ type: "del", key });
  }

  /** What this group or the one before it makes of a key: null for removed, undefined when neither touches it. */
  staged(key: string): Buffer | null | undefined {
    const own = this.#staged.get(key);
    return own !== undefined || this.#previous === null ? own : this.#previous.staged(key);
  }

  /** The record as it will be after this group, given what the store held. */
  resolve(key: Buffer, stored: Buffer | undefined): Buffer | undefined {
    return this.resolveString(keyString(key), stored);
  }

  /** The same for a key that is a string already. */
  resolveString(key: string, stored: Buffer | undefined): Buffer | undefined {
    const staged = this.staged(key);
    return staged === undefined ? stored : (staged ?? undefined);
  }

  async read(store: Store, key: Buffer): Promise<Buffer | undefined> {
    const staged = this.staged(keyString(key));
    return staged === undefined ? store.get(key) : (staged ?? undefined);
  }

  /** Calls `publish` once everything here is on disk; in the order in which they were given. */
  onDurable(publish: () => void): void {
    this.#onDurable.push(publish);
  }

  /** The write succeeded: show readers what it holds. */
  published(): void {
    this.#previous = null;
    for (const publish of this.#onDurable) publish();
  }

  /** Every transition of this group has been applied: the one before is not looked at again. */
  sealed(): void {
    this.#previous = null;
  }
}
