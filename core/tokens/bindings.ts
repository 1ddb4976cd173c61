/** Ids held of each generation; about 40 bytes each. */
const GENERATION = 200_000;

/**
 * ERC-1155 ids of up to 15 digits that are known to be bound to their own decimal, so that minting more of them reads nothing. What is
 * found is always true: an id is bound once and for all. Two generations stand in for recency, as with users.
 */
export class Bindings {
  #young = new Map<number, Set<number>>();
  #old = new Map<number, Set<number>>();
  #size = 0;

  has(assetIndex: number, tokenId: number): boolean {
    if (this.#young.get(assetIndex)?.has(tokenId) === true) return true;
    if (this.#old.get(assetIndex)?.has(tokenId) !== true) return false;
    this.add(assetIndex, tokenId);
    return true;
  }

  add(assetIndex: number, tokenId: number): void {
    if (this.#size >= GENERATION) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#size = 0;
    }
    const ids = this.#young.get(assetIndex);
    if (ids === undefined) this.#young.set(assetIndex, new Set([tokenId]));
    else ids.add(tokenId);
    this.#size++;
  }
}
