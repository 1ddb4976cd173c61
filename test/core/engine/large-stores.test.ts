import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { LevelJournal, restoreStore } from "../../../core/index.ts";
import { readLimits } from "../../../core/ledger/options.ts";
import { loadTokens, openLedger } from "../../../core/lifecycle/start.ts";
import { newSecrets } from "../../../core/store/genesis.ts";
import type { StoreOperation } from "../../../core/store/ports.ts";
import { keyOf, PREFIX } from "../../../core/store/store-keys.ts";
import { decodeBatchTokens, TokenIndex } from "../../../core/store/token-index.ts";
import { restoreRecords } from "../../../core/verify/restore-records.ts";
import { onlyForward, restoreOnThread } from "../../../core/verify/verify-thread.ts";
import { NaiveJournal, NaiveStore } from "../naive/naive-store.ts";
import { type Fixture, fixture, mintOf, requestOf, SETTLEMENT } from "./fixture.ts";

const MEGABYTE = 1 << 20;

const sizeOf = (records: readonly Uint8Array[]) =>
  records.reduce((sum, record) => sum + record.length, 0);

/** Mints ERC-721 tokens from a number on, in one request. */
async function mintTokens({ engine, tenant, assets }: Fixture, from: bigint, count: number) {
  const ids = Array.from({ length: count }, (_, i) => from + BigInt(i));
  const mints = ids.map((id) => mintOf(assets.erc721, String(id)));
  await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
}

/** A journal and a store that note the bytes of each write. */
function noting() {
  const [appended, written]: [number[], number[]] = [[], []];
  class Journal extends NaiveJournal {
    override append(length: number, entries: readonly Uint8Array[]) {
      appended.push(sizeOf(entries));
      return super.append(length, entries);
    }
  }
  class Store extends NaiveStore {
    override write(operations: readonly StoreOperation[]) {
      written.push(sizeOf(operations.map((one) => (one.type === "put" ? one.value : one.key))));
      return super.write(operations);
    }
  }
  return { appended, written, journal: new Journal(), store: new Store() };
}

test("a backup and a restored store are written a megabyte at a time", async () => {
  const made = await fixture();
  const REQUESTS = 24;
  // Ids of 78 digits: an entry takes some 80 kB.
  for (let i = 0; i < REQUESTS; i++) await mintTokens(made, 10n ** 77n + 1_000n * BigInt(i), 1_000);
  const { appended, written, journal, store } = noting();
  await made.engine.operator.backup(journal);
  await made.engine.close();
  const longest = Math.max(...journal.list.map((entry) => entry.length));
  expect(sizeOf(journal.list)).toBeGreaterThan(1.5 * MEGABYTE);
  expect(Math.max(...appended)).toBeLessThan(MEGABYTE + longest);
  await restoreStore(journal, store);
  expect(Math.max(...written)).toBeLessThan(MEGABYTE + longest);
  expect(written.length).toBeLessThan(10);
});

test("a journal's tables are short, because whoever reads it maps them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-journal-"));
  const journal = await LevelJournal.open(folder);
  for (let i = 0; i < 24; i++) await journal.append(i, [randomBytes(MEGABYTE)]);
  await journal.close();
  const tables = (await readdir(folder)).filter((name) => name.endsWith(".ldb"));
  const sizes = await Promise.all(
    tables.map(async (name) => (await stat(join(folder, name))).size),
  );
  await rm(folder, { recursive: true });
  expect(sizes.length).toBeGreaterThan(4);
  expect(Math.max(...sizes)).toBeLessThan(4 * MEGABYTE);
});

const noBlobs = () => Promise.reject(new Error("no blob here"));

test("a thread restores the records that the caller's thread restores, also in a second heap", async () => {
  const made = await fixture();
  for (let i = 0; i < 3; i++) {
    await mintTokens(made, 1_000n * BigInt(i), 1_000);
    await made.engine.operator.seal("validium");
  }
  const journal = new NaiveJournal();
  await made.engine.operator.backup(journal);
  await made.engine.close();
  const entries = journal.list.map((value, i) => ({
    type: "put" as const,
    key: keyOf.journal(i),
    value,
  }));
  const begun = [...newSecrets(), ...entries];
  const recordsOf = async (restore: (store: NaiveStore) => Promise<number>) => {
    const store = new NaiveStore();
    await store.write(begun);
    expect(await restore(store)).toBe(journal.list.length);
    return Array.fromAsync(store.entries({}), ([key, value]) => [key.toString("hex"), value]);
  };
  const expected = await recordsOf((store) => restoreRecords(store, {}, noBlobs));
  expect(expected.length).toBeGreaterThan(begun.length);
  const second = await recordsOf((store) => restoreOnThread(store, {}, noBlobs, [4, 512]));
  expect(second).toEqual(expected);
  const tooSmall = recordsOf((store) => restoreOnThread(store, {}, noBlobs, [4]));
  await expect(tooSmall).rejects.toMatchObject({ code: "ERR_WORKER_OUT_OF_MEMORY" });
});

