import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ClusterStore } from "../../core/cluster/cluster-store.ts";
import type { SharedJournal } from "../../core/cluster/index.ts";
import { beginJournal } from "../../core/cluster/node.ts";
import { LevelStore } from "../../core/store/level-store.ts";
import { keyOf } from "../../core/store/store-keys.ts";
import { openTest, SETTLEMENT } from "../core/engine/fixture.ts";

const folder = await mkdtemp(join(tmpdir(), "mintmark-folder-"));
afterAll(() => rm(folder, { recursive: true }));

/** A journal that another server leads, and that holds what the folder has. */
const JOURNAL = {
  status: async () => ({ pruned: 0 }),
  append: async () => {},
  lead: async () => null,
} as unknown as SharedJournal;

async function contentOf(store: string): Promise<unknown> {
  const files = (await readdir(store)).filter((file) => file !== "LOCK");
  const read = files.map(async (file) => [file, await readFile(join(store, file), "latin1")]);
  return Object.fromEntries(await Promise.all(read));
}

test("an engine's own store is refused as a server's, and stays as it is", async () => {
  const store = join(folder, "own");
  const engine = await openTest(store);
  await engine.applications.create({ name: "One" });
  await engine.close();
  const before = await contentOf(store);
  await expect(ClusterStore.open(store, JOURNAL)).rejects.toMatchObject({
    code: "store_mismatch",
    message: expect.stringContaining("did not come from the cluster's journal"),
  });
  expect(await contentOf(store)).toEqual(before);
  await (await openTest(store, { createIfMissing: false })).close();
});

test("a store that a journal could not begin with keeps its mark", async () => {
  const store = join(folder, "began");
  await (await openTest(store)).close();
  const server = { name: "a", url: "http://a.test" };
  const options = {
    journal: JOURNAL,
    server,
    settlement: SETTLEMENT,
    environment: "sandbox",
  } as const;
  await expect(beginJournal(store, options)).rejects.toMatchObject({
    code: "not_leader",
  });
  expect(await readdir(store)).toContain("journal-length");
  // A copy that lacks acknowledged writes does not become the cluster's journal.
  const shorter = join(folder, "shorter");
  await cp(store, shorter, { recursive: true });
  const engine = await openTest(store);
  await engine.applications.create({ name: "One" });
  await engine.close();
  await cp(join(store, "journal-length"), join(shorter, "journal-length"));
  await expect(beginJournal(shorter, options)).rejects.toMatchObject({ code: "store_corrupt" });
});

test("a server whose own log is damaged says that an empty folder is the way", async () => {
  const store = join(folder, "server");
  const server = await ClusterStore.open(store, JOURNAL);
  for (const number of [0, 1, 2])
    await server.write([
      { type: "put", key: keyOf.applicationEvent(0, number), value: Buffer.alloc(500) },
    ]);
  await server.release();
  const [log = ""] = (await readdir(store)).filter((file) => file.endsWith(".log"));
  const bytes = await readFile(join(store, log));
  await writeFile(join(store, log), bytes.fill(0, 600, 650));
  const before = await contentOf(store);
  await expect(ClusterStore.open(store, JOURNAL)).rejects.toMatchObject({
    code: "store_corrupt",
    message: expect.stringContaining("set the folder aside, and start with an empty one"),
  });
  expect(await contentOf(store)).toEqual(before);
});

test("a server's folder gets no mark, which would make it an engine's own", async () => {
  const store = join(folder, "unmarked");
  await (await ClusterStore.open(store, JOURNAL)).release();
  expect(await readdir(store)).not.toContain("journal-length");
  await (await ClusterStore.open(store, JOURNAL)).release();
  // An earlier version left an empty one.
  await (await LevelStore.open(join(folder, "marked"), true)).close();
  await (await ClusterStore.open(join(folder, "marked"), JOURNAL)).release();
});
