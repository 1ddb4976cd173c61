import { expect, it } from "vitest";
import { killRounds } from "./kill.ts";

it("a process that is killed while minting loses nothing it acknowledged, and leaves nothing by half", async () => {
  const report = await killRounds(3, 500);
  expect(report.acknowledged).toBeGreaterThan(0);
});
