import { expect, it } from "vitest";
import { campaign } from "./campaign.ts";

it("25 faults in a row lose nothing and mint nothing twice", async () => {
  const report = await campaign(25, 12);
  expect(report.vaults).toBeGreaterThan(20);
  for (const withdrawals of report.withdrawals) expect(withdrawals).toBeGreaterThan(2);
});
