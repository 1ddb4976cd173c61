import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Engine, type Mode, openEngine, type Principal, type Uuid, type VaultId } from "../../core/index.ts";
import type { Row, Section } from "./section.ts";

/** Vaults present when a row is measured. */
const SIZES = (process.env.MINTMARK_BENCH_VAULTS ?? "0,10000,100000,1000000").split(",").map(Number);
const REQUEST = 1_000;
const USERS_PER_REQUEST = 10;
const USERS = 1_000;
/** Requests of 1,000 that are made ready before the clock starts, and how many callers send them. */
const ROUND = 100;
const CALLERS = 64;
const MEASURED_ROUNDS = 3;
const WARM_ROUNDS = 3;
const SINGLES = 20_000;
const SINGLE_CALLERS = 256;
const PROOFS = 200;

const COLUMNS = [
  { key: "bulk", label: "requests of 1,000", unit: "thousand mints/s", better: "higher" },
  { key: "bulkLoop", label: "of which the event loop's CPU", unit: "µs a mint", better: "lower" },
  { key: "bulkCpu", label: "all threads' CPU", unit: "µs a mint", better: "lower" },
  { key: "singles", label: "requests of 1", unit: "thousand mints/s", better: "higher" },
  { key: "singlesLoop", label: "of which the event loop's CPU", unit: "µs a mint", better: "lower" },
  { key: "proof", label: "proof of an old vault", unit: "ms", better: "lower" },
  { key: "open", label: "opening", unit: "ms", better: "lower" },
  { key: "memory", label: "memory after opening", unit: "MB", better: "lower" },
  { key: "disk", label: "disk", unit: "bytes a vault", better: "lower" },
] as const;

const SETTLEMENT = {
  chainId: 31_337n,
  contract: "0x00000000000000000000000000000000000000aa",
  engineVersion: 5,
} as const;

interface World {
  readonly principal: Principal;
  readonly users: readonly Uuid[];
  /** A collection of random ids, one of consecutive ids, a game's items, a currency. */
  readonly assets: { readonly random: Uuid; readonly counted: Uuid; readonly items: Uuid; readonly currency: Uuid };
}

function open(path: string): Promise<Engine> {
  return openEngine({ store: path, settlement: SETTLEMENT, environment: "sandbox" });
}

