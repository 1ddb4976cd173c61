import { randomInt } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Uuid } from "../../../core/index.ts";
import { LevelStore } from "../../../core/store/level-store.ts";
import {
  all,
  knownAsset,
  mintOf,
  newTenant,
  openTest,
  refusal,
  requestOf,
  type TestTenant,
} from "./fixture.ts";

let folder: string;
/** A store, closed, and the same store before its last mint. */
let whole: string;
let earlier: string;
let tenant: TestTenant;
let assetId: Uuid;
const MINTS = 60;
/** Tokens of the largest request: more than one block of LevelDB's log holds. */
const LARGE = 2_000;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-damage-"));
  [whole, earlier] = [join(folder, "whole"), join(folder, "earlier")];
  const engine = await openTest(whole);
  assetId = await knownAsset(engine, "erc721");
  tenant = await newTenant(engine, [assetId]);
  let token = 0;
  const mint = (count: number) => {
    const mints = Array.from({ length: count }, () => mintOf(assetId, token++));
    return engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
  };
  for (let i = 0; i < MINTS - 1; i++) await mint(i === MINTS - 10 ? LARGE : 1 + (i % 7));
  await cp(whole, earlier, { recursive: true });
  await mint(1);
  await engine.close();
});
afterAll(() => rm(folder, { recursive: true }));

let copies = 0;
async function copyOf(store: string): Promise<string> {
  const copy = join(folder, `copy-${copies++}`);
  await cp(store, copy, { recursive: true });
  return copy;
}

async function logOf(store: string): Promise<string> {
  const logs = (await readdir(store)).filter((file) => /^\d+\.log$/.test(file));
  expect(logs).toHaveLength(1);
  return join(store, String(logs[0]));
}

/** Every file with its bytes. */
async function contentOf(store: string): Promise<Record<string, string>> {
  const files = (await readdir(store)).filter((file) => file !== "LOCK");
  return Object.fromEntries(
    await Promise.all(
      files.map(async (file) => [file, await readFile(join(store, file), "latin1")] as const),
    ),
  );
}

async function mintsIn(store: string): Promise<number> {
  await using engine = await openTest(store, { createIfMissing: false });
  return (await all(engine.transactions.list(tenant.applicationId, {}))).length;
}

/** Opening the store is refused, says which folder and what to do, and changes nothing. */
async function expectRefused(store: string, code: string, createIfMissing = true): Promise<void> {
  const before = await contentOf(store);
  const opening = openTest(store, { createIfMissing });
  const advice = code === "store_corrupt" ? /Restore the (whole )?folder/ : /mintmark init/;
  const message = expect.stringMatching(advice);
  await expect(opening).rejects.toMatchObject({ code, message });
  // Without its mark, a store with lost entries would open as if it were whole.
  await expect(opening).rejects.not.toThrow(/delete/);
  await expect(opening).rejects.toThrow(store);
  expect(await contentOf(store)).toEqual(before);
}

describe("a folder without a store", () => {
  it("becomes one only on request", async () => {
    const path = join(folder, "new");
    expect((await refusal(openTest(path, { createIfMissing: false }))).code).toBe("store_missing");
    expect(await readdir(folder)).not.toContain("new");
    await mkdir(path);
    await expectRefused(path, "store_missing", false);
    await (await openTest(path)).close();
    await (await openTest(path, { createIfMissing: false })).close();
  });

  it("that cannot be one reports the system's reason and what to check", async () => {
    const path = join(folder, "a-file");
    await writeFile(path, "");
    const opening = openTest(join(path, "store"));
    await expect(opening).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringMatching(
        /could not be opened: .*ENOTDIR.* Check the folder's permissions and its disk/s,
      ),
    });
  });

  it("becomes one on a new request after an interrupted creation", async () => {
    const path = join(folder, "interrupted");
    await (await LevelStore.open(path, true)).close();
    await expectRefused(path, "store_missing", false);
    await (await openTest(path)).close();
    await (await openTest(path, { createIfMissing: false })).close();
  });
});

