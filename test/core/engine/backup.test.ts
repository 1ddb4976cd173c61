import { MemoryLevel } from "memory-level";
import { expect, test } from "vitest";
import { LevelJournal, restoreStore } from "../../../core/index.ts";
import { encodeEntry } from "../../../core/store/journal.ts";
import { keyOf } from "../../../core/store/store-keys.ts";
import { NaiveJournal } from "../naive/naive-store.ts";
import { all, fixture, hashOf, memory, mintOf, openTest, requestOf } from "./fixture.ts";
import { HOME } from "./l1-fixture.ts";

async function minted() {
  const made = await fixture();
  const mint = (text: number) =>
    made.engine.mint(
      made.tenant.principal,
      requestOf(made.tenant.users[0], mintOf(made.assets.erc721, text)),
    );
  return { ...made, mint };
}

test("a backup adds missing entries while the engine mints, and restores to the same state", async () => {
  const { engine, mint, clock } = await minted();
  await mint(1);
  const copy = memory();
  await using backup = await LevelJournal.open(copy);
  const first = await engine.operator.backup(backup);
  expect(first.added).toBe(first.entries);
  const minting = Promise.all([mint(2), mint(3)]);
  await engine.operator.backup(backup);
  await minting;
  await engine.operator.seal("validium");
  const last = await engine.operator.backup(backup);
  expect(last.entries).toBe(first.entries + 3);
  expect(await engine.operator.backup(backup)).toEqual({ entries: last.entries, added: 0 });
  const state = engine.batches.state();
  await engine.close();
  const target = memory();
  expect(await restoreStore(backup, target)).toBe(last.entries);
  await using restored = await openTest(target, { clock: clock.read, createIfMissing: false });
  expect(restored.batches.state()).toEqual(state);
  expect((await restored.operator.verify()).problems).toEqual([]);
});

test("a backup of another store is refused, and a damaged one is found", async () => {
  const [one, two] = [await minted(), await minted()];
  const copy = memory();
  const backup = await LevelJournal.open(copy);
  await one.engine.operator.backup(backup);
  await expect(two.engine.operator.backup(backup)).rejects.toMatchObject({
    code: "store_mismatch",
  });
  const entry = Buffer.from((await copy.get<Buffer, Buffer>(keyOf.journal(3), BINARY)) ?? []);
  entry[entry.length - 1] = (entry.at(-1) ?? 0) ^ 1;
  await copy.put<Buffer, Buffer>(keyOf.journal(3), entry, BINARY);
  await expect(one.engine.operator.backup(backup)).rejects.toMatchObject({
    code: expect.stringMatching(/^store_/),
  });
  await Promise.all([one.engine.close(), two.engine.close(), backup.close()]);
});

test("a journal of another format is refused by its number, and so is a store", async () => {
  const backup = await LevelJournal.open(memory());
  const genesis = {
    chainId: 1n,
    contract: `0x${"aa".repeat(20)}`,
    engineVersion: 5,
    environment: "sandbox",
  } as const;
  const first = encodeEntry(0, { kind: "genesis", formatVersion: 3, ...genesis });
  await backup.append(0, [first]);
  const target = memory();
  await expect(restoreStore(backup, target)).rejects.toThrow("format 3");
  await backup.close();
  // Nothing was written, so the folder can be used for another restore.
  await target.open();
  expect(await target.keys().all()).toEqual([]);
  const store = memory();
  await (await openTest(store)).close();
  await store.open();
  await store.put<Buffer, Buffer>(keyOf.journal(0), Buffer.from(first), BINARY);
  const refused = { code: "store_mismatch", message: expect.stringContaining("has format 3") };
  await expect(openTest(store, { createIfMissing: false })).rejects.toMatchObject(refused);
});

const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;

test("keeps the hashes of the blocks that were read, of final ones the newest 64, also in a restored store", async () => {
  const { engine } = await fixture();
  const { operator } = engine;
  const numbers = async (at = engine) =>
    (await all(at.operator.checkpoints(HOME))).map(({ number }) => Number(number));
  const from = (newest: number, oldest: number) =>
    Array.from({ length: newest - oldest + 1 }, (_, i) => newest - i);
  for (let block = 1; block <= 200; block++) {
    await operator.recordEvents(HOME, [], BigInt(block), { blockHash: hashOf(block) });
  }
  expect(await numbers()).toEqual(from(200, 1));
  // Without a hash: nothing is known of the block. Beyond the blocks that were read: it is the hash
  // of none of them.
  await operator.recordEvents(HOME, [], 201n);
  await operator.recordFinalized(HOME, 300n, { blockHash: hashOf(300) });
  expect(await numbers()).toEqual(from(200, 138));
  await operator.recordReorg(HOME, 150n, "below final");
  expect(await numbers()).toEqual(from(149, 138));
  await operator.recordEvents(HOME, [], 160n, { blockHash: hashOf(1160) });
  await operator.recordFinalized(HOME, 155n, { blockHash: hashOf(1155) });
  const expected = [160, 155, ...from(149, 138)];
  expect(await numbers()).toEqual(expected);
  const [newest] = await all(operator.checkpoints(HOME));
  expect(newest).toEqual({ number: 160n, hash: hashOf(1160) });
  expect((await operator.verify()).problems).toEqual([]);

  const journal = new NaiveJournal();
  await operator.backup(journal);
  await engine.close();
  const store = new MemoryLevel<Uint8Array, Uint8Array>();
  await restoreStore(journal, store);
  const restored = await openTest(store);
  expect(await numbers(restored)).toEqual(expected);
  await restored.close();
});
