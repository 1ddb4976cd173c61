import { expect, it } from "vitest";
import { killCampaign } from "../e2e/kill-campaign.ts";

it("40 kills of operator and members at random moments lose nothing and mint nothing twice", async () => {
  const report = await killCampaign(40, (below) => Math.floor(Math.random() * below));
  console.log(report);
  expect(report.operatorKills + report.memberKills).toBeGreaterThanOrEqual(40);
  expect(report.batches.blobs).toBeGreaterThan(10);
});
