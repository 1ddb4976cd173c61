import { expect, it } from "vitest";
import { killRounds } from "../core/engine/kill.ts";

it("50 kills at random moments under load lose nothing and leave nothing by half", async () => {
  const report = await killRounds(50, 800);
  console.log(report);
  expect(report).toMatchObject({ rounds: 50 });
  expect(report.given).toBeGreaterThan(0);
  expect(report.acknowledged).toBeGreaterThan(1000);
  expect(report.inBlobs).toBeGreaterThan(5);
  expect(report.listed).toBeGreaterThan(20);
  expect(report.settled).toBeGreaterThan(10);
});
