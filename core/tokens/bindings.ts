import { Recent } from "../recent.ts";

/** Ids held of each generation; about 40 bytes each. */
const GENERATION = 200_000;

/**
 * ERC-1155 ids of up to 15 digits that are known to be bound to their own decimal, so that minting more of them reads nothing. An id is
 * bound once and for all, so what is found is always true.
 */
export class Bindings {
  readonly #ids = new Recent<number, number, true>(GENERATION);

  has(assetIndex: number, tokenId: number): boolean {
    return this.#ids.get(assetIndex, tokenId) === true;
  }

  /** Forgets all of them. */
  clear(): void {
    this.#ids.clear();
  }

  add(assetIndex: number, tokenId: number): void {
    this.#ids.set(assetIndex, tokenId, true);
  }
}
