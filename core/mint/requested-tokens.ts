import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import { FIRST_PENDING } from "../ledger/vault-refs.ts";
import type { Hex } from "../model.ts";
import { mintingBlobTextOf, tokenIdOf, tokenIdOfBytes } from "../protocol/minting-blob.ts";
import type { Group } from "../store/group.ts";
import { columnOf, MintColumns } from "../store/mint-columns.ts";
import type { AssetFacts, AssetRecord } from "../store/records.ts";
import { keyString } from "../store/store-keys.ts";
import { MAX_SHORT_ID } from "../store/token-id.ts";
import { CHUNK_VAULTS, chunkKeyOf, decodeChunk, type StoredVault } from "../store/vault-columns.ts";
import type { EntryReport } from "./form.ts";

/** A request with an id for each token that the engine numbers, one entry a token. */
export interface Numbered {
  readonly columns: MintColumns;
  /** The entry of the original request for each entry here. */
  readonly origins: Uint32Array;
}

/** Gives each entry without a token id the next ids of its asset, in the order of the request. */
export function numberTokens(
  columns: MintColumns,
  assetAt: (assetIndex: number) => AssetRecord,
): Numbered {
  const { assetIndex, mode, amountHigh, amountLow } = columns;
  const numbered = new MintColumns(columns.minted);
  const origins = new Uint32Array(columns.minted);
  const next = new Map<number, bigint>();
  let to = 0;
  const add = (entry: number, mintingBlob: Uint8Array, shortId: number): void => {
    origins[to] = entry;
    numbered.assetIndex[to] = assetIndex[entry]!;
    numbered.setMode(to, mode[entry]!);
    numbered.setAmount(to, amountHigh[entry]!, amountLow[entry]!);
    numbered.shortId[to] = shortId;
    for (const column of ["references", "metadata"] as const) {
      const text = columns[column]?.[entry];
      if (text) numbered.setText(column, to, text);
    }
    numbered.putMintingBlob(to++, mintingBlob);
  };
  numbered.recipients.push(...columns.recipients);
  let entry = 0;
  for (const entries of columns.userCounts) {
    const first = to;
    for (const behind = entry + entries; entry < behind; entry++) {
      const asset = assetAt(assetIndex[entry]!);
      if (asset.nextTokenId === null) {
        add(entry, columns.mintingBlobBytes(entry), columns.shortId[entry]!);
        continue;
      }
      let id = next.get(asset.assetIndex) ?? asset.nextTokenId;
      for (let i = columns.quantityAt(entry); i > 0; i--, id++) {
        const isShort = asset.mintingBlobScheme === "mintmark" && id <= MAX_SHORT_ID;
        add(
          entry,
          Buffer.from(mintingBlobTextOf(asset.mintingBlobScheme, String(id)), "latin1"),
          isShort ? Number(id) : -1,
        );
      }
      next.set(asset.assetIndex, id);
    }
    numbered.userCounts.push(to - first);
  }
  return { columns: numbered, origins };
}

/** The id that an entry's minting blob names; 0 for an ERC-20. */
export function tokenIdAt(
  columns: MintColumns,
  { standard, mintingBlobScheme }: Pick<AssetRecord, "standard" | "mintingBlobScheme">,
  entry: number,
): bigint {
  const short = columns.shortId[entry]!;
  return short >= 0
    ? BigInt(short)
    : (tokenIdOfBytes(standard, mintingBlobScheme, columns.mintingBlobBytes(entry)) ?? 0n);
}

/** The ERC-721 tokens of a request. Each must be new to the store and to the request. */
export class RequestedTokens {
  /** A hash for each entry; 0 for all but the ERC-721 tokens that the request names. */
  hashes: Uint32Array;
  readonly #ledger: Ledger;
  #columns: MintColumns;
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

