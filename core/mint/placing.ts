import { closeOpenBatches, openBatchFor } from "../batches/seal.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import type { CachedUser } from "../ledger/user-cache.ts";
import { MODES } from "../model.ts";
import type { MintColumns } from "../store/mint-columns.ts";
import { PlacedColumns } from "../store/mint-entry.ts";
import type { RequestedTokens } from "./requested-tokens.ts";

/** The places of a request's entries, and the batches that became full. */
interface Placed {
  readonly placed: PlacedColumns;
  readonly closed: readonly OpenBatch[];
}

/** Places every entry of a request in a vault of the open batches. A full batch is followed by the next one. */
export function placeEntries(
  ledger: Ledger,
  columns: MintColumns,
  tokens: RequestedTokens | null,
  users: readonly CachedUser[],
  time: number,
): Placed {
  const { assetIndex, amountHigh, amountLow, mode, blobs, blobEnd, userCounts } = columns;
  const placed = new PlacedColumns(columns.count);
  const closed: OpenBatch[] = [];
  const vault = { assetIndex: 0, amountHigh: 0, amountLow: 0, blobs, start: 0, end: 0 };
  let entry = 0;
  for (const [i, user] of users.entries()) {
    for (const end = entry + (userCounts[i] ?? 0); entry < end; entry++) {
      vault.assetIndex = assetIndex[entry] as number;
      vault.amountHigh = amountHigh[entry] as number;
      vault.amountLow = amountLow[entry] as number;
      vault.start = vault.end;
      vault.end = blobEnd[entry] as number;
      const modeOf = MODES[mode[entry] as number] ?? "validium";
      const standard = ledger.standards[vault.assetIndex] ?? "erc20";
      const inBlobs = modeOf === "zk-rollup" && ledger.blobs.takes(vault);
      let open = openBatchFor(ledger, modeOf, inBlobs);
      const slot = standard === "erc721" ? -1 : open.growing(user, vault);
      if (slot >= 0) {
        const { vaults } = open;
        const age = time - (vaults.createdAt[slot] as number);
        placed.added(entry, open, slot);
        placed.grew(entry, vaults.amountHigh[slot] as number, vaults.amountLow[slot] as number, age);
        open.grow(slot, vault.amountHigh, vault.amountLow, time);
        continue;
      }
      const hash = tokens?.hashes[entry] ?? 0;
      let added = open.add(user, vault, standard, time, hash);
      if (added < 0) {
        closed.push(...closeOpenBatches(ledger, modeOf));
        open = openBatchFor(ledger, modeOf, inBlobs);
        added = open.add(user, vault, standard, time, hash);
      }
      placed.added(entry, open, added);
      if (standard === "erc721") tokens?.place(entry, open, added);
    }
  }
  return { placed, closed };
}
