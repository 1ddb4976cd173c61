import { MODES, type Mode } from "../../model.ts";
import { tokenIdOf } from "../../protocol/blob.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../../protocol/vault.ts";
import { encodeBatchTokens } from "../../store/batch-tokens.ts";
import { encodeRecord } from "../../store/layout.ts";
import type { PlacedMint } from "../../store/mint-entry.ts";
import { type AssetRecord, itemSlotsRecord } from "../../store/records.ts";
import { bindingKey, itemKey, keyString } from "../../store/store-keys.ts";
import { TokenHasher } from "../../store/token-id.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/** A token whose hash equals an earlier token's. */
export interface Suspect {
  readonly earlier: VaultPlace;
  /** From {@link tokenName}. */
  readonly token: string;
}

/** A name for a token among all assets. */
export function tokenName(assetIndex: number, tokenId: bigint): string {
  return `${tokenId} of asset ${assetIndex}`;
}

/** The ERC-721 tokens of the journal, by hash, because their ids would take far more memory. */
export class ReferenceTokens {
  readonly #hasher: TokenHasher;
  readonly #table = new TokenTable();
  /** Number of tokens. */
  size = 0;
  readonly #assetAt: (assetIndex: number) => AssetRecord | undefined;
  #suspects: Suspect[] = [];

  /** @param seed - the store's own */
  constructor(seed: Uint8Array, assetAt: (assetIndex: number) => AssetRecord | undefined) {
    this.#hasher = new TokenHasher(seed);
    this.#assetAt = assetAt;
  }

  /** The token id of a blob; null for none. */
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

  /** The binding of an ERC-1155 vault's id. */
  bindingOf(vault: StoredVault): Expected[] {
    const tokenId = this.#assetAt(vault.assetIndex)?.standard === "erc1155" ? this.idOf(vault) : null;
    if (tokenId === null) return [];
    const value = Buffer.from(hexToBytes(vault.blob));
    return [expectedRecord(bindingKey(vault.assetIndex, tokenId), value, `token ${tokenId}`)];
  }

  /** The slots of a sealed batch by ERC-1155 id; null for a void slot. */
  itemsOf(mode: Mode, batchNumber: number, vaults: readonly (StoredVault | null)[]): Expected[] {
    const slots = new Map<string, { readonly key: Buffer; readonly slots: number[] }>();
    for (const [slot, vault] of vaults.entries()) {
      const isItem = vault !== null && this.#assetAt(vault.assetIndex)?.standard === "erc1155";
      const tokenId = isItem ? this.idOf(vault) : null;
      if (vault === null || tokenId === null) continue;
      const key = itemKey(vault.assetIndex, tokenId, mode, batchNumber);
      const known = slots.get(keyString(key));
      if (known === undefined) slots.set(keyString(key), { key, slots: [slot] });
      else known.slots.push(slot);
    }
    return [...slots.values()].map(({ key, slots }) =>
      expectedRecord(key, encodeRecord(itemSlotsRecord, slots), `the vaults of a token in ${mode}-${batchNumber}`),
    );
  }

  add(place: VaultPlace & Pick<PlacedMint, "assetIndex">, tokenId: bigint): void {
    const hash = this.#hash(place.assetIndex, tokenId);
    const token = tokenName(place.assetIndex, tokenId);
    for (const earlier of this.#table.add(hash, numberOf(place)))
      this.#suspects.push({ earlier: placeOf(earlier), token });
    this.size++;
  }

  /** A vault became void, so its token is free. */
  remove(place: VaultPlace, assetIndex: number, tokenId: bigint): void {
    this.size--;
    this.#table.remove(this.#hash(assetIndex, tokenId), numberOf(place));
  }

  /** The suspects since the last call. */
  suspects(): Suspect[] {
    return this.#suspects.splice(0);
  }

  #hash(assetIndex: number, tokenId: bigint): number {
    return this.#hasher.ofId(assetIndex, tokenId);
  }
}

/** A place as a number from 1 to 2^53: its vault id plus one, with the mode as the last bit instead of the first. */
function numberOf({ mode, batchNumber, slot }: VaultPlace): number {
  return 2 * Number(packVaultId({ mode: "validium", batchNumber, slot })) + MODES.indexOf(mode) + 1;
}

function placeOf(number: number): VaultPlace {
  const { batchNumber, slot } = unpackVaultId(BigInt(Math.floor((number - 1) / 2)));
  return { mode: MODES[(number - 1) % 2] ?? "validium", batchNumber, slot };
}

const FREE = 0;
const REMOVED = -1;
const MAX_LOAD = 0.8;
const GROWTH = 1.5;

/** Places by 32-bit hash, 15 to 23 bytes a token. The search for a hash starts at its share of the table. */
class TokenTable {
  #hashes = new Uint32Array(1024);
  #places = new Float64Array(1024);
  #used = 0;

  /** Adds a place; returns the earlier ones with the same hash. */
  add(hash: number, place: number): number[] {
    if (this.#used + 1 > this.#places.length * MAX_LOAD) this.#grow();
    const known: number[] = [];
    let at = this.#home(hash);
    for (; this.#places[at] !== FREE; at = this.#next(at)) {
      if (this.#hashes[at] === hash && this.#places[at] !== REMOVED) known.push(this.#places[at] as number);
    }
    this.#hashes[at] = hash;
    this.#places[at] = place;
    this.#used++;
    return known;
  }

  remove(hash: number, place: number): void {
    for (let at = this.#home(hash); this.#places[at] !== FREE; at = this.#next(at)) {
      if (this.#places[at] === place) this.#places[at] = REMOVED;
    }
  }

  #home(hash: number): number {
    return Math.floor((hash / 2 ** 32) * this.#places.length);
  }

  #next(at: number): number {
    return at + 1 === this.#places.length ? 0 : at + 1;
  }

  #grow(): void {
    const [hashes, places] = [this.#hashes, this.#places];
    const capacity = Math.ceil(places.length * GROWTH);
    this.#hashes = new Uint32Array(capacity);
    this.#places = new Float64Array(capacity);
    this.#used = 0;
    for (let i = 0; i < places.length; i++) {
      if ((places[i] as number) > 0) this.add(hashes[i] as number, places[i] as number);
    }
  }
}