test("the progress of a second try is told once it is beyond that of the first", () => {
  const told: (readonly [string, number])[] = [];
  const { onProgress, onShare } = onlyForward({
    onProgress: (entries) => told.push(["entries", entries]),
    onShare: (share) => told.push(["share", share]),
  });
  for (const part of [1, 2, 3, 1, 2, 3, 4]) {
    onProgress(1_024 * part);
    onShare(part / 4);
  }
  expect(told).toEqual(
    [1, 2, 3, 4].flatMap((part) => [
      ["entries", 1_024 * part],
      ["share", part / 4],
    ]),
  );
});

test("a restoring thread ends with its caller's signal, and tells of a journal that gives no store", async () => {
  const made = await fixture();
  await mintTokens(made, 0n, 1_000);
  const journal = new NaiveJournal();
  await made.engine.operator.backup(journal);
  await made.engine.close();
  const storeOf = async (from: number) => {
    const store = new NaiveStore();
    const put = (value: Uint8Array, i: number) =>
      ({ type: "put", key: keyOf.journal(i), value }) as const;
    await store.write([...newSecrets(), ...journal.list.toSpliced(from, 1).map(put)]);
    return store;
  };
  const stopped = new AbortController();
  const { signal } = stopped;
  const restoring = restoreOnThread(await storeOf(journal.list.length), { signal }, noBlobs);
  stopped.abort(new Error("enough"));
  await expect(restoring).rejects.toThrow("enough");
  // Without the entry after genesis, which later ones build on.
  const wrong = restoreOnThread(await storeOf(1), {}, noBlobs);
  await expect(wrong).rejects.toMatchObject({ code: "store_corrupt" });
});

test("an opening store takes its tokens into the index in parts, with the same result", async () => {
  const made = await fixture();
  const BATCHES = 12;
  for (let i = 0; i < BATCHES; i++) {
    await mintTokens(made, 1_000n * BigInt(i), 20 + 3 * i);
    await made.engine.operator.seal("validium");
  }
  await made.engine.close();
  const options = { store: made.database, settlement: SETTLEMENT, environment: "sandbox" } as const;
  const { ledger } = await openLedger(options, readLimits(), () => {}, "standby");
  const stored = [];
  const range = {
    gte: Buffer.from([PREFIX.batchTokens]),
    lt: Buffer.from([PREFIX.batchTokens + 1]),
  };
  for await (const [, record] of ledger.store.entries(range))
    stored.push(decodeBatchTokens(record, "a batch"));
  const hashes = stored.flatMap((batch) => [...batch.hashes]);
  const found = () =>
    hashes.map((hash) => (ledger.minting.tokens.candidates(hash) ?? []).sort((a, b) => a - b));

  await loadTokens(ledger, hashes.length);
  const expected = found();
  expect(expected.every((refs) => refs.length > 0)).toBe(true);
  for (const vaultsAtOnce of [1, 50, 130]) {
    const [reads, taken]: [number[], number[]] = [[], []];
    vi.spyOn(ledger.store, "getMany").mockImplementation(async (keys) => {
      reads.push(taken.length);
      return Promise.all(keys.map((key) => ledger.store.get(key)));
    });
    const { insertAll } = TokenIndex.prototype;
    vi.spyOn(TokenIndex.prototype, "insertAll").mockImplementation(function (
      this: TokenIndex,
      ...some
    ) {
      taken.push(...some[1]);
      insertAll.apply(this, some);
    });
    await loadTokens(ledger, vaultsAtOnce);
    vi.restoreAllMocks();
    expect(found()).toEqual(expected);
    // The tokens of one part are in the index before the next part is read.
    const parts = Math.min(BATCHES, Math.ceil(hashes.length / vaultsAtOnce));
    expect(new Set(reads).size).toBe(parts);
    expect(taken.length).toBe(hashes.length);
  }
  await ledger.store.close();
});
