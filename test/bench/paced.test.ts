import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { appendPaced } from "../../bench/http/connection.ts";

test("the disk alone takes each append once, and its time counts from when it was due", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-disk-"));
  try {
    const start = performance.now();
    const times = await appendPaced(folder, 500, 0.2, 4096);
    const took = performance.now() - start;
    expect(times).toHaveLength(100);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times[0]).toBeGreaterThan(0);
    // The last append is due after 198 ms, and no time is longer than the whole.
    expect(took).toBeGreaterThan(198);
    expect(times.at(-1)).toBeLessThan(took);
    expect((await stat(join(folder, "appended"))).size).toBe(100 * 4096);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
