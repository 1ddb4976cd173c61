import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Engine } from "../core/index.ts";
import {
  CALLERS,
  type EngineFigures,
  type MintFigures,
  REQUEST,
  SINGLE_CALLERS,
  type Workload,
  type World,
} from "./engine-workload.ts";
import type { FindingFigures } from "./finding.ts";
import { median } from "./measure.ts";

/**
 * One row of the `engine` section, in separate processes, so no row affects another's memory: `fill <folder> <mints>`
 * makes a store; `measure <folder> <mints>` opens it, measures, and writes `EngineFigures` as JSON to standard output;
 * `mint <folder> <mints>` and `find <folder> <mints>` do the same with `MintFigures` and `FindingFigures`. Progress goes
 * to standard error. A fourth argument names another revision's `engine-workload.ts`, whose engine is then measured.
 */

const [action, folder = "", mints = "0", workload] = process.argv.slice(2);
const {
  open,
  settle,
  Workload: Requests,
}: typeof import("./engine-workload.ts") = await import(
  workload === undefined ? "./engine-workload.ts" : pathToFileURL(workload).href
);

/** Requests prepared before the clock starts. */
const ROUND = 100;
const ROUNDS = 5;
const SINGLES = 20_000;
const SINGLE_ROUNDS = 3;
const PROOFS = 500;
/** The oldest vaults, some of which are proven. */
const PROVEN = 4_096;
/** The file in a filled folder with facts for the measuring process. */
const WORLD_FILE = "world.json";

/** Sends all requests from `callers` callers; each sends the next one after the response to its last. */
async function send(engine: Engine, { principal }: World, requests: readonly unknown[], callers: number) {
  let next = 0;
  const caller = async () => {
    while (next < requests.length) {
      const { transactions } = await engine.mint(principal, requests[next++]);
      if (transactions[0] === undefined) throw new Error("a mint without transactions");
    }
  };
  const start = performance.now();
  const all = process.cpuUsage();
  const loop = process.threadCpuUsage();
  await Promise.all(Array.from({ length: callers }, caller));
  const ofLoop = process.threadCpuUsage(loop);
  const ofAll = process.cpuUsage(all);
  return {
    ms: performance.now() - start,
    loopUs: ofLoop.user + ofLoop.system,
    allUs: ofAll.user + ofAll.system,
  };
}

async function bulkRound(engine: Engine, world: World, workload: Workload) {
  const requests = Array.from({ length: ROUND }, () => workload.bulk());
  const mints = ROUND * REQUEST;
  const { ms, loopUs, allUs } = await send(engine, world, requests, CALLERS);
  return { rate: mints / ms, loop: loopUs / mints, all: allUs / mints };
}

async function singleRound(engine: Engine, world: World, workload: Workload) {
  const requests = Array.from({ length: SINGLES }, () => workload.single());
  const { ms, loopUs, allUs } = await send(engine, world, requests, SINGLE_CALLERS);
  return { rate: SINGLES / ms, loop: loopUs / SINGLES, all: allUs / SINGLES };
}

/** Compiles the hot code, on a temporary store. */
async function warmUp(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-warm-"));
  try {
    const engine = await open(folder);
    const world = await settle(engine);
    const workload = new Requests(world);
    for (let i = 0; i < 3; i++) await bulkRound(engine, world, workload);
    await singleRound(engine, world, workload);
    if (action === "measure") await proofs(engine);
    await engine.close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Milliseconds a proof, spread over the oldest vaults. */
async function proofs(engine: Engine): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < PROOFS; i++) {
    const start = performance.now();
    await engine.proofs.vault(BigInt((i * 7919) % PROVEN));
    samples.push(performance.now() - start);
  }
  return median(samples);
}