describe("a folder that lacks files of its store", () => {
  const KINDS = ["CURRENT", "MANIFEST", ".ldb", ".log", "LOG", "LOCK", "journal-length"];
  const isOf = (kind: string) => (file: string) => file.includes(kind);

  it.each(KINDS)("but with a %s file is left alone, whatever the request", async (left) => {
    const store = await copyOf(whole);
    // Opened again, the log of before is a table.
    await mintsIn(store);
    for (const file of await readdir(store))
      if (!isOf(left)(file) && file !== "FORMAT") await rm(join(store, file));
    expect((await readdir(store)).length).toBeGreaterThan(1);
    for (const createIfMissing of [true, false])
      await expectRefused(store, "store_corrupt", createIfMissing);
  });

  it("is refused as damaged or has lost nothing", async () => {
    const minted = await mintsIn(await copyOf(whole));
    for (const isReopened of [false, true]) {
      const origin = await copyOf(whole);
      if (isReopened) await mintsIn(origin);
      const kinds = KINDS.filter((kind) => isReopened || kind !== ".ldb");
      for (let subset = 1; subset < 2 ** kinds.length - 1; subset++) {
        const gone = kinds.filter((_, i) => (subset >> i) & 1);
        const store = await copyOf(origin);
        for (const file of await readdir(store))
          if (gone.some((kind) => isOf(kind)(file))) await rm(join(store, file));
        const opening = mintsIn(store).catch((error) => error.code);
        expect(["store_corrupt", minted], `${isReopened} ${gone}`).toContain(await opening);
        await rm(store, { recursive: true });
      }
    }
  });
});

describe("a folder whose CURRENT file names no manifest", () => {
  it.each(["", "MANIFEST-999999\n", "../MANIFEST-000001\n"])(
    "but %j is left as it is",
    async (named) => {
      const store = await copyOf(whole);
      await writeFile(join(store, "CURRENT"), named);
      await expectRefused(store, "store_corrupt");
    },
  );

  it("because the manifest is gone is left as it is", async () => {
    const store = await copyOf(whole);
    for (const file of await readdir(store))
      if (file.startsWith("MANIFEST")) await rm(join(store, file));
    await expectRefused(store, "store_corrupt");
  });
});

it("a manifest that is cut short anywhere leaves the folder as it is, or loses nothing", async () => {
  const flushed = join(folder, "flushed");
  const buffers = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
  const [from, to] = [
    new Level<Buffer, Buffer>(await copyOf(whole), buffers),
    new Level<Buffer, Buffer>(flushed, buffers),
  ];
  for await (const [key, value] of from.iterator()) await to.put(key, value);
  // Moves the log's writes into a table: the manifest then names the table, and a newer log.
  // `level` does not declare what only LevelDB has.
  const levelDb = to as unknown as { compactRange(start: Buffer, end: Buffer): Promise<void> };
  await levelDb.compactRange(Buffer.of(0), Buffer.of(255));
  for (const level of [from, to]) await level.close();
  for (const file of ["journal-length", "FORMAT"]) await cp(join(whole, file), join(flushed, file));
  const minted = await mintsIn(await copyOf(flushed));
  const manifest = (await readFile(join(flushed, "CURRENT"), "utf8")).trim();
  const bytes = await readFile(join(flushed, manifest));
  let refused = 0;
  for (let length = bytes.length - 1; length > 0; length -= 1 + randomInt(8)) {
    const store = await copyOf(flushed);
    await writeFile(join(store, manifest), bytes.subarray(0, length));
    const before = Object.keys(await contentOf(store)).filter((file) => !file.startsWith("LOG"));
    try {
      expect(await mintsIn(store), `${length} of ${bytes.length} bytes`).toBe(minted);
    } catch (error) {
      expect(error, `${length} of ${bytes.length} bytes`).toMatchObject({ code: "store_corrupt" });
      expect(Object.keys(await contentOf(store)).filter((file) => !file.startsWith("LOG"))).toEqual(
        before,
      );
      refused++;
    }
    await rm(store, { recursive: true });
  }
  expect(refused).toBeGreaterThan(5);
});

