import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseExitKit } from "../core/guards/exit/browser.ts";
import { requireWholeKit } from "../core/guards/exit/kit.ts";
import { LevelJournal, restoreStore, type Uuid } from "../core/index.ts";
import { receiptOf, verifyReceipt } from "../core/protocol/receipt.ts";
import { openTest } from "./core/engine/fixture.ts";
import { seen } from "./core/engine/seen.ts";
import { breaks, exportedNames, GOLDEN, httpDocument, textOf, valueFrom } from "./golden/golden.ts";

// Each test holds a sentence of docs/stability.md to the files that 1.0 wrote. Not one of them may be written anew.

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-golden-"));
  // Opening a store changes its folder.
  await cp(GOLDEN, folder, { recursive: true });
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const read = (name: string) => readFile(join(GOLDEN, name), "utf8");

describe("every later 1.x reads what 1.0 wrote", () => {
  test("a store opens, shows what it showed, and verifies", async () => {
    const { applicationId, seen: before } = valueFrom<{ applicationId: Uuid; seen: unknown }>(await read("seen.json"));
    await using engine = await openTest(join(folder, "store"), { createIfMissing: false });
    expect(valueFrom(textOf(await seen(engine, applicationId)))).toEqual(before);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("a backup becomes a store that shows the same", async () => {
    const { applicationId, seen: before } = valueFrom<{ applicationId: Uuid; seen: unknown }>(await read("seen.json"));
    await using journal = await LevelJournal.open(join(folder, "backup"));
    expect(await restoreStore(journal, join(folder, "restored"))).toBeGreaterThan(0);
    await using engine = await openTest(join(folder, "restored"), { createIfMissing: false });
    expect(valueFrom(textOf(await seen(engine, applicationId)))).toEqual(before);
  });

  test("kits and receipts are good for ever", async () => {
    const kits = await readdir(join(GOLDEN, "kits"));
    expect(kits.sort()).toEqual(["blobs.json", "calldata.json", "transferred.json", "validium.json"]);
    for (const name of kits) requireWholeKit(parseExitKit(await read(`kits/${name}`)));
    const { settlement, signer, vaults, receipt } = valueFrom<GoldenReceipt>(await read("receipt.json"));
    for (const { vaultId } of vaults)
      expect(await verifyReceipt(settlement, signer, receiptOf({ vaults, receipt }, vaultId))).toBe(true);
  });
});

type GoldenReceipt = Parameters<typeof receiptOf>[0] & {
  settlement: Parameters<typeof verifyReceipt>[0];
  signer: Parameters<typeof verifyReceipt>[1];
};

describe("a program that was written for 1.0 works", () => {
  test("over HTTP: no route, no field and no value is gone, and none is required that was not", async () => {
    const before = JSON.parse(await read("openapi.json"));
    expect(breaks(before, httpDocument())).toEqual([]);
  });

  test.each([
    ["a route that is gone", '"/api/v1/vaults/{vaultId}":', '"/api/v1/vaults/{id}":'],
    ["a field that is gone", '"availableBalance":', '"balance":'],
    ["a parameter that is gone", '"name":"ownerAddress","in":"query"', '"name":"owner","in":"query"'],
    ["a value that is not taken", '["validium","zk-rollup"]', '["validium"]'],
  ])("and %s is told", async (_, old, changed) => {
    const before = await read("openapi.json");
    expect(before).toContain(old);
    expect(breaks(JSON.parse(before), JSON.parse(before.replaceAll(old, changed)))).not.toEqual([]);
  });

  test("over imports: no exported name is gone", async () => {
    const now = await exportedNames();
    const gone = Object.entries(valueFrom<Record<string, string[]>>(await read("exports.json"))).flatMap(
      ([path, names]) => names.filter((name) => !now[path]?.includes(name)).map((name) => `${path} ${name}`),
    );
    expect(gone).toEqual([]);
  });
});
