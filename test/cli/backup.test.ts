import { cp, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SETTLEMENT } from "../server/fixture.ts";
import { mintmark, settingsOf } from "./cli.ts";

test("backup copies a store incrementally, and restore makes a store from the copy", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-backup-"));
  const settings = settingsOf(join(folder, "store"), SETTLEMENT);
  const backup = join(folder, "backup");
  const run = async (...args: string[]) => {
    const ended = await mintmark([...args, "--json"], settings);
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
    return ended.json();
  };
  try {
    await run("init");
    // A command's change is two entries: the change, and who made it.
    await run("applications", "create", "One");
    expect(await run("backup", backup)).toEqual({ folder: backup, entries: 3, added: 3 });
    const { applicationId } = await run("applications", "create", "Two");
    expect(await run("backup", backup)).toEqual({ folder: backup, entries: 5, added: 2 });
    const restored = join(folder, "restored");
    expect(await run("restore", backup, "--store", restored)).toEqual({
      store: restored,
      entries: 5,
    });
    const [, two] = await run("applications", "list", "--store", restored);
    expect(two).toMatchObject({ applicationId, name: "Two" });
    const again = await mintmark(["restore", backup, "--store", restored], settings);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("give an empty one")]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** Every file with its bytes; LOCK is empty. */
async function contentOf(folder: string): Promise<unknown> {
  const files = (await readdir(folder)).filter((file) => file !== "LOCK");
  const read = files.map(async (file) => [file, await readFile(join(folder, file), "latin1")]);
  return Object.fromEntries(await Promise.all(read));
}

test("a backup onto a copy of the store and a restore of nothing are refused, and write nothing", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-backup-"));
  const [store, copy, empty] = [join(folder, "store"), join(folder, "copy"), join(folder, "empty")];
  const settings = settingsOf(store, SETTLEMENT);
  try {
    expect((await mintmark(["init"], settings)).code).toBe(0);
    expect((await mintmark(["applications", "create", "One"], settings)).code).toBe(0);
    await cp(store, copy, { recursive: true });
    expect((await mintmark(["applications", "create", "Two"], settings)).code).toBe(0);
    const before = await contentOf(copy);
    const backup = await mintmark(["backup", copy], settings);
    expect([backup.code, backup.stderr]).toEqual([
      1,
      expect.stringContaining(`${copy} holds a store`),
    ]);
    expect(await contentOf(copy)).toEqual(before);
    await mkdir(empty);
    const restored = join(folder, "restored");
    const restore = await mintmark(["restore", empty, "--store", restored], settings);
    expect([restore.code, restore.stderr]).toEqual([
      2,
      expect.stringContaining(`there is no backup in ${empty}`),
    ]);
    expect(await readdir(empty)).toEqual([]);
    // A store's own folder is no place to restore to either.
    expect((await mintmark(["backup", join(folder, "backup")], settings)).code).toBe(0);
    const onto = await mintmark(["restore", join(folder, "backup"), "--store", copy], settings);
    expect([onto.code, onto.stderr]).toEqual([1, expect.stringContaining("give an empty one")]);
    expect(await contentOf(copy)).toEqual(before);
    expect(await readdir(folder)).not.toContain("restored");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
