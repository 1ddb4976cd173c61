import type { Ledger } from "../ledger/ledger.ts";
import type { Group } from "../store/group.ts";
import type { MintColumns } from "../store/mint-columns.ts";
import type { AssetRecord } from "../store/records.ts";
import { keyOf, keyString } from "../store/store-keys.ts";
import { hexOf } from "../store/vault-columns.ts";
import type { EntryReport } from "./form.ts";
import { tokenIdAt } from "./requested-tokens.ts";

/** An ERC-1155 id that may be unbound. */
interface Asked {
  readonly entry: number;
  readonly key: Buffer;
}

/** The ERC-1155 ids of a request. The first blob that names an id binds it. */
export class RequestedBindings {
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  readonly #asked: Asked[] = [];
  /** Where the records begin among those of the request. */
  #from = 0;
  /** The ids that the request binds, once they are checked. */
  readonly #bound: Asked[] = [];

  constructor(ledger: Ledger, columns: MintColumns) {
    this.#ledger = ledger;
    this.#columns = columns;
  }

  /** Notes an entry's id, unless it is bound to the entry's blob. */
  ask(asset: AssetRecord, entry: number): void {
    const short = this.#columns.shortId[entry] as number;
    if (short >= 0 && this.#ledger.bindings.get(asset.assetIndex, short)) return;
    this.#asked.push({ entry, key: keyOf.binding(asset.assetIndex, tokenIdAt(this.#columns, asset, entry)) });
  }

  addKeys(keys: Buffer[]): void {
    this.#from = keys.length;
    for (const { key } of this.#asked) keys.push(key);
  }

  /**
   * Reports the ids that are bound to another blob.
   *
   * @param stored - the request's records
   */
  check(group: Group, stored: readonly (Buffer | undefined)[], report: EntryReport): void {
    const inRequest = new Map<string, Buffer>();
    for (const [i, asked] of this.#asked.entries()) {
      const name = keyString(asked.key);
      const blob = this.#blobOf(asked);
      const record = group.resolveString(name, stored[this.#from + i]);
      const known = record ?? inRequest.get(name);
      if (known === undefined) {
        inRequest.set(name, blob);
        this.#bound.push(asked);
      } else if (!blob.equals(known)) {
        const detail = `the token id is bound to the blob ${hexOf(known, 0, known.length)}`;
        report(asked.entry, this.#columns.tokenField(asked.entry), "token_id_conflict", detail);
      } else if (record !== undefined) this.#remember(asked);
    }
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
    const { buffer, byteOffset, length } = this.#columns.blobBytes(entry);
    return Buffer.from(buffer, byteOffset, length);
  }

  #remember({ entry }: Asked): void {
    const short = this.#columns.shortId[entry] as number;
    if (short >= 0) this.#ledger.bindings.set(this.#columns.assetIndex[entry] as number, short, true);
  }
}
