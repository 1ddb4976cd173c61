import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import type { Hex } from "../model.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { keyOf, keyString } from "../store/store-keys.ts";
import { CHUNK_VAULTS, decodeChunk, type StoredVault } from "../store/vault-columns.ts";

/**
 * Decides whether ERC-721 tokens exist. The index gives the vaults whose tokens have the same hash: nearly always none.
 * Vaults on disk are read before the transition, the others are in memory.
 */
export class TokenLookup {
  readonly #ledger: Ledger;
  /** Records to read, by {@link keyString}, with their places. */
  readonly #asked = new Map<string, Buffer>();
  readonly #inMemory = new Map<number, OpenBatch>();
  readonly #stored = new Map<string, Buffer>();
  /** Decoded on first use: a request can name a token of ten thousand records, and the first few may decide. */
  readonly #chunks = new Map<string, StoredVault[]>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Notes the records to read for these refs, which the index has for one hash. */
  prepare(refs: readonly number[]): void {
    for (const ref of refs) {
      const place = this.#ledger.refs.placeOf(ref);
      const batch = this.#ledger.unsealed.at(place);
      // The ledger drops a batch from memory once it is on disk, so this keeps it.
      if (batch !== undefined) this.#inMemory.set(ref, batch);
      else {
        const key = chunkKeyOf(place);
        this.#asked.set(keyString(key), key);
      }
    }
  }

  /** The records that {@link prepare} asks for. */
  keys(): Buffer[] {
    return [...this.#asked.values()];
  }

  /** @param stored - in the order of `keys`, from a position on */
  receive(stored: readonly (Buffer | undefined)[], from: number): void {
    let at = from;
    for (const name of this.#asked.keys()) {
      const record = stored[at++];
      if (record === undefined)
        throw new MintmarkError("store_corrupt", "Vaults that the index of tokens names are missing.");
      this.#stored.set(name, record);
    }
  }

  /** Whether a vault of these refs holds the token. */
  holds(refs: readonly number[], assetIndex: number, tokenId: bigint): boolean {
    const { standard, blobScheme } = this.#ledger.assetAt(assetIndex);
    return refs.some((ref) => {
      const vault = this.#vaultOf(ref);
      return vault.assetIndex === assetIndex && tokenIdOf(standard, blobScheme, vault.blob) === tokenId;
    });
  }

  #vaultOf(ref: number): { readonly assetIndex: number; readonly blob: Hex } {
    const place = this.#ledger.refs.placeOf(ref);
    const batch = this.#inMemory.get(ref) ?? this.#ledger.unsealed.at(place);
    if (batch !== undefined) return batch.vaults.at(place.slot);
    const vault = this.#chunk(keyString(chunkKeyOf(place)))?.[place.slot % CHUNK_VAULTS];
    if (vault === undefined)
      throw new MintmarkError("store_corrupt", "A vault that the index of tokens names is missing.");
    return vault;
  }

  #chunk(name: string): StoredVault[] | undefined {
    const known = this.#chunks.get(name);
    const record = this.#stored.get(name);
    if (known !== undefined || record === undefined) return known;
    const chunk = decodeChunk(record);
    this.#chunks.set(name, chunk);
    return chunk;
  }
}

function chunkKeyOf({ mode, batchNumber, slot }: VaultPlace): Buffer {
  return keyOf.chunk(mode, batchNumber, Math.floor(slot / CHUNK_VAULTS));
}
