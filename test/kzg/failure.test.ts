import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { BLOB_BYTES } from "../../core/protocol/blob-batch.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { HeldBytes } from "../../server/http/access/rate-account.ts";
import { engineChecks, shown } from "../../server/jobs/readiness.ts";
import {
  fixture,
  mintOf,
  openTest,
  refusal,
  requestOf,
  SETTLEMENT,
} from "../core/engine/fixture.ts";

const MODE = "zk-rollup";
const INFINITY = `0xc0${"00".repeat(47)}`;

const works = new KzgThread();
afterAll(() => works.close());

/** A thread that fails at its start, at each job, or at the first one, until `mend`. */
function failing(at: "start" | "job" | "first job") {
  const folder = mkdtempSync(join(tmpdir(), "mintmark-kzg-"));
  const [script, fault] = [join(folder, "worker.mjs"), join(folder, "fault")];
  writeFileSync(fault, "");
  writeFileSync(
    script,
    `import { existsSync, rmSync } from "node:fs";
    import { parentPort } from "node:worker_threads";
    const [at, fault] = ${JSON.stringify([at, fault])};
    if (!existsSync(fault)) await import(${JSON.stringify(new URL("../../core/protocol/kzg/kzg-worker.ts", import.meta.url))});
    else if (at === "start") throw Object.assign(new Error("cannot allocate memory"), { code: "ENOMEM" });
    else
      parentPort.on("message", () => {
        if (at === "first job") rmSync(fault);
        process.exit(1);
      });`,
  );
  const kzg = new KzgThread(pathToFileURL(script));
  onTestFinished(async () => {
    await kzg.close();
    rmSync(folder, { recursive: true });
  });
  return { kzg, mend: () => rmSync(fault) };
}

test("a thread that dies under its jobs is started again, and does them", async () => {
  const { kzg } = failing("first job");
  const blob = new Uint8Array(BLOB_BYTES);
  expect(await Promise.all([kzg.commitment(blob), kzg.commitment(blob)])).toEqual([
    INFINITY,
    INFINITY,
  ]);
});

test("the native code, which this thread has loaded too, ends the process by none of many jobs", async () => {
  expect(await works.isAvailable()).toBe(true);
  const notInTheField = new Uint8Array(BLOB_BYTES).fill(0xff);
  for (let round = 0; round < 100; round++) {
    const jobs = Array.from({ length: 64 }, () => refusal(works.commitment(notInTheField)));
    expect(new Set((await Promise.all(jobs)).map(({ code }) => code))).toEqual(
      new Set(["validation_failed"]),
    );
  }
});

test.each(["start", "job"] as const)(
  "a thread that fails at each %s fails its jobs",
  async (at) => {
    const { kzg } = failing(at);
    expect(await kzg.isAvailable()).toBe(true);
    const refused = await refusal(kzg.commitment(new Uint8Array(BLOB_BYTES)));
    expect(refused.code).toBe("kzg_unavailable");
  },
);

test("without KZG, closed batches in blobs wait and nothing else does; the engine seals them once KZG works", async () => {
  const { kzg, mend } = failing("start");
  const { engine, tenant, assets, database, clock } = await fixture({ kzg });
  engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
  const mint = (mode: "validium" | typeof MODE, id: number) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, id, 1, mode)));
  const checked = async (of: typeof engine) => engineChecks(of, new HeldBytes()).kzg?.();
  expect(await checked(engine)).toBe("no batch waits for it");
  await mint(MODE, 1);
  expect((await refusal(engine.operator.seal(MODE))).code).toBe("kzg_unavailable");
  const fault = await (checked(engine) as Promise<unknown>).catch((error: unknown) => error);
  expect(shown(fault)).toBe(
    "the KZG thread does not run (ENOMEM): batches in blobs wait; the log has more",
  );
  // Batches behind it wait too. Mints and validium go on.
  engine.operator.placeInBlobs(SETTLEMENT.chainId, false);
  await mint(MODE, 2);
  expect((await refusal(engine.operator.seal(MODE))).code).toBe("kzg_unavailable");
  await mint("validium", 3);
  expect(await engine.operator.seal("validium")).toMatchObject({ status: "sealed" });
  expect(engine.batches.state()).toMatchObject({ countValidium: 1, countRollup: 0 });
  expect(engine.ended.aborted).toBe(false);
  await engine.close();

  // The kind is chosen at the seal, and after a restart nobody has said that L1 takes blobs.
  await using opened = await openTest(database, { kzg, clock: clock.read });
  opened.operator.placeInBlobs(SETTLEMENT.chainId, true);
  expect(opened.batches.getOpen(MODE)).toMatchObject({ batchNumber: 1, vaultCount: 1 });
  mend();
  await opened.operator.seal(MODE);
  await expect.poll(() => opened.batches.state().countRollup, { interval: 20 }).toBe(2);
  for (const batchNumber of [0, 1])
    expect(await opened.batches.get(MODE, batchNumber)).toMatchObject({
      status: "sealed",
      vaultCount: 1,
    });
  expect(opened.operator.kzgFault()).toBeNull();
  expect(await checked(opened)).toBe("no batch waits for it");
  expect((await opened.operator.verify()).problems).toEqual([]);
});

test("a store whose newest batch is in blobs opens where no KZG runs", async () => {
  const { engine, tenant, assets, database, clock } = await fixture({ kzg: works });
  engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
  await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], mintOf(assets.erc721, 1, 1, MODE)),
  );
  await engine.operator.seal(MODE);
  await engine.close();
  await using opened = await openTest(database, { kzg: failing("start").kzg, clock: clock.read });
  expect(opened.batches.state()).toMatchObject({ countRollup: 1 });
  expect((await refusal(opened.operator.verify())).code).toBe("kzg_unavailable");
});

test("what a kill left closed in one mode is sealed once the batches of both are loaded", async () => {
  const limits = { batchVaults: { validium: 1_100, "zk-rollup": 1_100 } };
  const { engine, tenant, assets, database, clock } = await fixture({ kzg: works, limits });
  engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
  const mint = (mode: "validium" | typeof MODE, first: number, count: number) => {
    const mints = Array.from({ length: count }, (_, i) =>
      mintOf(assets.erc721, first + i, 1, mode),
    );
    return engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
  };
  await mint(MODE, 1, 1_000);
  await engine.operator.seal(MODE);
  // Its first batch is full, and the engine closes before the thread has derived it.
  await mint("validium", 5_000, 1_101);
  await engine.close();
  await using opened = await openTest(database, { kzg: works, clock: clock.read, limits });
  await expect.poll(() => opened.batches.state().countValidium, { interval: 5 }).toBe(1);
  expect(opened.ended.aborted).toBe(false);
  expect(opened.batches.state().countRollup).toBe(1);
});
