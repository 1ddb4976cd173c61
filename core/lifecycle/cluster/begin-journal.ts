import { MintmarkError } from "../../errors.ts";
import { Stack } from "../../stack.ts";
import { requireNewest } from "../../store/format.ts";
import { genesisOf, requireSameStore } from "../../store/genesis.ts";
import { LevelStore } from "../../store/level-store.ts";
import { HEAD_KEY } from "../../store/store-keys.ts";
import { partsOf } from "./cluster-store.ts";
import type { ClusterOptions } from "./node.ts";

const BEGINNING_LEASE_MS = 30_000; // Reading the store's first part must not cost the lead
const NO_BYTES = new Uint8Array();

/**
 * Begins a journal with a store's records, and leads meanwhile. Repeated with the same store, it goes on where it was
 * interrupted. Resolves with the journal's length. The store may be any engine's, or a server's of an earlier journal.
 *
 * @throws MintmarkError `store_mismatch` for a journal of another store, `not_leader` while a server leads
 */
export async function beginJournal(
  folder: string,
  { journal, server, ...expected }: Pick<ClusterOptions, "journal" | "server" | "settlement" | "environment">,
): Promise<number> {
  await using opened = new Stack();
  const store = await LevelStore.open(folder, false, "process");
  opened.defer(() => store.close());
  requireNewest(await requireSameStore(store, genesisOf(expected)));
  const leadership = await journal.lead(server, BEGINNING_LEASE_MS);
  if (leadership === null)
    throw new MintmarkError("not_leader", "A server leads this journal. Stop all servers first.");
  opened.defer(() => leadership.resign());
  let length = 0;
  for await (const part of partsOf(store, [HEAD_KEY])) {
    if (length >= leadership.length) await journal.append(length, [part]);
    else if (!Buffer.from(part).equals((await journal.entry(length)) ?? NO_BYTES)) throw notEmpty(leadership);
    length++;
  }
  if (length < leadership.length) throw notEmpty(leadership);
  return length;
}

function notEmpty({ length }: { readonly length: number }): MintmarkError {
  const detail = `The journal already holds ${length} entries, which are not this store's.`;
  return new MintmarkError("store_mismatch", `${detail} Give an empty database.`);
}
