import { closeOpenBatches, openBatchFor } from "../batches/seal.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import type { CachedUser } from "../ledger/user-cache.ts";
import { MODES } from "../model.ts";
import type { MintColumns } from "../store/columns/mint-columns.ts";
import type { NewVault } from "../store/columns/vault-columns.ts";
import { PlacedColumns } from "../store/mint-entry.ts";
import type { RequestedTokens } from "./requested-tokens.ts";

/** Places every entry of a request in a vault of the open batches. A full batch is followed by the next one. */
export class Placing {
  readonly placed: PlacedColumns;
  /** The batches that became full. */
  readonly closed: OpenBatch[] = [];
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  readonly #tokens: RequestedTokens | null;

  constructor(ledger: Ledger, columns: MintColumns, tokens: RequestedTokens | null) {
    this.#ledger = ledger;
    this.#columns = columns;
    this.#tokens = tokens;
    this.placed = new PlacedColumns(columns.count);
  }

  place(users: readonly CachedUser[], time: number): void {
    const { assetIndex, amountHigh, amountLow, mode, blobs, blobEnd, userCounts } = this.#columns;
    const vault = { assetIndex: 0, amountHigh: 0, amountLow: 0, blobs, start: 0, end: 0 };
    let entry = 0;
    for (const [i, user] of users.entries()) {
      for (const end = entry + (userCounts[i] ?? 0); entry < end; entry++) {
        vault.assetIndex = assetIndex[entry] as number;
        vault.amountHigh = amountHigh[entry] as number;
        vault.amountLow = amountLow[entry] as number;
        vault.start = vault.end;
        vault.end = blobEnd[entry] as number;
        this.#placeEntry(entry, mode[entry] as number, user, vault, time);
      }
    }
  }

  #placeEntry(entry: number, modeNumber: number, user: CachedUser, vault: NewVault, time: number): void {
    const ledger = this.#ledger;
    const mode = MODES[modeNumber] ?? "validium";
    const standard = ledger.standards[vault.assetIndex] ?? "erc20";
    const inBlobs = mode === "zk-rollup" && ledger.blobs.takes(vault);
    let open = openBatchFor(ledger, mode, inBlobs);
    const slot = standard === "erc721" ? -1 : open.growing(user, vault);
    if (slot >= 0) {
      this.placed.existing(entry, open, slot, time);
      open.grow(slot, vault.amountHigh, vault.amountLow, time);
      return;
    }
    const hash = this.#tokens?.hashes[entry] ?? 0;
    let added = open.add(user, vault, standard, time, hash);
    if (added < 0) {
      this.closed.push(...closeOpenBatches(ledger, mode));
      open = openBatchFor(ledger, mode, inBlobs);
      added = open.add(user, vault, standard, time, hash);
    }
    this.placed.added(entry, open, added);
    if (standard === "erc721") this.#tokens?.place(entry, open, added);
  }
}