  ask(asset: AssetFacts, entry: number): void {
    const { hasher } = this.#ledger.minting;
    const short = this.#columns.shortId[entry]!;
    this.hashes[entry] =
      short >= 0
        ? hasher.ofShortId(asset.assetIndex, short)
        : hasher.ofId(asset.assetIndex, tokenIdAt(this.#columns, asset, entry));
  }

  /** Adds the keys of the records that decide whether the tokens are new. */
  addKeys(keys: Buffer[]): void {
    const { tokens } = this.#ledger.minting;
    const atHome = tokens.refsAtHome(this.hashes);
    this.#from = keys.length;
    for (let entry = 0; entry < this.hashes.length; entry++) {
      if (atHome[entry] === 0 || this.hashes[entry] === 0) continue;
      const candidates = tokens.candidates(this.hashes[entry]!);
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
    const { tokens } = this.#ledger.minting;
    const { count } = this.#columns;
    // Another request of the group may have minted them since the look-up. This brings their places
    // into the caches.
    tokens.refsAtHome(this.hashes);
    for (let entry = 0; entry < count; entry++) {
      const hash = this.hashes[entry]!;
      if (hash === 0) continue;
      if (tokens.insert(hash, FIRST_PENDING + entry, true)) continue;
      if (this.#isNew?.[entry] !== 1) this.#check(tokens.candidates(hash) ?? [], entry, report);
      tokens.insert(hash, FIRST_PENDING + entry);
    }
    this.#taken = count;
  }

  /** Takes the same tokens, and those that the engine has numbered. */
  takeNumbered(
    group: Group,
    { columns, origins }: Numbered,
    stored: readonly (Buffer | undefined)[],
  ): void {
    this.giveBack();
    const named = this.hashes;
    this.#columns = columns;
    this.hashes = columnOf(Uint32Array, columns.count);
    this.#isNew = new Uint8Array(columns.count);
    for (let entry = 0; entry < columns.count; entry++) {
      const asset = this.#ledger.tenants.assetNow(columns.assetIndex[entry]!, group);
      if (asset.nextTokenId === null) this.hashes[entry] = named[origins[entry] as number]!;
      else {
        this.ask(asset, entry);
        this.#isNew[entry] = 1;
      }
    }
    this.take(stored, () => {
      throw new Error("a token that was new is not");
    });
  }

  /** Takes the tokens out of the index again. */
  giveBack(): void {
    for (let entry = this.#taken - 1; entry >= 0; entry--) {
      const hash = this.hashes[entry]!;
      if (hash !== 0) this.#ledger.minting.tokens.remove(hash, FIRST_PENDING + entry);
    }
    this.#taken = 0;
  }

  place(entry: number, batch: OpenBatch, slot: number): void {
    this.#ledger.minting.tokens.move(
      this.hashes[entry]!,
      FIRST_PENDING + entry,
      this.#ledger.batches.refs.refOf(batch, slot),
    );
  }

  /**
   * Reports an entry whose token is among the candidates: minted before, or earlier in this
   * request.
   */
  #check(candidates: readonly number[], entry: number, report: EntryReport): void {
    const { assetIndex } = this.#columns;
    const asset = this.#ledger.tenants.assetAt(assetIndex[entry]!);
    const tokenId = tokenIdAt(this.#columns, asset, entry);
    const minted = candidates.filter((ref) => ref < FIRST_PENDING);
    this.#lookup ??= new TokenLookup(this.#ledger);
    if (this.#lookup.holds(minted, asset.assetIndex, tokenId)) {
      report(
        entry,
        this.#columns.tokenField(entry),
        "token_already_minted",
        "this token has been minted before",
      );
      return;
    }
    const earlier = candidates
      .filter((ref) => ref >= FIRST_PENDING)
      .map((ref) => ref - FIRST_PENDING);
    const isSame = (other: number) =>
      assetIndex[other] === asset.assetIndex && tokenIdAt(this.#columns, asset, other) === tokenId;
    if (earlier.some(isSame))
      report(
        entry,
        this.#columns.tokenField(entry),
        "duplicate_mint",
        "occurs more than once in this request",
      );
  }
}

/**
 * Decides whether ERC-721 tokens exist. The index gives the vaults whose tokens have the same hash:
 * nearly always none. Vaults on disk are read before the transition, the others are in memory.
 */
class TokenLookup {
  readonly #ledger: Ledger;
  /** Records to read, by {@link keyString}, with their places. */
  readonly #asked = new Map<string, Buffer>();
  readonly #inMemory = new Map<number, OpenBatch>();
  /**
   * Decoded on first use: a request can name a token of ten thousand records, and the first few may
   * decide.
   */
  readonly #chunks = new Map<string, Buffer | StoredVault[]>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Notes the records to read for these refs, which the index has for one hash. */
  prepare(refs: readonly number[]): void {
    for (const ref of refs) {
      const place = this.#ledger.batches.refs.placeOf(ref);
      const batch = this.#ledger.batches.unsealed.at(place);
      // The ledger drops a batch from memory once it is on disk, so this keeps it.
      if (batch !== undefined) this.#inMemory.set(ref, batch);
      else {
        const key = chunkKeyOf(place);
        this.#asked.set(keyString(key), key);
      }
    }
  }

  keys(): Buffer[] {
    return [...this.#asked.values()];
  }

  /** @param stored - in the order of `keys`, from a position on */
  receive(stored: readonly (Buffer | undefined)[], from: number): void {
    let at = from;
    for (const name of this.#asked.keys()) {
      const record = stored[at++];
      if (record === undefined)
        throw new MintmarkError(
          "store_corrupt",
          "Vaults that the index of tokens names are missing.",
        );
      this.#chunks.set(name, record);
    }
  }

  /** Whether a vault of these refs holds the token. */
  holds(refs: readonly number[], assetIndex: number, tokenId: bigint): boolean {
    const { standard, mintingBlobScheme } = this.#ledger.tenants.assetAt(assetIndex);
    return refs.some((ref) => {
      const vault = this.#vaultOf(ref);
      return (
        vault.assetIndex === assetIndex &&
        tokenIdOf(standard, mintingBlobScheme, vault.mintingBlob) === tokenId
      );
    });
  }

  #vaultOf(ref: number): { readonly assetIndex: number; readonly mintingBlob: Hex } {
    const place = this.#ledger.batches.refs.placeOf(ref);
    const batch = this.#inMemory.get(ref) ?? this.#ledger.batches.unsealed.at(place);
    if (batch !== undefined) return batch.vaults.at(place.slot);
    const name = keyString(chunkKeyOf(place));
    const known = this.#chunks.get(name) ?? [];
    const chunk = Buffer.isBuffer(known) ? decodeChunk(known) : known;
    this.#chunks.set(name, chunk);
    const vault = chunk[place.slot % CHUNK_VAULTS];
    if (vault === undefined)
      throw new MintmarkError(
        "store_corrupt",
        "A vault that the index of tokens names is missing.",
      );
    return vault;
  }
}
