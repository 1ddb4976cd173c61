import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Engine } from "../core/index.ts";
import { CALLERS, REQUEST, SINGLE_CALLERS, type World } from "./engine-workload.ts";
import {
  costOf,
  fromCallers,
  inFolder,
  medianMs,
  medians,
  megabytes,
  peakMegabytes,
} from "./harness.ts";

/**
 * One row of the sections `engine` and `finding`, in separate processes, so no row affects
 * another's memory. `fill <folder> <mints>` makes a store. `mint` and `find`, with the same
 * arguments, open it and write their figures to standard output, as JSON. Progress goes to standard
 * error. A fourth argument names another revision's `engine-workload.ts`, whose engine is
 * then measured.
 */

const [action = "", folder = "", given = "0", workloadFile] = process.argv.slice(2);
const its = workloadFile === undefined ? "./engine-workload.ts" : pathToFileURL(workloadFile).href;
const { open, settle, Workload }: typeof import("./engine-workload.ts") = await import(its);

/** Requests prepared before the clock starts, and the rounds. */
const KINDS = {
  bulk: { mintsPerRequest: REQUEST, callers: CALLERS, requests: 100, rounds: 5 },
  singles: { mintsPerRequest: 1, callers: SINGLE_CALLERS, requests: 20_000, rounds: 3 },
} as const;
type Kind = keyof typeof KINDS;
const WORLD_FILE = "world.json";

type Minting = ReturnType<typeof mintingIn>;

/** @param fresh - tokens that the store has already */
function mintingIn(engine: Engine, world: World, fresh = 0) {
  return { engine, world, workload: new Workload(world, fresh) };
}

/** A round of mints; thousand mints a second, and µs a mint. */
async function round(
  { engine, world, workload }: Minting,
  kind: Kind,
  count: number = KINDS[kind].requests,
) {
  const { mintsPerRequest, callers } = KINDS[kind];
  const requests = Array.from({ length: count }, () =>
    kind === "bulk" ? workload.bulk() : workload.single(),
  );
  const mint = async (request: unknown) => {
    const { transactions } = await engine.mint(world.principal, request);
    if (transactions[0] === undefined) throw new Error("a mint without transactions");
  };
  const { ms, loopUs, allUs } = await costOf(() => fromCallers(callers, requests, mint));
  const mints = count * mintsPerRequest;
  return { [kind]: mints / ms, [`${kind}Loop`]: loopUs / mints, [`${kind}Cpu`]: allUs / mints };
}

async function rounds(minting: Minting, kind: Kind) {
  const figures: Awaited<ReturnType<typeof round>>[] = [];
  for (let i = 1; i <= KINDS[kind].rounds; i++) {
    process.stderr.write(
      `requests of ${KINDS[kind].mintsPerRequest}, round ${i} of ${KINDS[kind].rounds}\n`,
    );
    figures.push(await round(minting, kind));
  }
  return medians(figures);
}

/** Compiles the hot code, on a temporary store. */
async function warmUp(): Promise<void> {
  process.stderr.write("warming up\n");
  await inFolder(async (temporary) => {
    const engine = await open(temporary);
    const minting = mintingIn(engine, await settle(engine));
    for (let i = 0; i < 3; i++) await round(minting, "bulk");
    await round(minting, "singles");
    await engine.close();
  });
}

async function fill(mints: number): Promise<void> {
  const engine = await open(join(folder, "store"));
  const minting = mintingIn(engine, await settle(engine));
  const { requests } = KINDS.bulk;
  for (let done = 0; done < mints; done += requests * REQUEST) {
    process.stderr.write(`filling, ${done} of ${mints}\n`);
    await round(minting, "bulk", Math.min(requests, (mints - done) / REQUEST));
  }
  await engine.close();
  await writeFile(join(folder, WORLD_FILE), JSON.stringify(minting.world));
}

async function worldOf(): Promise<World> {
  return JSON.parse(await readFile(join(folder, WORLD_FILE), "utf8"));
}

/** The figures of minting into the store with this number of mints, and resident MB. */
async function minted(mints: number) {
  const world = await worldOf();
  await warmUp();
  const engine = await open(join(folder, "store"));
  const minting = mintingIn(engine, world, mints);
  const figures = { ...(await rounds(minting, "bulk")), ...(await rounds(minting, "singles")) };
  // The garbage collector returns memory with a delay.
  globalThis.gc?.();
  await sleep(500);
  globalThis.gc?.();
  const steady = megabytes();
  await engine.close();
  return { ...figures, steady, peak: peakMegabytes() };
}

/** Pages of each filter that are timed. */
const PAGES = 20;

async function findings(mints: number) {
  const world = await worldOf();
  await using engine = await open(join(folder, "store"));
  const { applicationId } = world.principal;
  const { assets } = world;
  const [userId = ""] = world.users;
  const { ownerAddress } = await engine.users.get(applicationId, userId);
  const order = {
    assetId: assets.currency,
    amount: 1,
    dataAvailabilityMode: "validium",
    reference: "order",
  } as const;
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
    "vaults?tokenId, ERC-721": () =>
      vaults.list(applicationId, { assetId: assets.counted, tokenId: unique }),
    "vaults?tokenId, ERC-1155": () =>
      vaults.list(applicationId, { assetId: assets.items, tokenId: 7n }),
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
    if (data.length === 0 && !name.startsWith("withdrawals"))
      throw new Error(`${name} finds nothing`);
    figures[name] = await medianMs(PAGES, page);
  }
  return figures;
}

const mints = Number(given);
if (action === "fill") await fill(mints);
else {
  const figures = await (action === "mint" ? minted(mints) : findings(mints));
  process.stdout.write(JSON.stringify(figures));
}
