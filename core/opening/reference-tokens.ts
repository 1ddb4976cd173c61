import type { StoredVault } from "../columns/vault-columns.ts";
import { MODES } from "../model.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { PlacedMint } from "../store/mint-entry.ts";
import type { AssetRecord } from "../store/records.ts";
import { bindingKey } from "../store/store-keys.ts";
import { encodeBatchTokens } from "../tokens/batch-tokens.ts";
import { TokenHasher } from "../tokens/token-hash.ts";
import { TokenIndex } from "../tokens/token-index.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

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
  /** Tokens that there are. */
  size = 0;
  readonly #assetAt: (assetIndex: number) => AssetRecord | undefined;
  #suspects: Suspect[] = [];

  /** @param seed - the store's own */
  constructor(seed: Uint8Array, assetAt: (assetIndex: number) => AssetRecord | undefined) {
    this.#hasher = new TokenHasher(seed);
    this.#assetAt = assetAt;
  }

  /** The token id that a blob of an asset names; null for none. */
  idOf({ assetIndex, blob }: Pick<StoredVault, "assetIndex" | "blob">): bigint | null {
    const asset = this.#assetAt(assetIndex);
    return asset === undefined ? null : tokenIdOf(asset.standard, asset.blobScheme, blob);
  }

  /** The record of a batch's tokens; null for a void slot. */
  recordOf(vaults: readonly (StoredVault | null)[]): Buffer {
    const found = vaults.flatMap((vault, slot) => {
      const tokenId = vault === null || !this.isUnique(vault) ? null : this.idOf(vault);
      return vault === null || tokenId === null ? [] : [{ slot, hash: this.#hash(vault.assetIndex, tokenId) }];
    });
    const hashes = Uint32Array.from(found, ({ hash }) => hash);
    return encodeBatchTokens({ hashes, slots: Uint32Array.from(found, ({ slot }) => slot) });
  }

  isUnique({ assetIndex }: Pick<StoredVault, "assetIndex">): boolean {
    return this.#assetAt(assetIndex)?.standard === "erc721";
  }

  /** What an ERC-1155 vault binds its id to. */
  bindingOf(vault: StoredVault): Expected[] {
    const tokenId = this.#assetAt(vault.assetIndex)?.standard === "erc1155" ? this.idOf(vault) : null;
    if (tokenId === null) return [];
    const value = Buffer.from(hexToBytes(vault.blob));
    return [expectedRecord(bindingKey(vault.assetIndex, tokenId), value, `token ${tokenId}`)];
  }

  add(place: VaultPlace & Pick<PlacedMint, "assetIndex">, tokenId: bigint): void {
    const hash = this.#hash(place.assetIndex, tokenId);
    const token = tokenName(place.assetIndex, tokenId);
    for (const ref of this.#index.candidates(hash) ?? []) this.#suspects.push({ earlier: this.#placeOf(ref), token });
    this.#index.insert(hash, this.#refOf(place));
    this.size++;
  }

  /** A vault became void, and its token free. */
  remove(place: VaultPlace, assetIndex: number, tokenId: bigint): void {
    this.size--;
    const hash = this.#hash(assetIndex, tokenId);
    const id = packVaultId(place);
    const ref = this.#index.candidates(hash)?.find((known) => packVaultId(this.#placeOf(known)) === id);
    if (ref !== undefined) this.#index.remove(hash, ref);
  }

  /** Those found since the last time. */
  suspects(): Suspect[] {
    return this.#suspects.splice(0);
  }

  #hash(assetIndex: number, tokenId: bigint): number {
    return this.#hasher.ofId(assetIndex, tokenId);
  }

  #refOf({ mode, batchNumber, slot }: VaultPlace): number {
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
