import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ClusterNode, PostgresJournal } from "../../core/cluster/index.ts";
import type { Uuid } from "../../core/index.ts";
import { SETTLEMENT } from "../core/engine/fixture.ts";
import { seen } from "../core/engine/seen.ts";
import { GOLDEN, promise, textOf, valueFrom } from "../golden/golden.ts";
import { KEYS, SHARD } from "../golden/journal.ts";
import { testDatabase } from "./database.ts";

test("the tables of 1.0's journal become a server that shows the same", async () => {
  await using database = await testDatabase();
  const open = () => PostgresJournal.open({ url: database.primary.url, shard: SHARD, keys: KEYS });
  await (await open()).close();
  const tables: Record<string, unknown> = JSON.parse(
    readFileSync(join(GOLDEN, "journal.json"), "utf8"),
  );
  for (const [table, rows] of Object.entries(tables)) {
    const from = `json_populate_recordset(null::${table}, '${JSON.stringify(rows).replaceAll("'", "''")}')`;
    await database.primary.query(
      `delete from ${table}; insert into ${table} select * from ${from}`,
    );
  }
  await using node = await ClusterNode.join({
    store: join(database.folder, "server"),
    journal: await open(),
    server: { name: "later", url: "http://later.test" },
    settlement: SETTLEMENT,
    environment: "sandbox",
  });
  const { engine } = await node.next();
  const before = valueFrom<{ applicationId: Uuid; seen: object }>(
    readFileSync(join(GOLDEN, "seen.json"), "utf8"),
  );
  expect(
    valueFrom(textOf(await seen(engine, before.applicationId))),
    promise("tables of a cluster"),
  ).toEqual(before.seen);
});
