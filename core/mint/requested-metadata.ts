import type { MintColumns } from "../columns/mint-columns.ts";
import type { Issue } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { metadataAt, metadataObstacle, putMetadata } from "../metadata/metadata.ts";
import type { Group } from "../store/group.ts";
import type { AssetRecord } from "../store/records.ts";
import { keyString, metadataKey } from "../store/store-keys.ts";
import { tokenIdAt } from "./requested-tokens.ts";

/** Why a mint cannot set metadata; null when it can, unless its token's own is frozen. */
export function mintedMetadataObstacle(
  ledger: Ledger,
  asset: AssetRecord,
  applicationIndex: number,
  quantity: number | bigint,
): Pick<Issue, "code" | "detail"> | null {
  const detail = "is for one token; give each token an entry of its own";
  return quantity > 1 ? { code: "validation_failed", detail } : metadataObstacle(ledger, asset, applicationIndex);
}

/** Whether a token's stored metadata refuses another; the same again is no change. */
export function refusesMetadata(record: Buffer | undefined, metadata: string): boolean {
  const known = metadataAt(record);
  return known?.frozen === true && known.metadata !== metadata;
}

/** The metadata that a request gives to its tokens. */
export class RequestedMetadata {
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  /** The entries whose token's record must be read. The engine gives ids only to tokens that are not frozen. */
  #asked: { readonly entry: number; readonly key: Buffer }[] = [];
  /** By key: stored metadata that the request repeats, and that stays as it is. */
  readonly #same = new Map<string, string>();

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
  }

  keys(): Buffer[] {
    this.#asked = this.#columns.entriesWithMetadata().flatMap((entry) => {
      const key = this.#keyAt(this.#columns, entry);
      return key === null ? [] : [{ entry, key }];
    });
    return this.#asked.map(({ key }) => key);
  }

  /** @param stored - in the order of `keys` */
  check(group: Group, stored: readonly (Buffer | undefined)[], applicationIndex: number): boolean {
    const entries = this.#columns.entriesWithMetadata();
    for (const entry of entries) {
      const quantity = this.#columns.quantityAt(entry);
      if (
        mintedMetadataObstacle(this.#ledger, this.#assetAt(this.#columns, entry), applicationIndex, quantity) !== null
      )
        return false;
    }
    for (const [i, { entry, key }] of this.#asked.entries()) {
      const record = group.resolve(key, stored[i]);
      const metadata = this.#columns.metadataAt(entry) ?? "";
      if (refusesMetadata(record, metadata)) return false;
      if (metadataAt(record)?.metadata === metadata) this.#same.set(keyString(key), metadata);
    }
    return true;
  }

  /**
   * Writes the changes, one journal entry for each asset.
   *
   * @param columns - with an id for each token
   */
  put(group: Group, columns: MintColumns): void {
    const changed = new Map<AssetRecord, { tokenId: bigint; metadata: string }[]>();
    for (const entry of columns.entriesWithMetadata()) {
      const asset = this.#assetAt(columns, entry);
      const tokenId = tokenIdAt(columns, asset, entry) ?? 0n;
      const metadata = columns.metadataAt(entry) ?? "";
      const name = keyString(metadataKey(asset.assetId, tokenId));
      if (this.#same.get(name) === metadata) continue;
      this.#same.delete(name);
      const tokens = changed.get(asset) ?? [];
      changed.set(asset, tokens);
      tokens.push({ tokenId, metadata });
    }
    for (const [asset, tokens] of changed) putMetadata(this.#ledger, group, asset, tokens);
  }

  /** null where the engine gives the id, or the blob names none. */
  #keyAt(columns: MintColumns, entry: number): Buffer | null {
    const asset = this.#assetAt(columns, entry);
    if (asset.standard === "erc20" || asset.nextTokenId !== null) return null;
    const tokenId = tokenIdAt(columns, asset, entry);
    return tokenId === null ? null : metadataKey(asset.assetId, tokenId);
  }

  #assetAt({ assetIndex }: MintColumns, entry: number): AssetRecord {
    return this.#ledger.assetAt(assetIndex[entry] as number);
  }
}