describe("damage near the end of the log", () => {
  const kinds = {
    "bytes set to zero": (log: Buffer, at: number, length: number) => log.fill(0, at, at + length),
    "bytes of another file": (log: Buffer, at: number, length: number) => {
      for (let i = at; i < at + length; i++) log[i] = randomInt(256);
    },
    "a flipped bit": (log: Buffer, at: number) => {
      log[at] = (log[at] as number) ^ (1 << randomInt(8));
    },
    "a cut": (log: Buffer, at: number) => log.subarray(0, at),
    "a part that is missing": (log: Buffer, at: number, length: number) =>
      Buffer.concat([log.subarray(0, at), log.subarray(at + length)]),
  } as const;

  it.each(Object.entries(kinds))("is refused unless nothing is lost: %s", async (_, damage) => {
    const path = await logOf(whole);
    const intact = await readFile(path);
    const minted = await mintsIn(await copyOf(whole));
    let refused = 0;
    for (let i = 0; i < 40; i++) {
      const store = await copyOf(whole);
      const log = Buffer.from(intact);
      // From the last records to the whole log.
      const reach = Math.min(log.length, 200 * 2 ** randomInt(11));
      const at = log.length - 1 - randomInt(reach);
      const length = 1 + randomInt(Math.min(log.length - at, 40_000));
      const damaged = damage(log, at, length);
      await writeFile(await logOf(store), Buffer.isBuffer(damaged) ? damaged : log);
      const place = `${length} bytes at ${at} of ${log.length}`;
      const before = await contentOf(store);
      try {
        expect(await mintsIn(store), place).toBe(minted);
      } catch (error) {
        expect(error, place).toMatchObject({
          code: "store_corrupt",
          message: expect.stringContaining(store),
        });
        expect(await contentOf(store), place).toEqual(before);
        refused++;
      }
      await rm(store, { recursive: true });
    }
    expect(refused).toBeGreaterThan(30);
  });

  it("is found without the mark too when later writes follow", async () => {
    const store = await copyOf(whole);
    await rm(join(store, "journal-length"));
    const path = await logOf(store);
    const log = await readFile(path);
    log.fill(0, log.length - 3_000, log.length - 2_900);
    await writeFile(path, log);
    await expectRefused(store, "store_corrupt");
  });

  it("is no damage when it cut an unacknowledged write short", async () => {
    const [before, after] = [
      await readFile(await logOf(earlier)),
      await readFile(await logOf(whole)),
    ];
    const minted = await mintsIn(await copyOf(earlier));
    expect(after.subarray(0, before.length)).toEqual(before);
    const added = after.length - before.length;
    for (const part of [1, 6, 7, 8, added >> 1, added - 1]) {
      for (const zeros of [0, 5_000]) {
        const store = await copyOf(earlier);
        const torn = after.subarray(0, before.length + part);
        await writeFile(await logOf(store), Buffer.concat([torn, Buffer.alloc(zeros)]));
        expect(await mintsIn(store), `${part} bytes of ${added}, ${zeros} zeros`).toBe(minted);
      }
    }
  });

  it("that took the whole log is refused, and so is an older copy under the newer mark", async () => {
    const store = await copyOf(whole);
    await rm(await logOf(store));
    await expectRefused(store, "store_corrupt");
    const older = await copyOf(earlier);
    await cp(join(whole, "journal-length"), join(older, "journal-length"));
    await expectRefused(older, "store_corrupt");
    // Nobody can tell any more without the mark.
    await rm(join(older, "journal-length"));
    expect(await mintsIn(older)).toBe((await mintsIn(await copyOf(whole))) - 1);
  });

  it("of the mark itself is refused", async () => {
    const store = await copyOf(whole);
    await writeFile(join(store, "journal-length"), Buffer.alloc(12, 1));
    await expectRefused(store, "store_corrupt");
  });
});

it.runIf(process.platform === "linux")(
  "a store without its LOCK file still has only one engine",
  async () => {
    const store = await copyOf(whole);
    await using engine = await openTest(store);
    await rm(join(store, "LOCK"));
    expect((await refusal(openTest(store))).code).toBe("store_locked");
    expect(engine.environment).toBe("sandbox");
  },
);
