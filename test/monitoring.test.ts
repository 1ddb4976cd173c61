import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { MemoryLevel } from "memory-level";
import { expect, test } from "vitest";
import { Archive } from "../core/archive/index.ts";
import { Metrics, SignerMetrics } from "../server/process/metrics.ts";
import { createWorld } from "./server/fixture.ts";

const FOLDER = "examples/monitoring";
const hasPromtool = (() => {
  try {
    execFileSync("promtool", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

test("alerts and dashboard ask only for metrics that exist", async () => {
  await using world = await createWorld();
  const { settlement } = world.engine;
  const l1 = { blockNumber: async () => 0n };
  const server = new Metrics({
    engine: world.engine,
    chains: new Map([[1n, async () => l1]]),
    cluster: { awayMs: 2_500 },
  });
  expect(await server.registry.metrics()).toContain("mintmark_journal_away_seconds_total 2.5");
  const text = ["alerts.yml", "dashboard.json"]
    .map((file) => readFileSync(`${FOLDER}/${file}`, "utf8"))
    .join("\n");
  const known = new Set(server.registry.getMetricsAsArray().map(({ name }) => name));
  server.close();
  const archive = await Archive.open({ store: new MemoryLevel(), l1: { settlement } as never });
  for (const { name } of new SignerMetrics(archive).registry.getMetricsAsArray()) known.add(name);
  await archive.close();
  const asked = new Set(text.match(/\b(?:mintmark|nodejs|process)_[a-z0-9_]+/g));
  expect(asked.size).toBeGreaterThan(15);
  for (const name of asked) expect(known, name).toContain(name.replace(/_(bucket|count|sum)$/, ""));
});

test.skipIf(!hasPromtool)("the alerts fire when they should, by Prometheus' own test tool", () => {
  execFileSync("promtool", ["test", "rules", "alerts.test.yml"], { cwd: FOLDER });
  execFileSync("promtool", ["check", "config", "prometheus.yml"], { cwd: FOLDER });
});
