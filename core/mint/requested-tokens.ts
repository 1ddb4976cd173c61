import type { MintColumns } from "../columns/mint-columns.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import { FIRST_PENDING } from "../ledger/vault-refs.ts";
import type { Group } from "../store/group.ts";
import type { AssetRecord } from "../store/records.ts";
import { bindingKey, keyString } from "../store/store-keys.ts";
import { mintedTokenId } from "../tokens/token-id.ts";
import type { Numbered } from "./numbering.ts";
import { TokenLookup } from "./uniqueness.ts";

/** Refs from here on are positions in the request: their vaults have no place yet. */
const PENDING = FIRST_PENDING;

/** The id that an entry's blob names, read in full; null when it names none. */
export function tokenIdAt(columns: MintColumns, asset: AssetRecord, entry: number): bigint | null {
  try {
    const blob = columns.blobs.subarray(columns.blobStart(entry), columns.blobEnd[entry]);
    return mintedTokenId(asset, blob) ?? 0n;
  } catch (error) {
    if (!(error instanceof MintmarkError) || error.code !== "blob_invalid") throw error;
    return null;
  }
}

/** The ERC-721 tokens of a request. Each must be new to the store and to the request. */
export class RequestedTokens {
  /** By entry; ERC-721 only. */
  readonly hashes: Uint32Array;
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  #any = false;
  /** 1 for each entry whose token is certainly new; null when no token is. */
  #isNew: Uint8Array | null = null;
  /** null until a token's hash is known. */
  #lookup: TokenLookup | null = null;

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
    this.hashes = new Uint32Array(columns.count);
  }

  /**
   * Notes an entry's token.
   *
   * @param short - its id; -1 when the id needs the full read
   * @returns whether the blob names a token
   */
  ask(asset: AssetRecord, entry: number, short: number): boolean {
    const { hasher } = this.#ledger;
    const tokenId = short >= 0 ? null : tokenIdAt(this.#columns, asset, entry);
    if (short < 0 && tokenId === null) return false;
    const hash = tokenId === null ? hasher.ofShortId(asset.assetIndex, short) : hasher.ofId(asset.assetIndex, tokenId);
    this.hashes[entry] = hash;
    this.#any = true;
    return true;
  }

  /** The same tokens with those that the engine has numbered, which are new. */
  numbered({ columns, origins }: Numbered): RequestedTokens {
    const tokens = new RequestedTokens(this.#ledger, columns);
    tokens.#any = true;
    tokens.#lookup = this.#lookup;
    tokens.#isNew = new Uint8Array(columns.count);
    for (let entry = 0; entry < columns.count; entry++) {
      const asset = this.#ledger.assetAt(columns.assetIndex[entry] as number);
      if (asset.nextTokenId === null) tokens.hashes[entry] = this.hashes[origins[entry] as number] as number;
      else {
        tokens.ask(asset, entry, -1);
        tokens.#isNew[entry] = 1;
      }
    }
    return tokens;
  }

  /** The records that decide whether the tokens are new. */
  keys(): Buffer[] {
    if (!this.#any) return [];
    const { tokens } = this.#ledger;
    const atHome = tokens.refsAtHome(this.hashes);
    for (let entry = 0; entry < atHome.length; entry++) {
      if (atHome[entry] === 0 || !this.#isUnique(entry)) continue;
      const candidates = tokens.candidates(this.hashes[entry] as number);
      if (candidates === null) continue;
      this.#lookup ??= new TokenLookup(this.#ledger);
      this.#lookup.prepare(candidates);
    }
    return this.#lookup?.keys() ?? [];
  }

  /** @param stored - in the order of `keys` */
  receive(stored: readonly (Buffer | undefined)[]): void {
    this.#lookup?.receive(stored);
  }

  /** Adds the tokens to the index, without a place for now. Adds none when one of them exists. */
  take(): boolean {
    const { tokens } = this.#ledger;
    const { count } = this.#columns;
    // Another request of the group may have minted them since the look-up.
    if (this.#any) tokens.prefetch(this.hashes);
    for (let entry = 0; entry < count; entry++) {
      if (!this.#isUnique(entry)) continue;
      const hash = this.hashes[entry] as number;
      if (tokens.insertNew(hash, PENDING + entry)) continue;
      if (this.#isNew?.[entry] !== 1 && this.#exists(tokens.candidates(hash) ?? [], entry)) {
        this.#giveBack(entry);
        return false;
      }
      tokens.insert(hash, PENDING + entry);
    }
    return true;
  }

  /** Records the place of an entry's token. */
  place(entry: number, batch: OpenBatch, slot: number): void {
    this.#ledger.tokens.move(this.hashes[entry] as number, PENDING + entry, this.#ledger.refs.refOf(batch, slot));
  }

  #giveBack(end: number): void {
    for (let entry = end - 1; entry >= 0; entry--) {
      if (this.#isUnique(entry)) this.#ledger.tokens.remove(this.hashes[entry] as number, PENDING + entry);
    }
  }

  #isUnique(entry: number): boolean {
    return this.#ledger.standards[this.#columns.assetIndex[entry] as number] === "erc721";
  }

  /** Whether a candidate is the entry's token: in this request, or minted before. */
  #exists(candidates: readonly number[], entry: number): boolean {
    const { assetIndex } = this.#columns;
    const asset = this.#ledger.assetAt(assetIndex[entry] as number);
    const tokenId = tokenIdAt(this.#columns, asset, entry) ?? 0n;
    const earlier = candidates.filter((ref) => ref >= PENDING).map((ref) => ref - PENDING);
    const minted = candidates.filter((ref) => ref < PENDING);
    this.#lookup ??= new TokenLookup(this.#ledger);
    return (
      earlier.some(
        (other) => assetIndex[other] === asset.assetIndex && tokenIdAt(this.#columns, asset, other) === tokenId,
      ) || this.#lookup.holds(minted, asset.assetIndex, tokenId)
    );
  }
}

/** An ERC-1155 id that may be unbound. */
interface Asked {
  readonly entry: number;
  readonly key: Buffer;
  /** The id; -1 when it needs the full read. */
  readonly short: number;
}

/** The ERC-1155 ids of a request. The first blob that names an id binds it. */
export class RequestedBindings {
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  readonly #asked: Asked[] = [];
  /** The ids that the request binds, once they are checked. */
  #bound: readonly Asked[] = [];

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
  }

  /** Notes an entry's id, unless it is bound to the entry's blob. Returns whether the blob names an id. */
  ask(asset: AssetRecord, entry: number, short: number): boolean {
    if (short >= 0 && this.#ledger.bindings.get(asset.assetIndex, short)) return true;
    const tokenId = short >= 0 ? BigInt(short) : tokenIdAt(this.#columns, asset, entry);
    if (tokenId === null) return false;
    this.#asked.push({ entry, key: bindingKey(asset.assetIndex, tokenId), short });
    return true;
  }

  keys(): Buffer[] {
    return this.#asked.map(({ key }) => key);
  }

  /**
   * Whether no id is bound to another blob.
   *
   * @param stored - in the order of `keys`
   */
  check(group: Group, stored: readonly (Buffer | undefined)[]): boolean {
    const bound: Asked[] = [];
    const inRequest = new Map<string, Buffer>();
    for (const [i, asked] of this.#asked.entries()) {
      const name = keyString(asked.key);
      const blob = this.#blobOf(asked);
      const record = group.resolveString(name, stored[i]);
      const known = record ?? inRequest.get(name);
      if (known !== undefined && !blob.equals(known)) return false;
      if (known === undefined) {
        inRequest.set(name, blob);
        bound.push(asked);
      } else if (record !== undefined) this.#remember(asked);
    }
    this.#bound = bound;
    return true;
  }

  /** Writes the bindings of the request. */
  bind(group: Group): void {
    for (const asked of this.#bound) {
      group.stage(asked.key, Buffer.from(this.#blobOf(asked)));
      this.#remember(asked);
    }
  }

  /** The bytes in the request's own column. */
  #blobOf({ entry }: Asked): Buffer {
    const { blobs, blobEnd } = this.#columns;
    const start = this.#columns.blobStart(entry);
    return Buffer.from(blobs.buffer, blobs.byteOffset + start, (blobEnd[entry] as number) - start);
  }

  #remember({ entry, short }: Asked): void {
    if (short >= 0) this.#ledger.bindings.set(this.#columns.assetIndex[entry] as number, short, true);
  }
}
