import { mkdtemp, rm } from "node:fs/promises";
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
