import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, LevelJournal, restoreStore } from "../core/index.ts";
import { holdsStore } from "../core/store/level-folder.ts";
import { withTimeLeft } from "../server/process/operator/time-left.ts";
import { CALLERS, open, REQUEST, settle, Workload, type World } from "./engine-workload.ts";
import {
  costOf,
  fromCallers,
  inFolder,
  median,
  medianMs,
  megabytes,
  ownMegabytes,
  ownPeakOf,
  peakMegabytes,
} from "./harness.ts";

/**
 * One step of bench/scale.ts in a process of its own: `<step> <folder> <vaults>`. Writes its
 * figures to standard output as JSON, and its progress to standard error.
 */

const [step = "", folder = "", given = "0"] = process.argv.slice(2);
const VAULTS = Number(given);
const STORE = join(folder, "store");
const BACKUP = join(folder, "backup");
const RESTORED = join(folder, "restored");
const WORLD = join(folder, "world.json");

const ROUND = 100; // Requests between two looks at the number of vaults
const SAMPLES = 200;
const TURNS = 5;
const TURN = 40; // Requests of one turn
const BESIDE_MS = 10_000;

const say = (where: string) => void process.stderr.write(`${where}\n`);
const timed = withTimeLeft(say);

async function worldIn(engine: Engine): Promise<World> {
  const stored = await readFile(WORLD, "utf8").catch(() => null);
  if (stored !== null) return JSON.parse(stored) as World;
  const world = await settle(engine);
  await writeFile(WORLD, JSON.stringify(world));
  return world;
}

/** A workload that repeats no token of the store: a vault takes at most one of each kind. */
function workloadFor(engine: Engine, world: World): Workload {
  return new Workload(world, 2 * engine.batches.uncommittedVaults() + 2 * ROUND * REQUEST, [
    "validium",
  ]);
}

function mintBulk(engine: Engine, world: World, workload: Workload, count: number): Promise<void> {
  const requests = Array.from({ length: count }, () => workload.bulk());
  return fromCallers(CALLERS, requests, (request) => engine.mint(world.principal, request));
}

/** Mints until the store has all vaults; goes on where an interrupted run ended. */
async function fill() {
  await mkdir(folder, { recursive: true });
  const engine = await open(STORE);
  const world = await worldIn(engine);
  const workload = workloadFor(engine, world);
  for (;;) {
    const left = VAULTS - engine.batches.uncommittedVaults();
    if (left <= 0) break;
    timed(`filling, ${VAULTS - left} of ${VAULTS} vaults`, 1 - left / VAULTS);
    await mintBulk(engine, world, workload, Math.min(ROUND, Math.ceil(left / REQUEST)));
  }
  const { validium } = { validium: engine.batches.getOpen("validium") };
  if (validium.vaultCount > 0) await engine.operator.seal("validium");
  await engine.close();
  const files = await Promise.all((await readdir(STORE)).map((name) => stat(join(STORE, name))));
  return { disk: files.reduce((sum, { size }) => sum + size, 0) / VAULTS };
}

async function opening() {
  const before = process.cpuUsage();
  const start = performance.now();
  const engine = await open(STORE);
  const openMs = performance.now() - start;
  const { user, system } = process.cpuUsage(before);
  globalThis.gc?.();
  const figures = {
    open: openMs / 1e3,
    openCpu: (user + system) / 1e6,
    openMb: megabytes(),
    openOwn: ownMegabytes(),
  };
  await engine.close();
  return { ...figures, openPeak: peakMegabytes() };
}

/** Pages and proofs at random places of the store. */
async function finding() {
  await using engine = await open(STORE);
  const world = await worldIn(engine);
  const { applicationId } = world.principal;
  const { vaults, proofs, users } = engine;
  const userOf = (i: number) => world.users[(i * 7) % world.users.length] ?? "";
  const batches = engine.batches.getOpen("validium").batchNumber;
  const owners = await Promise.all(
    world.users.map(async (userId) => (await users.get(applicationId, userId)).ownerAddress),
  );
  const vaultAt = (i: number) =>
    (BigInt((i * 7_919) % batches) << 20n) | BigInt((i * 104_729) % 4_096);
  const ownerOf = (i: number) => owners[(i * 7) % owners.length] ?? "0x";
  const counted = (i: number) =>
    1_000_000n + BigInt(2 * ROUND * REQUEST + ((i * 7_919) % (VAULTS / 8)));
  const balances = { ms: 0, cpu: 0 };
  for (const measure of [false, true]) {
    const { ms, loopUs } = await costOf(async () => {
      for (let i = 0; i < 20; i++)
        await vaults.balances(applicationId, userOf(measure ? i + 20 : i));
    });
    Object.assign(balances, { ms: ms / 20, cpu: loopUs / 20_000 });
  }
  return {
    token: await medianMs(SAMPLES, (i) =>
      vaults.list(applicationId, { assetId: world.assets.counted, tokenId: counted(i) }),
    ),
    owner: await medianMs(SAMPLES, (i) => vaults.list(applicationId, { ownerAddress: ownerOf(i) })),
    user: await medianMs(SAMPLES, (i) => vaults.list(applicationId, { userId: userOf(i) })),
    proof: await medianMs(SAMPLES, (i) => proofs.vault(vaultAt(i))),
    balances: balances.cpu,
  };
}

