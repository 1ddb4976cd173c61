import { MODES, type Mode, type Standard } from "../../model.ts";
import { tokenIdOf } from "../../protocol/blob.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../../protocol/vault.ts";
import { encodeBatchTokens } from "../../store/batch-tokens.ts";
import { type BatchRecord, itemSlotsRecord } from "../../store/records.ts";
import { keyOf, keyString } from "../../store/store-keys.ts";
import { TokenHasher } from "../../store/token-id.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { type Expected, Part } from "./reference-records.ts";
import type { ReferenceTenants } from "./reference-tenants.ts";

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

type BatchPlace = Pick<BatchRecord, "mode" | "batchNumber">;
type Content = Pick<StoredVault, "assetIndex" | "blob">;

/** The binding of an ERC-1155 id, and the first batch of each mode that holds it. */
interface Binding {
  readonly record: Expected;
  readonly firsts: Readonly<Partial<Record<Mode, number>>>;
}

/** The tokens of the journal: the ERC-721 ones by hash, because their ids would take far more memory. */
export class ReferenceTokens extends Part<{ readonly tenants: ReferenceTenants; readonly seed: Uint8Array }> {
  readonly #hasher = new TokenHasher(this.parts.seed);
  readonly #table = new TokenTable();
  /** Number of ERC-721 tokens. */
  size = 0;
  #suspects: Suspect[] = [];
  readonly #bindings = new Map<string, Binding>(); // Bindings that a later adoption can change

  /** The token id of a blob; null for none. */
  idOf({ assetIndex, blob }: Content): bigint | null {
    const asset = this.parts.tenants.asset(assetIndex);
    return asset === undefined ? null : tokenIdOf(asset.standard, asset.blobScheme, blob);
  }

  /** The record of a batch's tokens; null for a void slot. */
  recordOf(vaults: readonly (StoredVault | null)[]): Buffer {
    const found = vaults.flatMap((vault, slot) => {
      const tokenId = vault && this.#idOf("erc721", vault);
      return vault === null || tokenId === null ? [] : [{ slot, hash: this.#hasher.ofId(vault.assetIndex, tokenId) }];
    });
    const hashes = Uint32Array.from(found, ({ hash }) => hash);
    return encodeBatchTokens({ hashes, slots: Uint32Array.from(found, ({ slot }) => slot) });
  }

  /** Adds vaults to the supplies and the tokens, or removes them; null for a void slot. */
  countAll(place: BatchPlace, vaults: readonly (StoredVault | null)[], sign: 1n | -1n, firstSlot = 0): void {
    for (const [i, vault] of vaults.entries())
      if (vault !== null) this.count({ ...place, slot: firstSlot + i }, vault, sign);
  }

  /** Adds minted units to the supply, and an ERC-721 token to the tokens; or removes both. */
  count(place: VaultPlace, vault: Content & { readonly amount: bigint }, sign: 1n | -1n): void {
    const { assetIndex, amount } = vault;
    this.parts.tenants.countSupply(assetIndex, sign * amount);
    const tokenId = this.#idOf("erc721", vault);
    if (tokenId === null) return;
    if (sign < 0n) this.remove(place, assetIndex, tokenId);
    else {
      this.add(place, assetIndex, tokenId);
      this.parts.tenants.countId(assetIndex, tokenId);
    }
  }

  /**
   * The binding of an ERC-1155 vault's id.
   *
   * @param isKept - whether a later adoption can change it
   */
  bind(place: BatchPlace, vault: Content, isKept: boolean): void {
    const tokenId = this.#idOf("erc1155", vault);
    if (tokenId === null) return;
    const { assetIndex, blob } = vault;
    const record = { key: keyOf.binding(assetIndex, tokenId), value: hexToBytes(blob), name: `token ${tokenId}` };
    const name = keyString(record.key);
    const { firsts = {} } = this.#bindings.get(name) ?? {};
    if (isKept) this.#bindings.set(name, { record, firsts: { [place.mode]: place.batchNumber, ...firsts } });
    else this.out.bytes(record.key, record.value, record.name);
  }

  /** Deletes bindings that no batch holds once the batches from these on are gone. */
  unbind(dropped: readonly BatchPlace[]): void {
    for (const [name, { record, firsts }] of this.#bindings) {
      const left = Object.entries(firsts).filter(([mode, first]) =>
        dropped.every((from) => from.mode !== mode || first < from.batchNumber),
      );
      if (left.length === 0) this.#bindings.delete(name);
      else this.#bindings.set(name, { record, firsts: Object.fromEntries(left) });
    }
  }

  /** Puts out the bindings, which nothing changes any more. */
  override finish(): void {
    for (const { record } of this.#bindings.values()) this.out.bytes(record.key, record.value, record.name);
    this.#bindings.clear();
  }

  /** The slots of a sealed batch by ERC-1155 id; null for a void slot. */
  putItems({ mode, batchNumber }: BatchPlace, vaults: readonly (StoredVault | null)[]): void {
    const slots = new Map<string, { readonly key: Buffer; readonly slots: number[] }>();
    for (const [slot, vault] of vaults.entries()) {
      const tokenId = vault && this.#idOf("erc1155", vault);
      if (vault === null || tokenId === null) continue;
      const key = keyOf.item(vault.assetIndex, tokenId, mode, batchNumber);
      const known = slots.get(keyString(key));
      if (known === undefined) slots.set(keyString(key), { key, slots: [slot] });
      else known.slots.push(slot);
    }
    for (const { key, slots: held } of slots.values())
      this.out.put(key, itemSlotsRecord, held, `the vaults of a token in ${mode}-${batchNumber}`);
  }

  add(place: VaultPlace, assetIndex: number, tokenId: bigint): void {
    const token = tokenName(assetIndex, tokenId);
    for (const earlier of this.#table.add(this.#hasher.ofId(assetIndex, tokenId), numberOf(place)))
      this.#suspects.push({ earlier: placeOf(earlier), token });
    this.size++;
  }

  /** A vault became void, so its token is free. */
  remove(place: VaultPlace, assetIndex: number, tokenId: bigint): void {
    this.size--;
    this.#table.remove(this.#hasher.ofId(assetIndex, tokenId), numberOf(place));
  }

  /** The suspects since the last call. */
  suspects(): Suspect[] {
    return this.#suspects.splice(0);
  }

  /** The token id of a vault of this standard; null for any other. */
  #idOf(standard: Standard, vault: Content): bigint | null {
    return this.parts.tenants.asset(vault.assetIndex)?.standard === standard ? this.idOf(vault) : null;
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
    for (; this.#places[at] !== FREE; at = this.#next(at))
      if (this.#hashes[at] === hash && this.#places[at] !== REMOVED) known.push(this.#places[at] as number);
    this.#hashes[at] = hash;
    this.#places[at] = place;
    this.#used++;
    return known;
  }

  remove(hash: number, place: number): void {
    for (let at = this.#home(hash); this.#places[at] !== FREE; at = this.#next(at))
      if (this.#places[at] === place) this.#places[at] = REMOVED;
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
    for (let i = 0; i < places.length; i++)
      if ((places[i] as number) > 0) this.add(hashes[i] as number, places[i] as number);
  }
}
