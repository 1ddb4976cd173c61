import { expect, it } from "vitest";
import { killRounds } from "./kill.ts";

it("a process killed while minting loses no acknowledged mint, and leaves nothing half done", async () => {
  const report = await killRounds(3, 500);
  expect(report.acknowledged).toBeGreaterThan(0);
});
