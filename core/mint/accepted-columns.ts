import type { Ledger } from "../ledger/ledger.ts";
import { type Address, type Asset, type Hex, MAX_BATCH_VAULTS, type Uuid } from "../model.ts";
import { tokenIdOfBytes } from "../protocol/blob.ts";
import type { MintColumns } from "../store/mint-columns.ts";
import type { PlacedColumns } from "../store/mint-entry.ts";
import type { AssetRecord } from "../store/records.ts";
import { amountOf } from "../store/vault-columns.ts";
import type { Minted } from "./mint.ts";

/** What a mint left in memory, as its answer needs it. Copies only what the caller asks for. */
export class MintedColumns implements AcceptedColumns {
  readonly time: number;
  readonly users: AcceptedColumns["users"];
  readonly assetIndex: Uint32Array;
  readonly mode: Uint8Array;
  readonly blobs: Uint8Array;
  readonly blobEnd: Uint32Array;
  readonly batchNumber: Uint32Array;
  readonly slot: Uint32Array;
  readonly age: Float64Array;
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  readonly #placed: PlacedColumns;

  constructor(ledger: Ledger, { time, columns, placed, users }: Minted) {
    this.time = time;
    this.users = users.map(({ userId, ownerAddress }, i) => {
      return { userId, ownerAddress, entries: columns.userCounts[i] ?? 0 };
    });
    ({ assetIndex: this.assetIndex, mode: this.mode, blobs: this.blobs, blobEnd: this.blobEnd } = columns);
    ({ batchNumber: this.batchNumber, slot: this.slot, age: this.age } = placed);
    this.#ledger = ledger;
    this.#columns = columns;
    this.#placed = placed;
  }

  asset(entry: number): AssetRecord {
    return this.#ledger.assetAt(this.#columns.assetIndex[entry] as number);
  }

  amountAfter(entry: number): bigint {
    const { amountHigh, amountLow } = this.#columns;
    const { beforeHigh, beforeLow } = this.#placed;
    const before = amountOf(beforeHigh[entry] as number, beforeLow[entry] as number);
    return before + amountOf(amountHigh[entry] as number, amountLow[entry] as number);
  }

  spellsTokenId(entry: number): boolean {
    return (this.#columns.shortId[entry] as number) >= 0;
  }

  tokenId(entry: number): bigint | null {
    const short = this.#columns.shortId[entry] as number;
    if (short >= 0) return BigInt(short);
    const { standard, blobScheme } = this.asset(entry);
    return tokenIdOfBytes(standard, blobScheme, this.#columns.blobBytes(entry));
  }

  blobAt(entry: number): Hex {
    return this.#columns.blobAt(entry);
  }

  lastEntries(): Uint32Array {
    const { count, assetIndex, mode } = this.#columns;
    const last = new Uint32Array(count);
    // Only vaults that can grow. An ERC-721 vault is touched once.
    const found = new Map<number, number>();
    let vaults = 0;
    for (let entry = 0; entry < count; entry++) {
      if (this.#ledger.standards[assetIndex[entry] as number] !== "erc721") {
        const place = (this.batchNumber[entry] as number) * MAX_BATCH_VAULTS + (this.slot[entry] as number);
        // A place is below 2^52, so this is exact.
        const vault = 2 * place + (mode[entry] as number);
        const earlier = found.get(vault);
        if (earlier !== undefined) {
          last[earlier] = entry;
          continue;
        }
        found.set(vault, vaults);
      }
      last[vaults++] = entry;
    }
    return last.subarray(0, vaults);
  }
}

/**
 * The answer to a fresh mint as typed arrays, one element an entry, all users' entries back to back. It makes no object
 * for each vault and transaction. The arrays belong to the engine: read them, do not change them. `MintResult.vaults`
 * and `.transactions` hold the same as objects.
 */
export interface AcceptedColumns {
  /** ms since 1970. */
  readonly time: number;
  readonly users: readonly { readonly userId: Uuid; readonly ownerAddress: Address; readonly entries: number }[];
  /** Equal for entries of one asset. */
  readonly assetIndex: Uint32Array;
  /** Position in `MODES`. */
  readonly mode: Uint8Array;
  readonly batchNumber: Uint32Array;
  readonly slot: Uint32Array;
  /** Age of the entry's vault, in ms. */
  readonly age: Float64Array;
  /** All entries' values back to back, and the end of each. */
  readonly blobs: Uint8Array;
  readonly blobEnd: Uint32Array;
  /** The asset of an entry. */
  asset(entry: number): Pick<Asset, "assetId" | "assetType" | "quantum" | "decimals">;
  /** The vault's amount after the entry. */
  amountAfter(entry: number): bigint;
  /** The token id of an entry; null for an ERC-20. */
  tokenId(entry: number): bigint | null;
  /** Whether the entry's blob is its token id as ASCII decimals. */
  spellsTokenId(entry: number): boolean;
  /** The last entry of each vault, in order of the vaults' first entries. */
  lastEntries(): Uint32Array;
}