async function bytesOf(folder: string): Promise<number> {
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function fill(folder: string, mints: number): Promise<void> {
  const engine = await open(join(folder, "store"));
  const world = await settle(engine);
  const workload = new Requests(world);
  for (let done = 0; done < mints; done += ROUND * REQUEST) {
    process.stderr.write(`filling, ${done} of ${mints}\n`);
    const count = Math.min(ROUND, (mints - done) / REQUEST);
    const requests = Array.from({ length: count }, () => workload.bulk());
    await send(engine, world, requests, CALLERS);
  }
  // A store of a few mints has no sealed vault to prove.
  if (mints > 0 && workload === undefined) await engine.operator.seal("validium");
  await engine.close();
  await writeFile(join(folder, WORLD_FILE), JSON.stringify(world));
}

function megabytes(): number {
  return process.memoryUsage.rss() / 1e6;
}

async function measured(folder: string, mints: number): Promise<EngineFigures> {
  const store = join(folder, "store");
  process.stderr.write("opening\n");
  const opening = performance.now();
  const engine = await open(store);
  const openMs = performance.now() - opening;
  globalThis.gc?.();
  const memory = megabytes();
  await engine.close();
  let proof = Number.NaN;
  const figures = await minted(folder, mints, async (opened) => {
    proof = await proofs(opened);
  });
  const vaults = mints + ROUNDS * ROUND * REQUEST + SINGLE_ROUNDS * SINGLES;
  const peak = (process.resourceUsage().maxRSS * 1024) / 1e6;
  return { ...figures, proof, open: openMs, memory, peak, disk: (await bytesOf(store)) / vaults };
}

/** The figures of minting; `afterwards` runs before memory is read. */
async function minted(
  folder: string,
  mints: number,
  afterwards?: (engine: Engine) => Promise<void>,
): Promise<MintFigures> {
  const world: World = JSON.parse(await readFile(join(folder, WORLD_FILE), "utf8"));
  process.stderr.write("warming up\n");
  await warmUp();
  const engine = await open(join(folder, "store"));
  const workload = new Requests(world, mints);
  const bulk: Awaited<ReturnType<typeof bulkRound>>[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    process.stderr.write(`requests of ${REQUEST}, round ${i + 1} of ${ROUNDS}\n`);
    bulk.push(await bulkRound(engine, world, workload));
  }
  const single: Awaited<ReturnType<typeof singleRound>>[] = [];
  for (let i = 0; i < SINGLE_ROUNDS; i++) {
    process.stderr.write(`requests of 1, round ${i + 1} of ${SINGLE_ROUNDS}\n`);
    single.push(await singleRound(engine, world, workload));
  }
  await afterwards?.(engine);
  // The garbage collector returns memory with a delay.
  globalThis.gc?.();
  await sleep(500);
  globalThis.gc?.();
  const steady = megabytes();
  await engine.close();
  return {
    bulk: median(bulk.map(({ rate }) => rate)),
    bulkLoop: median(bulk.map(({ loop }) => loop)),
    bulkCpu: median(bulk.map(({ all }) => all)),
    singles: median(single.map(({ rate }) => rate)),
    singlesLoop: median(single.map(({ loop }) => loop)),
    singlesCpu: median(single.map(({ all }) => all)),
    steady,
  };
}

/** Pages of each filter that are timed. */
const PAGES = 20;

async function findings(folder: string, mints: number): Promise<FindingFigures> {
  const world: World = JSON.parse(await readFile(join(folder, WORLD_FILE), "utf8"));
  await using engine = await open(join(folder, "store"));
  const { applicationId } = world.principal;
  const { assets } = world;
  const [userId = ""] = world.users;
  const { ownerAddress } = await engine.users.get(applicationId, userId);
  const order = { assetId: assets.currency, amount: 1, dataAvailabilityMode: "validium", reference: "order" };
  await engine.mint(world.principal, { users: [{ userId, mints: [order] }] });
  // The middle of the store: neither its newest nor its oldest part.
  const newest = await engine.transactions.list(applicationId, { limit: 1 });
  const [oldest] = (await engine.transactions.list(applicationId, { limit: 1, order: "asc" })).data;
  const times = [oldest, newest.data[0]].map((one) => one?.timestamps.accepted ?? 0);
  const middle = ((times[0] ?? 0) + (times[1] ?? 0)) / 2;
  const { batchNumber } = engine.batches.getOpen("zk-rollup");
  const batchId = `zk-rollup-${Math.floor(batchNumber / 2)}`;
  // A quarter of the mints is of the counted collection, from this id on.
  const unique = 1_000_000n + BigInt(Math.floor(mints / 8));
  const { vaults, transactions, users } = engine;
  const pages: Readonly<Record<string, () => Promise<{ readonly data: readonly unknown[] }>>> = {
    "vaults?tokenId, ERC-721": () => vaults.list(applicationId, { assetId: assets.counted, tokenId: unique }),
    "vaults?tokenId, ERC-1155": () => vaults.list(applicationId, { assetId: assets.items, tokenId: 7n }),
    "vaults?tokenId, of any asset": () => vaults.list(applicationId, { tokenId: unique }),
    "vaults?ownerAddress": () => vaults.list(applicationId, { ownerAddress }),
    "vaults?userId": () => vaults.list(applicationId, { userId }),
    "vaults?assetId": () => vaults.list(applicationId, { assetId: assets.currency }),
    "vaults?batchId": () => vaults.list(applicationId, { batchId }),
    "vaults?status=accepted": () => vaults.list(applicationId, { status: "accepted" }),
    "vaults?status=batched": () => vaults.list(applicationId, { status: "batched" }),
    "vaults?status=batched&dataAvailabilityMode=zk-rollup": () =>
      vaults.list(applicationId, { status: "batched", dataAvailabilityMode: "zk-rollup" }),
    "vaults?createdAfter&createdBefore": () =>
      vaults.list(applicationId, { createdAfter: middle, createdBefore: middle + 1_000 }),
    "vaults?reference": () => vaults.list(applicationId, { reference: "order" }),
    "transactions?reference": () => transactions.list(applicationId, { reference: "order" }),
    "transactions?batchId": () => transactions.list(applicationId, { batchId }),
    "withdrawals?userId": () => engine.withdrawals.list(applicationId, { userId }),
    "users?ownerAddress": () => users.list(applicationId, { ownerAddress }),
    "usage, 30 days": async () => ({ data: (await transactions.usage(applicationId)).periods }),
  };
  const figures: Record<string, number> = {};
  for (const [name, page] of Object.entries(pages)) {
    process.stderr.write(`${name}\n`);
    const { data } = await page();
    if (data.length === 0 && !name.startsWith("withdrawals")) throw new Error(`${name} finds nothing`);
    const samples: number[] = [];
    for (let i = 0; i < PAGES; i++) {
      const start = performance.now();
      await page();
      samples.push(performance.now() - start);
    }
    figures[name] = median(samples);
  }
  return figures;
}

if (action === "fill") await fill(folder, Number(mints));
else if (action === "measure") process.stdout.write(JSON.stringify(await measured(folder, Number(mints))));
else if (action === "mint") process.stdout.write(JSON.stringify(await minted(folder, Number(mints))));
else if (action === "find") process.stdout.write(JSON.stringify(await findings(folder, Number(mints))));
