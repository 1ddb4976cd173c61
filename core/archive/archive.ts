import { MintmarkError } from "../errors.ts";
import type { Settlement } from "../ports.ts";
import { type Kzg, KzgThread } from "../protocol/kzg/kzg-thread.ts";
import type { Database } from "../store/ports.ts";
import { archiveHistory } from "./archive-history.ts";
import { archiveReads } from "./archive-reads.ts";
import { archiveTransfers } from "./archive-transfers.ts";
import { archiveVaults } from "./archive-vaults.ts";
import { DerivingThread } from "./deriving-thread.ts";
import * as keys from "./keys.ts";
import { type ArchiveGround, type AssetReader, archiveIndex, KnownAssets } from "./vault-index.ts";

const FORMAT = "mintmark-archive";
const VERSION = 8;

/** Options of {@link Archive.open}. */
export interface ArchiveOptions {
  /** A store of its own, not shared; closed with the archive. */
  readonly store: Database;
  readonly l1: AssetReader;
  /**
   * Checks and opens blobs; not closed with the archive. Default: a thread of its own, which the
   * first blob starts.
   */
  readonly kzg?: Kzg;
}

/** An open {@link Archive}. */
export type Archive = Awaited<ReturnType<typeof Archive.open>>;

/**
 * The public state of one settlement contract, without tenants: committed batches with their data,
 * vaults by owner, withdrawals, and proofs of vaults. It follows from L1's history and, for
 * validium, from data of the members. Every change is one atomic write, so an interrupted archive
 * resumes.
 *
 * @example
 * const archive = await Archive.open({ store: new Level("./archive"), l1 }); await follow({
 * archive, l1, fromBlock, sources: [new HttpBatchSource("https://member.example")] });
 */
export const Archive = {
  /**
   * Opens an archive; creates it in an empty store. Rejects with `store_mismatch` when the store
   * holds something else.
   */
  async open({ store, l1, kzg }: ArchiveOptions) {
    const { settlement } = l1;
    await requireFormat(store, settlement);
    const ownKzg = kzg === undefined ? new KzgThread() : null;
    const ground: ArchiveGround = {
      store,
      settlement,
      kzg: kzg ?? (ownKzg as KzgThread),
      assets: new KnownAssets(l1),
      deriving: new DerivingThread(),
    };
    const reads = archiveReads(store, settlement);
    const vaults = archiveVaults(ground, reads);
    const transfers = archiveTransfers(ground, reads, vaults);
    const index = archiveIndex(ground, reads);
    const { history, restore } = archiveHistory(ground, l1, reads, transfers, index);
    await restore();

    // The other members of the parts are for one another.
    const { record, has, append, forget, count, commits, ...stored } = reads;
    const { waitingIn, withdrawnBefore, ...vaultReads } = vaults;
    const { transferChanges, powerChanges, thread, ...judged } = transfers;
    return Object.assign(history, {
      ...ground,
      ...stored,
      ...vaultReads,
      ...judged,
      ...index,

      async close(): Promise<void> {
        await history.inTurn(async () => {});
        await ownKzg?.close();
        await thread.close();
        await ground.deriving.close();
        await store.close();
      },
    });
  },
};

async function requireFormat(store: Database, { chainId, contract }: Settlement): Promise<void> {
  const meta = JSON.stringify({
    format: FORMAT,
    version: VERSION,
    chainId: chainId.toString(),
    contract,
  });
  const found = await store.get<string, string>(keys.META, keys.TEXT);
  if (found === undefined) {
    for await (const _ of store.keys({ limit: 1 }))
      throw new MintmarkError(
        "store_mismatch",
        "The folder holds another kind of store. Give an empty folder.",
      );
    await store.put<string, string>(keys.META, meta, keys.TEXT);
  } else if (!found.includes(`"version":${VERSION},`)) {
    const [, version = "of an unknown format"] = /"version":(\d+)/.exec(found) ?? [];
    const detail = `The archive has version ${version}, and this version of Mintmark reads version ${VERSION}.`;
    const advice =
      "Use the version that wrote it, or an empty folder, which L1 and the other members fill.";
    throw new MintmarkError("store_mismatch", `${detail} Nothing was changed. ${advice}`);
  } else if (found !== meta) {
    throw new MintmarkError("store_mismatch", `The store is ${found}, not ${meta}.`);
  }
}