/** Mints on this store and on an empty one in turns, and single mints beside bulk. */
async function minting() {
  const engine = await open(STORE);
  const world = await worldIn(engine);
  const workload = workloadFor(engine, world);
  const costs = await inFolder(async (temporary) => {
    const empty = await open(temporary);
    const emptyWorld = await settle(empty);
    const emptyWorkload = new Workload(emptyWorld, 0, ["validium"]);
    await mintBulk(empty, emptyWorld, emptyWorkload, TURN);
    await mintBulk(engine, world, workload, TURN);
    const found = {
      full: [] as number[],
      fullMs: [] as number[],
      empty: [] as number[],
      emptyMs: [] as number[],
    };
    for (let turn = 1; turn <= TURNS; turn++) {
      say(`minting, turn ${turn} of ${TURNS}`);
      const a = await costOf(() => mintBulk(empty, emptyWorld, emptyWorkload, TURN));
      const b = await costOf(() => mintBulk(engine, world, workload, TURN));
      found.empty.push(a.allUs / TURN / REQUEST);
      found.emptyMs.push(a.ms);
      found.full.push(b.allUs / TURN / REQUEST);
      found.fullMs.push(b.ms);
    }
    await empty.close();
    return found;
  });
  const waits: number[] = [];
  const end = performance.now() + BESIDE_MS;
  const bulk = async () => {
    while (performance.now() < end) {
      await engine.mint(world.principal, workload.bulk());
      await sleep(20);
    }
  };
  const singles = async () => {
    while (performance.now() < end) {
      const start = performance.now();
      await engine.mint(world.principal, workload.single());
      waits.push(performance.now() - start);
      await sleep(5);
    }
  };
  say("single mints beside requests of 1,000");
  await Promise.all([bulk(), bulk(), bulk(), bulk(), singles()]);
  await engine.close();
  waits.sort((a, b) => a - b);
  return {
    mintCpu: median(costs.full),
    mintRatio: median(costs.emptyMs.map((ms, i) => ms / (costs.fullMs[i] ?? ms))),
    p99: waits[Math.floor(waits.length * 0.99)],
    slowest: waits.at(-1),
  };
}

const shown = (what: string) => ({ onShare: (share: number) => timed(what, share) });

/** The cost of some work, and the most memory of the process's own. */
async function measured(work: () => Promise<unknown>) {
  let own = Number.NaN;
  const cost = await costOf(async () => {
    own = await ownPeakOf(work);
  });
  return { ...cost, own };
}

async function backingUp() {
  await rm(BACKUP, { recursive: true, force: true });
  await using engine = await open(STORE);
  await using journal = await LevelJournal.open(BACKUP);
  const { ms, allUs, own } = await measured(() => engine.operator.backup(journal, shown("backup")));
  return { backup: ms / 1e3, backupCpu: allUs / 1e6, backupMb: peakMegabytes(), backupOwn: own };
}

async function verifying() {
  await using engine = await open(STORE);
  const opened = megabytes();
  let problems: readonly string[] = [];
  const { ms, allUs, own } = await measured(async () => {
    ({ problems } = await engine.operator.verify(shown("verify")));
  });
  if (problems.length > 0) throw new Error(`verify found ${problems[0]}`);
  const peak = peakMegabytes();
  return {
    verify: ms / 1e3,
    verifyCpu: allUs / 1e6,
    verifyMb: peak,
    verifyMore: peak - opened,
    verifyOwn: own,
  };
}

/** Restores the backup in place of the store, because a third copy would take more disk. */
async function restoring() {
  if (!(await holdsStore(BACKUP))) throw new Error("there is no backup to restore");
  await rm(STORE, { recursive: true, force: true });
  await rm(RESTORED, { recursive: true, force: true });
  await using journal = await LevelJournal.open(BACKUP);
  const { ms, allUs, own } = await measured(() =>
    restoreStore(journal, RESTORED, shown("restore")),
  );
  await rename(RESTORED, STORE);
  return {
    restore: ms / 1e3,
    restoreCpu: allUs / 1e6,
    restoreMb: peakMegabytes(),
    restoreOwn: own,
  };
}

const STEPS: Readonly<Record<string, () => Promise<object>>> = {
  fill,
  open: opening,
  find: finding,
  mint: minting,
  backup: backingUp,
  verify: verifying,
  restore: restoring,
};

const run = STEPS[step];
if (run === undefined) throw new Error(`there is no step ${step}`);
process.stdout.write(JSON.stringify(await run()));
