import { expect, it } from "vitest";
import { campaign } from "../settlement/campaign.ts";

it("1,000 faults on the way to L1 lose nothing and mint nothing twice", async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const report = await campaign(200, seed);
    console.log(`seed ${seed}`, report);
    expect(report.steps).toBe(200);
    for (const withdrawals of report.withdrawals) expect(withdrawals).toBeGreaterThan(25);
  }
});
