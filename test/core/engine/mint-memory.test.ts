import { rm } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { open, settle, Workload } from "../../../bench/engine-workload.ts";

/** Concurrent callers, who mint so many requests each. */
const CALLERS = 64;
const SINGLES = 40_000;
/** Bytes of a mint's columns that outlive a scavenge, as those under way do; all of them: 500. */
const KEPT = 250;

test("a single mint after large requests is garbage once it is answered", async () => {
  const folder = join(tmpdir(), `mintmark-memory-${process.pid}`);
  const engine = await open(folder);
  const session = new Session();
  try {
    const { principal, ...world } = await settle(engine);
    const workload = new Workload({ principal, ...world });
    const run = async (count: number, request: () => unknown) => {
      let left = count;
      const caller = async () => {
        while (left-- > 0) await engine.mint(principal, request());
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
    };
    // V8 learns from these which objects live long.
    await run(300, () => workload.bulk());
    await run(20_000, () => workload.single());
    session.connect();
    await session.post("HeapProfiler.startSampling", {
      samplingInterval: 16_384,
      includeObjectsCollectedByMajorGC: true,
    });
    await run(SINGLES, () => workload.single());
    const { profile } = await session.post("HeapProfiler.stopSampling");
    expect(bytesOf(profile.head) / SINGLES).toBeGreaterThan(0);
    expect(columnBytes(profile.head) / SINGLES).toBeLessThan(KEPT);
  } finally {
    session.disconnect();
    await engine.close();
    await rm(folder, { recursive: true, force: true });
  }
});

interface Allocations {
  readonly callFrame: { readonly functionName: string };
  readonly selfSize: number;
  readonly children: readonly Allocations[];
}

function bytesOf({ selfSize, children }: Allocations): number {
  return children.reduce((sum, child) => sum + bytesOf(child), selfSize);
}

function columnBytes(allocations: Allocations): number {
  if (allocations.callFrame.functionName === "columnOf") return bytesOf(allocations);
  return allocations.children.reduce((sum, child) => sum + columnBytes(child), 0);
}
