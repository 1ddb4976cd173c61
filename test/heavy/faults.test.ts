import { expect, it, onTestFinished } from "vitest";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { campaign } from "../settlement/campaign.ts";

it("1,000 faults on the way to L1 lose nothing and mint nothing twice", async () => {
  const kzg = new KzgThread();
  onTestFinished(() => kzg.close());
  for (const seed of [1, 2, 3, 4, 5]) {
    const inBlobs = seed % 2 === 1;
    const report = await campaign(200, seed, inBlobs ? kzg : undefined);
    console.log(`seed ${seed}`, report);
    expect(report.steps).toBe(200);
    expect(report.inBlobs > 0).toBe(inBlobs);
    for (const withdrawals of report.withdrawals) expect(withdrawals).toBeGreaterThan(25);
  }
});
