/**
 * A cache of recently used entries in two generations: a hit moves an entry to the young one; when
 * that is full, the old one is dropped. Entries have two keys, so a lookup needs no joined key.
 */
export class Recent<A, B, V> {
  readonly #generation: number;
  readonly #weightOf: (value: V) => number;
  #young = new Map<A, Map<B, V>>();
  #old = new Map<A, Map<B, V>>();
  /** Weight of the young generation. */
  #weight = 0;

  /**
   * @param generation - maximum weight of a generation
   * @param weightOf - the weight of an entry, which must not change while it is here
   */
  constructor(generation: number, weightOf: (value: V) => number = () => 1) {
    this.#generation = generation;
    this.#weightOf = weightOf;
  }

  get(a: A, b: B): V | undefined {
    const young = this.#young.get(a)?.get(b);
    if (young !== undefined) return young;
    const old = this.#old.get(a)?.get(b);
    if (old !== undefined) this.set(a, b, old);
    return old;
  }

  set(a: A, b: B, value: V): void {
    if (this.#weight >= this.#generation) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#weight = 0;
    }
    const entries = this.#young.get(a);
    if (entries === undefined) this.#young.set(a, new Map([[b, value]]));
    else entries.set(b, value);
    this.#weight += this.#weightOf(value);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
    this.#weight = 0;
  }

  /** Removes an entry from both generations and returns it. */
  take(a: A, b: B): V | undefined {
    const young = this.#young.get(a)?.get(b);
    const value = young ?? this.#old.get(a)?.get(b);
    if (young !== undefined) this.#weight -= this.#weightOf(young);
    this.#young.get(a)?.delete(b);
    this.#old.get(a)?.delete(b);
    return value;
  }
}