async function settle(engine: Engine): Promise<World> {
  const add = async (number: number, standard: "erc20" | "erc721" | "erc1155") => {
    const contractAddress = `0x${number.toString(16).padStart(40, "0")}` as const;
    const { assetId } = await engine.addAsset({ standard, contractAddress, name: standard, symbol: standard });
    await engine.whitelistAsset(assetId, true);
    await engine.markAssetRegistered(assetId);
    return assetId;
  };
  const random = await add(0x1001, "erc721");
  const counted = await add(0x1002, "erc721");
  const items = await add(0x1003, "erc1155");
  const currency = await add(0x1004, "erc20");
  const { applicationId } = await engine.createApplication({ name: "bench" });
  const principal = await engine.authenticate((await engine.issueKey(applicationId)).secret);
  const owners = Array.from({ length: USERS }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "0")}` as const);
  const users = await Promise.all(owners.map((ownerAddress) => engine.createUser(applicationId, { ownerAddress })));
  for (const assetId of [random, counted, items, currency]) await engine.enableAsset(applicationId, assetId);
  return { principal, users: users.map(({ userId }) => userId), assets: { random, counted, items, currency } };
}

/** Makes requests that never repeat an ERC-721 id, the same ones in every run. */
class Workload {
  readonly #world: World;
  #seed = 0x2545f491;
  #nextRandom = 0;
  #nextCounted = 1_000_000;
  #nextRequest = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Half random ERC-721 ids, a quarter consecutive ones, 15 % of 1,000 ERC-1155 ids, 10 % ERC-20; every tenth request for the rollup. */
  bulk() {
    const mode: Mode = this.#nextRequest++ % 10 === 9 ? "zk-rollup" : "validium";
    const perUser = REQUEST / USERS_PER_REQUEST;
    const users = Array.from({ length: USERS_PER_REQUEST }, (_, i) => ({
      userId: this.#world.users[(this.#nextRequest * USERS_PER_REQUEST + i) % USERS],
      mints: Array.from({ length: perUser }, (_, j) => this.#mint(j % 20, mode)),
    }));
    // As it comes from the wire: no string is shared between entries.
    return JSON.parse(JSON.stringify({ users }));
  }

  single() {
    const userId = this.#world.users[this.#nextRequest++ % USERS];
    return JSON.parse(JSON.stringify({ users: [{ userId, mints: [this.#mint(0, "validium")] }] }));
  }

  #mint(kind: number, dataAvailabilityMode: Mode) {
    const { random, counted, items, currency } = this.#world.assets;
    if (kind < 10) return { assetId: random, mintingBlob: hex(this.#uniqueId()), amount: 1, dataAvailabilityMode };
    if (kind < 15) return { assetId: counted, mintingBlob: hex(this.#nextCounted++), amount: 1, dataAvailabilityMode };
    if (kind < 18) return { assetId: items, mintingBlob: hex(this.#number(1_000)), amount: 3, dataAvailabilityMode };
    return { assetId: currency, mintingBlob: "", amount: 1 + this.#number(1_000_000), dataAvailabilityMode };
  }

  /** A bijection of 48 bits scatters a counter: random and never twice. */
  #uniqueId(): number {
    const mask = (1n << 48n) - 1n;
    let value = BigInt(this.#nextRandom++);
    for (const factor of [0x9e3779b97f4bn, 0xc2b2ae3d27d5n]) {
      value = (value * factor) & mask;
      value ^= value >> 24n;
    }
    return Number(value);
  }

  #number(below: number): number {
    this.#seed ^= this.#seed << 13;
    this.#seed ^= this.#seed >>> 17;
    this.#seed ^= this.#seed << 5;
    return (this.#seed >>> 0) % below;
  }
}

function hex(id: number): string {
  return `0x${Buffer.from(String(id)).toString("hex")}`;
}

/** Sends all requests from so many callers at once, each the next one when its last was answered; returns ms. */
async function send(engine: Engine, { principal }: World, requests: readonly unknown[], callers: number) {
  let next = 0;
  let ids: VaultId[] = [];
  const caller = async () => {
    while (next < requests.length) {
      const { transactions } = await engine.mint(principal, requests[next++]);
      const first = transactions[0];
      if (first !== undefined) ids = [first.vaultId];
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
    last: ids,
  };
}

async function bytesOf(folder: string): Promise<number> {
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** The engine over LevelDB through its public API, as it fills up. */
export const engineSection: Section = {
  name: "engine",
  async run(progress) {
    const folder = await mkdtemp(join(tmpdir(), "mintmark-bench-"));
    const rows: Row[] = [];
    try {
      let engine = await open(folder);
      const world = await settle(engine);
      const workload = new Workload(world);
      let vaults = 0;
      const rounds = async (count: number) => {
        const sum = { mints: count * ROUND * REQUEST, ms: 0, loopUs: 0, allUs: 0 };
        for (let i = 0; i < count; i++) {
          const requests = Array.from({ length: ROUND }, () => workload.bulk());
          const { ms, loopUs, allUs } = await send(engine, world, requests, CALLERS);
          sum.ms += ms;
          sum.loopUs += loopUs;
          sum.allUs += allUs;
          vaults += ROUND * REQUEST;
        }
        return sum;
      };
      for (const size of SIZES) {
        while (vaults < size) {
          progress(`engine: filling, ${vaults} of ${size}`);
          await rounds(1);
        }
        progress(`engine at ${size}: opening`);
        await engine.close();
        const opening = performance.now();
        engine = await open(folder);
        const openMs = performance.now() - opening;
        const memory = process.memoryUsage();
        progress(`engine at ${size}: requests of 1,000`);
        if (rows.length === 0) await rounds(WARM_ROUNDS);
        const bulk = await rounds(MEASURED_ROUNDS);
        const singles = Array.from({ length: SINGLES }, () => workload.single());
        const single = await send(engine, world, singles, SINGLE_CALLERS);
        vaults += SINGLES;
        const started = performance.now();
        for (let i = 0; i < PROOFS; i++) await engine.vaultProof(BigInt((i * 7919) % 60_000));
        const proofMs = (performance.now() - started) / PROOFS;
        rows.push({
          label: `${size.toLocaleString("en-US")} mints before`,
          ours: true,
          values: {
            bulk: bulk.mints / bulk.ms,
            bulkLoop: bulk.loopUs / bulk.mints,
            bulkCpu: bulk.allUs / bulk.mints,
            singles: SINGLES / single.ms,
            singlesLoop: single.loopUs / SINGLES,
            proof: proofMs,
            open: openMs,
            memory: memory.rss / 1e6,
            disk: (await bytesOf(folder)) / vaults,
          },
        });
      }
      await engine.close();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    return {
      name: "engine",
      title: "Durable mints",
      method:
        "Through the public API over LevelDB, every check made, acknowledged when on disk; wall-clock, the answer's vault ids read. Requests " +
        `of 1,000 mints for ${USERS_PER_REQUEST} users from ${CALLERS} callers: half ERC-721 with random ids, a quarter with consecutive ones, 15 % ERC-1155, 10 % ERC-20; ` +
        `every tenth for the rollup; batches are sealed as they fill. Requests of 1: ERC-721, ${SINGLE_CALLERS} callers.`,
      columns: COLUMNS,
      rows,
      reference: null,
    };
  },
};
