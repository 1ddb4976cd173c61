import type { Store, StoreOperation } from "./ports.ts";
import { keyString } from "./store-keys.ts";

/** The changes of one atomic write, of one or many transitions. Later ones can read here before it is durable. */
export class Group {
  readonly operations: StoreOperation[] = [];
  readonly #staged = new Map<string, Buffer | null>();
  readonly #onDurable: (() => void)[] = [];
  /** The previous group, while this one's reads may not see its write. */
  #previous: Group | null;

  constructor(previous: Group | null = null) {
    this.#previous = previous;
  }

  /** Writes a record that no transition reads before the write is durable. */
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

  /** The value of a key in this group or the previous one: null when removed, undefined when unchanged. */
  staged(key: string): Buffer | null | undefined {
    const own = this.#staged.get(key);
    return own !== undefined || this.#previous === null ? own : this.#previous.staged(key);
  }

  /** The record after this group, given the stored one. */
  resolve(key: Buffer, stored: Buffer | undefined): Buffer | undefined {
    return this.resolveString(keyString(key), stored);
  }

  /** The same for a key as a string. */
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

  /** After the write: shows the changes to readers. */
  published(): void {
    this.#previous = null;
    for (const publish of this.#onDurable) publish();
  }

  /** All transitions of this group have been applied, so the previous group is no longer needed. */
  sealed(): void {
    this.#previous = null;
  }
}
