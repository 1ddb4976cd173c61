import type { MintColumns } from "../columns/mint-columns.ts";
import { hexOf } from "../columns/vault-columns.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hex } from "../model.ts";
import type { Group } from "../store/group.ts";
import type { AssetRecord } from "../store/records.ts";
import { bindingKey, keyString } from "../store/store-keys.ts";
import { tokenIdAt } from "./requested-tokens.ts";

/** An ERC-1155 id that is not known to be bound. */
interface Asked {
  readonly entry: number;
  readonly key: Buffer;
  /** The id, -1 for one that only the plain way reads. */
  readonly short: number;
}

/** The ERC-1155 ids of a request: the first blob that names an id binds it. */
export class RequestedBindings {
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  readonly #asked: Asked[] = [];
  /** Those that the request binds, once they are checked. */
  #bound: readonly Asked[] = [];

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
  }

  /** Notes an entry's id, unless it is known to be bound to its blob; returns whether the blob names an id at all. */
  ask(asset: AssetRecord, entry: number, short: number): boolean {
    if (short >= 0 && this.#ledger.bindings.has(asset.assetIndex, short)) return true;
    const tokenId = short >= 0 ? BigInt(short) : tokenIdAt(this.#columns, asset, entry);
    if (tokenId === null) return false;
    this.#asked.push({ entry, key: bindingKey(asset.assetIndex, tokenId), short });
    return true;
  }

  keys(): Buffer[] {
    return this.#asked.map(({ key }) => key);
  }

  /**
   * Whether none of the ids is bound to another blob.
   *
   * @param stored - in the order of `keys`
   */
  check(group: Group, stored: readonly (Buffer | undefined)[]): boolean {
    const bound: Asked[] = [];
    const inRequest = new Map<string, Hex>();
    for (const [i, asked] of this.#asked.entries()) {
      const name = keyString(asked.key);
      const blob = this.#columns.blobAt(asked.entry);
      const record = group.resolveString(name, stored[i]);
      const known = record === undefined ? inRequest.get(name) : hexOf(record, 0, record.length);
      if (known !== undefined && known !== blob) return false;
      if (known === undefined) {
        inRequest.set(name, blob);
        bound.push(asked);
      } else if (record !== undefined) this.#remember(asked);
    }
    this.#bound = bound;
    return true;
  }

  /** Writes what the request binds. */
  bind(group: Group): void {
    for (const asked of this.#bound) {
      group.stage(asked.key, Buffer.from(this.#columns.blobAt(asked.entry).slice(2), "hex"));
      this.#remember(asked);
    }
  }

  #remember({ entry, short }: Asked): void {
    if (short >= 0) this.#ledger.bindings.add(this.#columns.assetIndex[entry] as number, short);
  }
}
