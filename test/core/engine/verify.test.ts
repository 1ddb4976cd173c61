import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { MintmarkError } from "../../../core/errors.ts";
import { decodeEntry } from "../../../core/store/journal.ts";
import { keyOf } from "../../../core/store/store-keys.ts";
import { Reference } from "../../../core/verify/reference.ts";
import { verifyStore } from "../../../core/verify/verify.ts";
import { verifyOnThread } from "../../../core/verify/verify-thread.ts";
import { withTimeLeft } from "../../../server/process/operator/time-left.ts";
import { NaiveJournal, NaiveStore } from "../naive/naive-store.ts";
import { fixture, mintOf, requestOf, SETTLEMENT } from "./fixture.ts";

const noBlobs = () => Promise.reject(new Error("there are no blobs"));

/** A store in which a sealed batch holds ERC-721 tokens, and an open one more. */
async function filled() {
  const store = new NaiveStore();
  const made = await fixture({ store });
  const mint = (from: number) => {
    const mints = Array.from({ length: 200 }, (_, i) => mintOf(made.assets.erc721, from + i));
    return made.engine.mint(made.tenant.principal, requestOf(made.tenant.users[0], ...mints));
  };
  await mint(1_000);
  await made.engine.operator.seal("validium");
  await mint(2_000);
  await made.engine.close();
  return store;
}

test("verify on a thread gives the report that it gives on the event loop, of a damaged store too", async () => {
  const store = await filled();
  const both = async () => {
    const here = await verifyStore(store, SETTLEMENT, {}, noBlobs);
    expect(await verifyOnThread(store, SETTLEMENT, {}, noBlobs)).toEqual(here);
    return here;
  };
  expect(await both()).toMatchObject({ vaults: 400, tokens: 400, problems: [] });
  const key = keyOf.chunk("validium", 0, 1);
  const chunk = Buffer.from((await store.get(key)) ?? []);
  chunk.writeUInt8(chunk.readUInt8(20) ^ 1, 20);
  await store.write([{ type: "put", key, value: chunk }]);
  expect((await both()).problems).toEqual([
    expect.stringContaining("vaults 64 to 127 of batch 0 of validium differs"),
  ]);
  await store.write([{ type: "del", key: keyOf.journal(3) }]);
  expect((await both()).problems).toEqual(["Journal entry 3 is missing."]);
});

test("verify on a thread ends at once by its signal, and tells how far it is", async () => {
  const store = await filled();
  const stopped = new AbortController();
  const verified = verifyOnThread(store, SETTLEMENT, { signal: stopped.signal }, noBlobs);
  stopped.abort(new Error("enough"));
  await expect(verified).rejects.toThrow("enough");
  const shares: number[] = [];
  await verifyOnThread(store, SETTLEMENT, { onShare: (share) => shares.push(share) }, noBlobs);
  expect(shares.at(-1)).toBe(1);
});

test("verify on a thread that runs out of memory is tried again with more", async () => {
  const store = await filled();
  const report = await verifyOnThread(store, SETTLEMENT, {}, noBlobs, [4, 512]);
  expect(report.problems).toEqual([]);
  await expect(verifyOnThread(store, SETTLEMENT, {}, noBlobs, [4])).rejects.toMatchObject({
    code: "ERR_WORKER_OUT_OF_MEMORY",
  });
});

test("verify on a thread passes on a failure of the store, with its code", async () => {
  const store = await filled();
  const failing = Object.assign(Object.create(store) as NaiveStore, {
    atSnapshot: (body: Parameters<NaiveStore["atSnapshot"]>[0]) =>
      body({
        get: (key) => store.get(key),
        getMany: (keys) => store.getMany(keys),
        entries: async function* () {
          yield* [];
          throw new MintmarkError("store_failed", "the disk is gone");
        },
      }),
  });
  await expect(verifyOnThread(failing, SETTLEMENT, {}, noBlobs)).rejects.toMatchObject({
    code: "store_failed",
    message: "the disk is gone",
  });
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heldBytes(): number {
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** The journal of a store with so many sealed batches of ERC-721 tokens. */
async function journalOf(batches: number): Promise<readonly Uint8Array[]> {
  const limits = { batchVaults: { validium: 8_192, "zk-rollup": 8_192 } };
  const { engine, tenant, assets } = await fixture({ limits });
  for (let batch = 0; batch < batches; batch++) {
    const mints = Array.from({ length: 8_192 }, (_, i) => mintOf(assets.erc721, batch * 8_192 + i));
    await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
    await engine.operator.seal("validium");
  }
  const journal = new NaiveJournal();
  await engine.operator.backup(journal);
  await engine.close();
  return journal.list;
}

/** Bytes that the reference holds once it has read a journal. */
async function heldFor(journal: readonly Uint8Array[]): Promise<number> {
  const report = (problem: string): never => {
    throw new Error(problem);
  };
  const reference = new Reference(report, {
    seed: new Uint8Array(32),
    foreseen: { voidings: new Map(), adoptions: [], keysForgotten: 0 },
    commit: noBlobs,
    vaultAt: async () => undefined,
    tokensAt: noBlobs,
  });
  const before = heldBytes();
  for (const [sequence, entry] of journal.entries())
    await reference.apply(decodeEntry(sequence, entry));
  const held = heldBytes() - before;
  expect(reference.totals.tokens).toBeGreaterThan(0);
  return held;
}

test("verify holds no more memory for a store of four times as many sealed vaults", async () => {
  const [few, many] = [await journalOf(3), await journalOf(12)];
  await heldFor(few); // Compiles the code, whose memory would count
  const more = (await heldFor(many)) - (await heldFor(few));
  const vaults = 9 * 8_192;
  expect(more / vaults).toBeLessThan(8);
});

test("shows the time that is left by the rate so far", () => {
  const shown: string[] = [];
  let now = 5_000;
  const progress = withTimeLeft(
    (where) => shown.push(where),
    () => now,
  );
  for (const [after, share] of [
    [1_000, 0],
    [8_000, 0.1],
    [60_000, 0.1],
    [3_600_000, 0.2],
    [3_600_000, 1],
  ] as const) {
    now = 5_000 + after;
    progress("3 journal entries", share);
  }
  expect(shown).toEqual([
    "3 journal entries, 0 %",
    "3 journal entries, 10 %, 72 s left",
    "3 journal entries, 10 %, 9 min left",
    "3 journal entries, 20 %, 4.0 h left",
    "3 journal entries, 100 %",
  ]);
});
