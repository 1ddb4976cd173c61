import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import { FIRST_PENDING } from "../ledger/vault-refs.ts";
import { tokenIdOfBytes } from "../protocol/blob.ts";
import { columnOf, type MintColumns } from "../store/mint-columns.ts";
import type { AssetRecord } from "../store/records.ts";
import type { EntryReport } from "./form.ts";
import type { Numbered } from "./numbering.ts";
import { TokenLookup } from "./uniqueness.ts";

/** Refs from here on are positions in the request: their vaults have no place yet. */
const PENDING = FIRST_PENDING;

/** The id that an entry's blob names; 0 for an ERC-20. */
export function tokenIdAt(
  columns: MintColumns,
  { standard, blobScheme }: Pick<AssetRecord, "standard" | "blobScheme">,
  entry: number,
): bigint {
  const short = columns.shortId[entry] as number;
  return short >= 0 ? BigInt(short) : (tokenIdOfBytes(standard, blobScheme, columns.blobBytes(entry)) ?? 0n);
}

/** The ERC-721 tokens of a request. Each must be new to the store and to the request. */
export class RequestedTokens {
  /** By entry; 0 for all but the ERC-721 tokens that the request names. */
  readonly hashes: Uint32Array;
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  /** 1 for each entry whose token the engine numbers, which is new; null when it numbers none. */
  #isNew: Uint8Array | null = null;
  /** null until a token's hash is known. */
  #lookup: TokenLookup | null = null;
  /** Where the records begin among those of the request. */
  #from = 0;
  /** Entries before this one that are in the index. */
  #taken = 0;

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
    this.hashes = columnOf(Uint32Array, columns.count);
  }

  /** Notes an entry's token. */
  ask(asset: AssetRecord, entry: number): void {
    const { hasher } = this.#ledger;
    const short = this.#columns.shortId[entry] as number;
    this.hashes[entry] =
      short >= 0
        ? hasher.ofShortId(asset.assetIndex, short)
        : hasher.ofId(asset.assetIndex, tokenIdAt(this.#columns, asset, entry));
  }

  /** Adds the keys of the records that decide whether the tokens are new. */
  addKeys(keys: Buffer[]): void {
    const { tokens } = this.#ledger;
    const atHome = tokens.refsAtHome(this.hashes);
    this.#from = keys.length;
    for (let entry = 0; entry < this.hashes.length; entry++) {
      if (atHome[entry] === 0 || this.hashes[entry] === 0) continue;
      const candidates = tokens.candidates(this.hashes[entry] as number);
      if (candidates === null) continue;
      this.#lookup ??= new TokenLookup(this.#ledger);
      this.#lookup.prepare(candidates);
    }
    if (this.#lookup !== null) keys.push(...this.#lookup.keys());
  }

  /**
   * Adds the tokens to the index, without a place for now, and reports those that exist.
   *
   * @param stored - the request's records
   */
  take(stored: readonly (Buffer | undefined)[], report: EntryReport): void {
    this.#lookup?.receive(stored, this.#from);
    const { tokens } = this.#ledger;
    const { count } = this.#columns;
    // Another request of the group may have minted them since the look-up. This brings their places into the caches.
    tokens.refsAtHome(this.hashes);
    for (let entry = 0; entry < count; entry++) {
      const hash = this.hashes[entry] as number;
      if (hash === 0) continue;
      if (tokens.insertNew(hash, PENDING + entry)) continue;
      if (this.#isNew?.[entry] !== 1) this.#check(tokens.candidates(hash) ?? [], entry, report);
      tokens.insert(hash, PENDING + entry);
    }
    this.#taken = count;
  }

  /** Replaces the tokens by the same with those that the engine has numbered. */
  numbered({ columns, origins }: Numbered, stored: readonly (Buffer | undefined)[]): RequestedTokens {
    this.giveBack();
    const tokens = new RequestedTokens(this.#ledger, columns);
    tokens.#lookup = this.#lookup;
    tokens.#from = this.#from;
    tokens.#isNew = new Uint8Array(columns.count);
    for (let entry = 0; entry < columns.count; entry++) {
      const asset = this.#ledger.assetAt(columns.assetIndex[entry] as number);
      if (asset.nextTokenId === null) tokens.hashes[entry] = this.hashes[origins[entry] as number] as number;
      else {
        tokens.ask(asset, entry);
        tokens.#isNew[entry] = 1;
      }
    }
    tokens.take(stored, () => {
      throw new Error("a token that was new is not");
    });
    return tokens;
  }

  /** Takes the tokens out of the index again. */
  giveBack(): void {
    for (let entry = this.#taken - 1; entry >= 0; entry--) {
      const hash = this.hashes[entry] as number;
      if (hash !== 0) this.#ledger.tokens.remove(hash, PENDING + entry);
    }
    this.#taken = 0;
  }

  /** Records the place of an entry's token. */
  place(entry: number, batch: OpenBatch, slot: number): void {
    this.#ledger.tokens.move(this.hashes[entry] as number, PENDING + entry, this.#ledger.refs.refOf(batch, slot));
  }

  /** Reports an entry whose token is among the candidates: minted before, or earlier in this request. */
  #check(candidates: readonly number[], entry: number, report: EntryReport): void {
    const { assetIndex } = this.#columns;
    const asset = this.#ledger.assetAt(assetIndex[entry] as number);
    const tokenId = tokenIdAt(this.#columns, asset, entry);
    const minted = candidates.filter((ref) => ref < PENDING);
    this.#lookup ??= new TokenLookup(this.#ledger);
    if (this.#lookup.holds(minted, asset.assetIndex, tokenId)) {
      report(entry, this.#columns.tokenField(entry), "token_already_minted", "this token has been minted before");
      return;
    }
    const earlier = candidates.filter((ref) => ref >= PENDING).map((ref) => ref - PENDING);
    const isSame = (other: number) =>
      assetIndex[other] === asset.assetIndex && tokenIdAt(this.#columns, asset, other) === tokenId;
    if (earlier.some(isSame))
      report(entry, this.#columns.tokenField(entry), "duplicate_mint", "occurs more than once in this request");
  }
}
