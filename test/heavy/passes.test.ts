import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { open, settle, type World } from "../../scripts/bench/engine-workload.ts";
import { type Server, startServer } from "../../scripts/bench/http/server.ts";
import { eventually } from "../eventually.ts";

/** Milliseconds of one tenant's work that another tenant's request may wait for. */
const MOST = 100;
/** The first requests of a kind also compile its code. */
const WARM_UP = 2;
const COUNT = 3;
const MINTS = 10_000;

let folder: string;
let world: World;
let server: Server;
let next = 1_000_000;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-passes-"));
  const store = join(folder, "store");
  const engine = await open(store);
  world = await settle(engine);
  await engine.close();
  repeated = bulk(ofCards(longBlob));
  server = await startServer("engine", store, world, ["--import", new URL("./pass-probe.ts", import.meta.url).href]);
}, 60_000);

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(join(tmpdir(), `mintmark-longest-pass-${server.pid}`), { force: true });
  await rm(folder, { recursive: true, force: true });
});

/** ms of the longest pass since the last call. */
async function longestPass(): Promise<number> {
  const file = join(tmpdir(), `mintmark-longest-pass-${server.pid}`);
  await rm(file, { force: true });
  process.kill(server.pid, "SIGUSR2");
  return eventually(async () => {
    const text = await readFile(file, "utf8");
    if (!text.endsWith("\n")) throw new Error("not written yet");
    return Number(text);
  });
}

async function send(path: string, body?: object, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "x-api-key": world.apiKey, "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  await response.arrayBuffer();
  return response.status;
}

const hex = (text: string) => `0x${Buffer.from(text).toString("hex")}`;
const longBlob = () => hex(`${next++}`.padStart(255, "x"));
const shortBlob = () => hex(`${next++}`);

function bulk(mint: () => object, users = 10) {
  const mints = () =>
    Array.from({ length: MINTS / users }, () => ({ amount: 1, dataAvailabilityMode: "validium", ...mint() }));
  return { users: Array.from({ length: users }, (_, i) => ({ userId: world.users[i], mints: mints() })) };
}

const ofCards = (blob: () => string) => () => ({ assetId: world.assets.random, mintingBlob: blob() });
const ofItems = () => ({ assetId: world.assets.items, mintingBlob: longBlob() });
/** Minted by the first request that warms up. */
let repeated: object;
const mint = (body: object, key?: string) =>
  send("/api/v1/mint", body, key === undefined ? {} : { "idempotency-key": key });

test.each<[name: string, run: () => Promise<number>, status: number]>([
  ["mints of short blobs", () => mint(bulk(ofCards(shortBlob))), 200],
  ["mints of the longest blobs", () => mint(bulk(ofCards(longBlob))), 200],
  ["mints of the longest blobs under an idempotency key", () => mint(bulk(ofCards(longBlob)), `${next++}`), 200],
  ["mints of ERC-1155 ids that are new", () => mint(bulk(ofItems)), 200],
  ["mints that are only tried", () => send("/api/v1/mint?dryRun=true", bulk(ofCards(longBlob))), 200],
  ["mints for new owners", () => mint(bulkForOwners()), 200],
  [
    "mints of long token ids",
    () => mint(bulk(() => ({ assetId: world.assets.random, tokenId: `${next++}${"9".repeat(60)}` }))),
    200,
  ],
  ["tokens that were minted before", () => mint(repeated), 409],
  ["blobs that are no text", () => mint(bulk(ofCards(() => `0x${"ff".repeat(255)}`))), 422],
  ["modes that are unknown", () => mint(bulk(() => ({ ...ofCards(shortBlob)(), dataAvailabilityMode: "x" }))), 400],
])(
  `no pass of the event loop takes longer than ${MOST} ms for requests of 10,000 %s`,
  async (_, run, status) => {
    for (let i = 0; i < WARM_UP; i++) await run();
    await longestPass();
    const statuses: number[] = [];
    for (let i = 0; i < COUNT; i++) statuses.push(await run());
    const longest = await longestPass();
    process.stdout.write(`longest pass: ${longest.toFixed(0)} ms\n`);
    expect(statuses).toEqual(Array(COUNT).fill(status));
    expect(longest).toBeLessThan(MOST);
  },
  120_000,
);

function bulkForOwners() {
  const { users } = bulk(ofCards(shortBlob), 100);
  return { users: users.map(({ mints }) => ({ ownerAddress: `0x${(next++).toString(16).padStart(40, "0")}`, mints })) };
}
