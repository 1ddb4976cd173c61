import { MAX_UINT64 } from "../protocol/bounds.ts";
import { type BatchVaultPlace, packVaultId, unpackBatchVaultId } from "../protocol/vault.ts";

const FREE = 0n;
const REMOVED = MAX_UINT64; // No vault has such a high id
const MAX_LOAD = 0.8;
const GROWTH = 1.5;

/**
 * Vault ids plus one by 32-bit hash, 15 to 23 bytes a token. The search for a hash starts at its
 * share of the table.
 */
export class TokenTable {
  #hashes = new Uint32Array(1024);
  #ids = new BigUint64Array(1024);
  #used = 0;

  /** The vaults of a hash. */
  find(hash: number): BatchVaultPlace[] {
    const found: BatchVaultPlace[] = [];
    for (let at = this.#home(hash); this.#ids[at] !== FREE; at = this.#next(at)) {
      const id = this.#ids[at]!;
      if (this.#hashes[at] === hash && id !== REMOVED) found.push(unpackBatchVaultId(id - 1n));
    }
    return found;
  }

  add(hash: number, place: BatchVaultPlace): void {
    this.#insert(hash, packVaultId(place) + 1n);
  }

  remove(hash: number, place: BatchVaultPlace): void {
    const id = packVaultId(place) + 1n;
    for (let at = this.#home(hash); this.#ids[at] !== FREE; at = this.#next(at))
      if (this.#ids[at] === id) this.#ids[at] = REMOVED;
  }

  #insert(hash: number, id: bigint): void {
    if (this.#used + 1 > this.#ids.length * MAX_LOAD) this.#grow();
    let at = this.#home(hash);
    while (this.#ids[at] !== FREE) at = this.#next(at);
    this.#hashes[at] = hash;
    this.#ids[at] = id;
    this.#used++;
  }

  #home(hash: number): number {
    return Math.floor((hash / 2 ** 32) * this.#ids.length);
  }

  #next(at: number): number {
    return at + 1 === this.#ids.length ? 0 : at + 1;
  }

  #grow(): void {
    const [hashes, ids] = [this.#hashes, this.#ids];
    const capacity = Math.ceil(ids.length * GROWTH);
    this.#hashes = new Uint32Array(capacity);
    this.#ids = new BigUint64Array(capacity);
    this.#used = 0;
    for (const [i, id] of ids.entries())
      if (id !== FREE && id !== REMOVED) this.#insert(hashes[i]!, id);
  }
}
