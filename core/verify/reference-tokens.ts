import { TokenHasher } from "../ledger/tokens/token-hash.ts";
import { TokenIndex } from "../ledger/tokens/token-index.ts";
import { MODES } from "../model.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { PlacedMint } from "../store/mint-entry.ts";

/** A token whose hash an earlier one had already. */
export interface Suspect {
  readonly earlier: VaultPlace;
  /** As {@link tokenName} gives it. */
  readonly token: string;
}

/** Tells tokens of all assets apart. */
export function tokenName(assetIndex: number, tokenId: bigint): string {
  return `${tokenId} of asset ${assetIndex}`;
}

/** The ERC-721 tokens that the journal has told of: 19 to 24 bytes each while `verify` runs, so not their ids but their hashes. */
export class ReferenceTokens {
  readonly #hasher: TokenHasher;
  readonly #index = new TokenIndex();
  /** Vault ids without their top bit, which is in {@link MODES}' order the last one here; by ref. */
  #places = new Float64Array(1024);
  #count = 0;
  #suspects: Suspect[] = [];

  constructor(seed: Uint8Array) {
    this.#hasher = new TokenHasher(seed);
  }

  hash(assetIndex: number, tokenId: bigint): number {
    return this.#hasher.ofId(assetIndex, tokenId);
  }

  add(place: PlacedMint, tokenId: bigint): void {
    const hash = this.hash(place.assetIndex, tokenId);
    const token = tokenName(place.assetIndex, tokenId);
    for (const ref of this.#index.candidates(hash) ?? []) this.#suspects.push({ earlier: this.#placeOf(ref), token });
    this.#index.insert(hash, this.#refOf(place));
  }

  /** A vault became void, and its token free. */
  remove(place: VaultPlace, assetIndex: number, tokenId: bigint): void {
    const hash = this.hash(assetIndex, tokenId);
    const id = packVaultId(place);
    const ref = this.#index.candidates(hash)?.find((known) => packVaultId(this.#placeOf(known)) === id);
    if (ref !== undefined) this.#index.remove(hash, ref);
  }

  /** Those found since the last time. */
  suspects(): Suspect[] {
    return this.#suspects.splice(0);
  }

  #refOf({ mode, batchNumber, slot }: PlacedMint): number {
    this.#count++;
    if (this.#count >= this.#places.length) {
      const larger = new Float64Array(2 * this.#places.length);
      larger.set(this.#places);
      this.#places = larger;
    }
    const within = Number(packVaultId({ mode: "validium", batchNumber, slot }));
    this.#places[this.#count] = 2 * within + MODES.indexOf(mode);
    return this.#count;
  }

  #placeOf(ref: number): VaultPlace {
    const packed = this.#places[ref] as number;
    const { batchNumber, slot } = unpackVaultId(BigInt(Math.floor(packed / 2)));
    return { mode: MODES[packed % 2] ?? "validium", batchNumber, slot };
  }
}
