import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PostgresJournal } from "../../core/cluster/index.ts";
import { beginJournal } from "../../core/cluster/node.ts";
import { testDatabase } from "../cluster/database.ts";
import { SETTLEMENT } from "../core/engine/fixture.ts";
import { GOLDEN } from "./golden.ts";

/** The shard of the journal in `journal.json`. */
export const SHARD = "golden";
export const KEYS = [new Uint8Array(32).fill(7)];

const DUMP = `select json_build_object(
  'mintmark_shard', (select json_agg(each) from mintmark_shard as each),
  'mintmark_journal', (select json_agg(each order by position) from mintmark_journal as each))::text as dump`;

/** The tables of a cluster's journal that begins with the golden store, as JSON of PostgreSQL. */
export async function journalDump(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-journal-"));
  await using database = await testDatabase();
  try {
    await cp(join(GOLDEN, "store"), folder, { recursive: true });
    const journal = await PostgresJournal.open({
      url: database.primary.url,
      shard: SHARD,
      keys: KEYS,
    });
    const server = { name: "golden", url: "http://golden.test" };
    await beginJournal(folder, { journal, server, settlement: SETTLEMENT, environment: "sandbox" });
    await journal.close();
    const [row] = await database.primary.query(DUMP);
    return String((row as { dump: string }).dump);
  } finally {
    await rm(folder, { recursive: true });
  }
}
