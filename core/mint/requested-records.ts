import type { Ledger } from "../ledger/ledger.ts";
import type { Group } from "../store/group.ts";
import { FAULTY, type MintColumns } from "../store/mint-columns.ts";
import type { AssetFacts } from "../store/records.ts";
import { keyOf, keyString } from "../store/store-keys.ts";
import { hexOf } from "../store/vault-columns.ts";
import { metadataAt, metadataFault, putMetadata } from "../tenants/metadata.ts";
import type { EntryReport } from "./form.ts";
import { tokenIdAt } from "./requested-tokens.ts";

/** An ERC-1155 id that may be unbound. */
interface AskedRecord {
  readonly entry: number;
  readonly key: Buffer;
}

/** The ERC-1155 ids of a request. The first minting blob that names an id binds it. */
export class RequestedBindings {
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  readonly #asked: AskedRecord[] = [];
  /** Where the records begin among those of the request. */
  #from = 0;
  /** The ids that the request binds, once they are checked. */
  readonly #bound: AskedRecord[] = [];

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
  }

  /** Notes an entry's id, unless it is bound to the entry's minting blob. */
  ask(asset: AssetFacts, entry: number): void {
    const short = this.#columns.shortId[entry]!;
    if (short >= 0 && this.#ledger.minting.bindings.get(asset.assetIndex, short)) return;
    this.#asked.push({
      entry,
      key: keyOf.binding(asset.assetIndex, tokenIdAt(this.#columns, asset, entry)),
    });
  }

  addKeys(keys: Buffer[]): void {
    this.#from = keys.length;
    for (const { key } of this.#asked) keys.push(key);
  }

  /**
   * Reports the ids that are bound to another minting blob.
   *
   * @param stored - the request's records
   */
  check(group: Group, stored: readonly (Buffer | undefined)[], report: EntryReport): void {
    const inRequest = new Map<string, Buffer>();
    for (const [i, asked] of this.#asked.entries()) {
      const name = keyString(asked.key);
      const mintingBlob = this.#mintingBlobOf(asked);
      const record = group.resolveString(name, stored[this.#from + i]);
      const known = record ?? inRequest.get(name);
      if (known === undefined) {
        inRequest.set(name, mintingBlob);
        this.#bound.push(asked);
      } else if (!mintingBlob.equals(known)) {
        const detail = `the token id is bound to the minting blob ${hexOf(known, 0, known.length)}`;
        report(asked.entry, this.#columns.tokenField(asked.entry), "token_id_conflict", detail);
      } else if (record !== undefined) this.#remember(asked);
    }
  }

  bind(group: Group): void {
    for (const asked of this.#bound) {
      group.stage(asked.key, Buffer.from(this.#mintingBlobOf(asked)));
      this.#remember(asked);
    }
  }

  /** The bytes in the request's own column. */
  #mintingBlobOf({ entry }: AskedRecord): Buffer {
    const { buffer, byteOffset, length } = this.#columns.mintingBlobBytes(entry);
    return Buffer.from(buffer, byteOffset, length);
  }

  #remember({ entry }: AskedRecord): void {
    const short = this.#columns.shortId[entry]!;
    if (short >= 0)
      this.#ledger.minting.bindings.set(this.#columns.assetIndex[entry]!, short, true);
  }
}

/** The metadata that a request gives to its tokens. */
export class RequestedMetadata {
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  /**
   * The entries whose token's record must be read. The engine gives ids only to tokens that are not
   * frozen.
   */
  readonly #asked: { readonly entry: number; readonly key: Buffer }[] = [];
  /** Where the records begin among those of the request. */
  #from = 0;
  /** Stored metadata that the request repeats, by key. It stays as it is. */
  readonly #same = new Map<string, string>();

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
  }

  addKeys(keys: Buffer[]): void {
    this.#from = keys.length;
    for (const { entry } of this.#columns.textsIn("metadata")) {
      if (this.#columns.isMarked(entry, FAULTY)) continue;
      const asset = this.#ledger.tenants.assetNow(this.#columns.assetIndex[entry]!, null);
      if (asset.standard === "erc20" || asset.nextTokenId !== null) continue;
      const key = keyOf.metadata(asset.assetId, tokenIdAt(this.#columns, asset, entry));
      this.#asked.push({ entry, key });
      keys.push(key);
    }
  }

  /**
   * Reports metadata that its asset or its token refuses.
   *
   * @param stored - the request's records
   */
  check(
    group: Group,
    stored: readonly (Buffer | undefined)[],
    applicationIndex: number,
    report: EntryReport,
  ): void {
    const refused = new Set<number>();
    for (const { entry } of this.#columns.textsIn("metadata")) {
      if (this.#columns.isMarked(entry, FAULTY)) continue;
      const detail = "is for one token; give each token an entry of its own";
      const fault =
        this.#columns.quantityAt(entry) > 1
          ? ({ code: "validation_failed", detail } as const)
          : metadataFault(
              this.#ledger,
              group,
              this.#assetAt(this.#columns, entry),
              applicationIndex,
            );
      if (fault === null) continue;
      refused.add(entry);
      report(entry, "/metadata", fault.code, fault.detail);
    }
    for (const [i, { entry, key }] of this.#asked.entries()) {
      const known = metadataAt(group.resolve(key, stored[this.#from + i]));
      const metadata = this.#columns.metadata?.[entry] ?? "";
      if (known?.metadata === metadata) this.#same.set(keyString(key), metadata);
      else if (known?.frozen && !refused.has(entry))
        report(entry, "/metadata", "metadata_frozen", "this token's metadata is frozen");
    }
  }

  /**
   * Writes the changes, one journal entry for each asset.
   *
   * @param columns - with an id for each token
   */
  put(group: Group, columns: MintColumns): void {
    const changed = new Map<AssetFacts, { tokenId: bigint; metadata: string }[]>();
    for (const { entry, text: metadata } of columns.textsIn("metadata")) {
      const asset = this.#assetAt(columns, entry);
      const tokenId = tokenIdAt(columns, asset, entry);
      const name = keyString(keyOf.metadata(asset.assetId, tokenId));
      if (this.#same.get(name) === metadata) continue;
      this.#same.delete(name);
      const tokens = changed.get(asset) ?? [];
      changed.set(asset, tokens);
      tokens.push({ tokenId, metadata });
    }
    for (const [asset, tokens] of changed) putMetadata(this.#ledger, group, asset, tokens);
  }

  #assetAt({ assetIndex }: MintColumns, entry: number): AssetFacts {
    return this.#ledger.tenants.assetAt(assetIndex[entry]!);
  }
}
