import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isWhole, runCluster } from "../../scripts/cluster/cluster.ts";

test("a cluster whose leader is killed goes on minting, and has every acknowledged mint once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-cluster-"));
  try {
    const report = await runCluster(folder, { seconds: 2, onProgress: () => {} });
    expect(report).toMatchObject({ servers: 3, leader: expect.stringMatching(/^[abc]$/) });
    expect(report.leader).not.toBe(report.killed);
    expect(report.acknowledged).toBeGreaterThan(200);
    expect(isWhole(report), JSON.stringify(report)).toBe(true);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 180_000);
