import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import type { Batch, Engine } from "../../../core/index.ts";
import { MAX_BLOB_VAULTS } from "../../../core/protocol/blob-batch.ts";
import { type BatchToDerive, deriveBatch } from "../../../core/sealing/derive-batch.ts";
import { SealingThread } from "../../../core/sealing/sealing-thread.ts";
import { decodeRecord } from "../../../core/store/layout.ts";
import { LevelStore } from "../../../core/store/level-store.ts";
import { batchRecord } from "../../../core/store/records.ts";
import { keyOf } from "../../../core/store/store-keys.ts";
import { VaultColumns } from "../../../core/store/vault-columns.ts";
import { type Fixture, fixture, mintOf, openTest, refusal, requestOf } from "./fixture.ts";

/** Enough for a batch to be sealed on the thread. */
const LARGE = 2_000;
const LIMITS = { batchVaults: { validium: LARGE, "zk-rollup": LARGE } };
const ASSET = {
  chainId: 1n,
  assetType: `0x${"11".repeat(32)}`,
  standard: "erc721",
  mintingBlobScheme: "mintmark",
} as const;
const assetAt = () => ASSET;

/** A request of so many tokens, told apart from other requests' by its name. */
function requestFor({ tenant, assets }: Fixture, name: string, count: number) {
  return requestOf(
    tenant.users[0],
    ...Array.from({ length: count }, (_, i) => mintOf(assets.erc721, `${name}-${i}`)),
  );
}

/** Resolves when so many batches are sealed on disk. */
function sealed(engine: Engine, count: number): Promise<Batch[]> {
  const batches: Batch[] = [];
  return new Promise((resolve) => {
    const off = engine.events.on("batch", ({ type, batch }) => {
      if (type === "batch.sealed") batches.push(batch);
      if (batches.length < count) return;
      off();
      resolve(batches);
    });
  });
}

function vaultsOf(count: number): VaultColumns {
  const vaults = new VaultColumns();
  const holder = { applicationIndex: 0, userIndex: 3, owner: new Uint8Array(20).fill(7) };
  const mintingBlobs = Buffer.from("12345");
  for (let i = 0; i < count; i++) {
    vaults.push(
      holder,
      { assetIndex: 5, amountHigh: 0, amountLow: 1, mintingBlobs, start: 0, end: 5 },
      1,
      1,
      i,
    );
  }
  return vaults;
}

/** The roots of a batch, which bind all that is derived of it. */
function rootsOf(batch: Pick<BatchToDerive, "mode" | "batchNumber">, vaults: VaultColumns) {
  const { batchRoot, dataHash } = deriveBatch(batch, vaults, assetAt);
  return { batchRoot, dataHash };
}

describe("large batches", () => {
  it("are sealed in their order while mints go on, and follow from the journal", async () => {
    const world = await fixture({ limits: LIMITS });
    const { engine, tenant } = world;
    const done = sealed(engine, 3);
    const { transactions } = await engine.mint(
      tenant.principal,
      requestFor(world, "a", 3 * LARGE + 10),
    );
    const more = await engine.mint(tenant.principal, requestFor(world, "b", 1));
    expect(more.transactions[0]?.vaultId).toBe((3n << 20n) | 10n);
    expect((await done).map(({ batchNumber }) => batchNumber)).toEqual([0, 1, 2]);
    const { vaultId = 0n } = transactions[LARGE] ?? {};
    expect((await engine.proofs.vault(vaultId)).siblings).toHaveLength(11);
    const report = await engine.operator.verify();
    expect(report.problems).toEqual([]);
    expect(report).toMatchObject({
      batches: 3,
      vaults: 3 * LARGE + 11,
      state: await engine.batches.state(),
    });
    await engine.close();
  });

  it("closed before a stop are sealed after the restart, before later ones", async () => {
    const world = await fixture({ limits: LIMITS });
    const { engine, tenant, database } = world;
    const minted = engine.mint(tenant.principal, requestFor(world, "a", 2 * LARGE + 10));
    // From now on nothing new is taken, the seals of this mint's batches included.
    const closed = engine.close();
    await minted;
    await closed;
    const store = await LevelStore.open(database, true);
    const left = await Promise.all(
      [0, 1, 2].map((number) => store.get(keyOf.batch("validium", number))),
    );
    expect(
      left.map((record = Buffer.of()) => decodeRecord(batchRecord, record, "a batch").status),
    ).toEqual(["open", "open", "open"]);
    await store.close();
    const reopened = await openTest(database, { limits: LIMITS });
    expect(reopened.batches.getOpen("validium")).toMatchObject({ batchNumber: 2, vaultCount: 10 });
    const twice = reopened.mint(tenant.principal, requestFor(world, "a", 1));
    await expect(twice).rejects.toMatchObject({ code: "token_already_minted" });
    expect(await reopened.operator.seal("validium")).toMatchObject({
      batchNumber: 2,
      status: "sealed",
      vaultCount: 10,
    });
    const { data } = await reopened.batches.list({ mode: "validium" });
    expect(data.map(({ status, vaultCount }) => [status, vaultCount])).toEqual([
      ["sealed", 10],
      ["sealed", LARGE],
      ["sealed", LARGE],
    ]);
    expect((await reopened.operator.verify()).problems).toEqual([]);
    await reopened.close();
  });
});

