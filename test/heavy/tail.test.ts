import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { startServer } from "../../bench/http/server.ts";
import { filled, loadedBy } from "../../bench/http/tail.ts";
import { watch } from "../../bench/http/watch.ts";
import { slownessUntil } from "../slowness.ts";

/** The most CPU time of one synchronous piece. */
const MOST_MS = 20;
const LOAD = { vaults: 20_000, rows: 30_000, followers: 100, seconds: 10 };
const RATE = { singles: 300, bulk: 10 };

function spin(ms: number): void {
  const before = process.threadCpuUsage();
  let sum = 0;
  for (let took = 0; took < ms * 1_000 || sum < 0; ) {
    for (let i = 0; i < 100_000; i++) sum += Math.sqrt(i);
    const { user, system } = process.threadCpuUsage(before);
    took = user + system;
  }
}

it("finds a long synchronous piece, and says what it was", async () => {
  const end = await watch();
  await sleep(20);
  setTimeout(spin, 1, 4 * MOST_MS);
  await sleep(200);
  const { pieces } = await end();
  const [longest] = pieces.toSorted((a, b) => b.cpuMs - a.cpuMs);
  expect(longest?.cpuMs).toBeGreaterThan(1.2 * MOST_MS);
  expect(longest?.where).toContain("spin tail.test.ts");
});

it("no synchronous work of the server takes over 20 ms beside all other work", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-tail-"));
  try {
    const store = join(folder, "store");
    const tenants = await filled(store, LOAD);
    await using server = await startServer("watched", store, tenants[0].world);
    const plan = { ...LOAD, run: 0, closely: true, port: server.port, rate: RATE, tenants };
    const say = () => {};
    // Compiles the hot code.
    await loadedBy(plan, say);
    const over = new AbortController();
    const slowness = slownessUntil(over.signal);
    const { singles, watched, rows, heardMb } = await loadedBy({ ...plan, run: 1 }, say);
    over.abort();
    expect(singles).toHaveLength(RATE.singles * LOAD.seconds);
    expect(watched.seals).toBeGreaterThan(2);
    expect(watched.verifies).toBeGreaterThan(0);
    expect(rows).toBeGreaterThan(0);
    expect(heardMb).toBeGreaterThan(0);
    const most = MOST_MS * (await slowness);
    expect(watched.pieces.filter(({ cpuMs }) => cpuMs > most)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