describe("the sealing thread", () => {
  it("derives what the caller's thread derives", async () => {
    const thread = new SealingThread();
    const batch = { mode: "zk-rollup", batchNumber: 9 } as const;
    const derived = await thread.derive(batch, vaultsOf(1_500), assetAt);
    const own = deriveBatch(batch, vaultsOf(1_500), assetAt);
    for (const name of ["data", "pageRoots", "tokens"] as const) {
      expect(Buffer.from(derived[name]).equals(own[name])).toBe(true);
    }
    expect(derived).toMatchObject({ batchRoot: own.batchRoot, dataHash: own.dataHash });
    await thread.close();
  });

  it("gets a batch of many owners in arrays alone, and derives the same of it", async () => {
    const vaults = new VaultColumns();
    const mintingBlobs = Buffer.from("12345");
    for (let i = 0; i < 3_000; i++) {
      const userIndex = (i * 7) % 2_000;
      const owner = Buffer.alloc(20);
      owner.writeUInt32LE(userIndex, 9);
      vaults.push(
        { applicationIndex: userIndex % 3, userIndex, owner },
        { assetIndex: 5, amountHigh: 0, amountLow: 1, mintingBlobs, start: 0, end: 1 + (i % 5) },
        1,
        1,
        i,
      );
    }
    const { count, columns, ...others } = vaults.parts();
    expect(count).toBe(3_000);
    // One object for each owner would hold up the event loop.
    expect([...columns, ...Object.values(others)].every(ArrayBuffer.isView)).toBe(true);
    const again = VaultColumns.of(structuredClone(vaults.parts()));
    expect([...again.holders]).toEqual(
      [...vaults.holders].map(([index, holder]) => [
        index,
        { ...holder, owner: Uint8Array.from(holder.owner) },
      ]),
    );
    const thread = new SealingThread();
    const place = { mode: "validium", batchNumber: 4 } as const;
    expect(await thread.derive(place, vaults, assetAt)).toMatchObject(rootsOf(place, vaults));
    await thread.close();
  });

  it("queues at most four batches", async () => {
    const thread = new SealingThread();
    const jobs = [0, 1, 2].map((batchNumber) =>
      thread.derive({ mode: "validium", batchNumber }, vaultsOf(10), assetAt),
    );
    expect(thread.room).toBeNull();
    jobs.push(thread.derive({ mode: "validium", batchNumber: 3 }, vaultsOf(10), assetAt));
    await thread.room;
    expect(thread.room).toBeNull();
    await Promise.all(jobs);
    await thread.close();
  });

  it("fails a batch as the caller's thread does, and derives the next one", async () => {
    let started = 0;
    const count = () => started++;
    process.on("worker", count);
    const thread = new SealingThread();
    try {
      const tooLarge = { mode: "zk-rollup", batchNumber: 9, inBlobs: true } as const;
      const next = { mode: "validium", batchNumber: 1 } as const;
      const vaults = vaultsOf(MAX_BLOB_VAULTS + 1);
      const [failed, derived] = await Promise.all([
        refusal(thread.derive(tooLarge, vaults, assetAt)),
        thread.derive(next, vaultsOf(10), assetAt),
      ]);
      const own = await refusal((async () => deriveBatch(tooLarge, vaults, assetAt))());
      expect(failed.code).toBe("batch_too_large");
      expect(failed).toEqual(own);
      expect(derived).toMatchObject(rootsOf(next, vaultsOf(10)));
      expect(await thread.derive(next, vaultsOf(20), assetAt)).toMatchObject(
        rootsOf(next, vaultsOf(20)),
      );
      expect(thread.fault).toBeNull();
      expect(started).toBe(1);
      // A question that cannot be cloned is not asked, and takes no answer of another one.
      const odd = { ...next, batchNumber: (() => 1) as unknown as number };
      const [refused, after] = await Promise.allSettled([
        thread.derive(odd, vaultsOf(10), assetAt),
        thread.derive(next, vaultsOf(10), assetAt),
      ]);
      expect(refused).toMatchObject({ status: "rejected", reason: { name: "DataCloneError" } });
      expect(after).toMatchObject({ value: rootsOf(next, vaultsOf(10)) });
    } finally {
      process.off("worker", count);
      await thread.close();
    }
  });

  it("that dies under its questions is started again, and answers them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mintmark-sealing-"));
    const [script, fault] = [join(folder, "worker.mjs"), join(folder, "fault")];
    writeFileSync(fault, "");
    writeFileSync(
      script,
      `import { existsSync, rmSync } from "node:fs";
      import { parentPort } from "node:worker_threads";
      const fault = ${JSON.stringify(fault)};
      if (!existsSync(fault)) await import(${JSON.stringify(new URL("../../../core/sealing/sealing-worker.ts", import.meta.url))});
      else
        parentPort.on("message", () => {
          rmSync(fault);
          process.exit(1);
        });`,
    );
    const thread = new SealingThread(pathToFileURL(script));
    try {
      const places = [1, 2].map((batchNumber) => ({ mode: "validium", batchNumber }) as const);
      const derived = await Promise.all(
        places.map((place) => thread.derive(place, vaultsOf(10), assetAt)),
      );
      expect(derived).toMatchObject(places.map((place) => rootsOf(place, vaultsOf(10))));
      expect(thread.fault).toBeNull();
    } finally {
      await thread.close();
      rmSync(folder, { recursive: true });
    }
  });

  it("that dies, or cannot start, costs speed and no batch", async () => {
    const batch = { mode: "validium", batchNumber: 1 } as const;
    const own = deriveBatch(batch, vaultsOf(10), assetAt);
    for (const [script, why] of [
      ["data:text/javascript,process.exit(1)", "The thread has ended"],
      ["data:text/javascript,throw new Error('no memory')", "no memory"],
      ["http://nowhere", "ERR_INVALID_URL_SCHEME"],
    ] as const) {
      const thread = new SealingThread(new URL(script));
      const derived = await Promise.all(
        [1, 2].map(() => thread.derive(batch, vaultsOf(10), assetAt)),
      );
      expect(derived).toEqual([own, own]);
      expect(thread.fault?.message).toContain("mintmark-sealing does not run");
      expect(String(thread.fault?.cause)).toContain(why);
      expect(await thread.derive(batch, vaultsOf(10), assetAt)).toEqual(own);
      await thread.close();
    }
  });

  it("drops its queue when the engine closes", async () => {
    const thread = new SealingThread();
    const waiting = thread.derive({ mode: "validium", batchNumber: 1 }, vaultsOf(10), assetAt);
    await Promise.all([
      expect(waiting).rejects.toMatchObject({ code: "engine_closed" }),
      thread.close(),
    ]);
  });

  it("never ends a process that closes while an answer is on its way", () => {
    const program = `
      const { SealingThread } = await import("${new URL("../../../core/sealing/sealing-thread.ts", import.meta.url)}");
      const answers = "import{parentPort}from'worker_threads';parentPort.on('message',()=>parentPort.postMessage({}))";
      const thread = new SealingThread(new URL("data:text/javascript," + answers));
      thread.derive({}, { assetIndices: () => [], parts: () => [] }, () => ({})).catch(() => {});
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
      await thread.close();`;
    expect(() =>
      execFileSync(process.execPath, ["-e", program, "--input-type=module"]),
    ).not.toThrow();
  });
});
