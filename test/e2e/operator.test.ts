import { expect, test } from "vitest";
import { killCampaign } from "./kill-campaign.ts";

test("an operator and members that are killed while a client mints and withdraws lose nothing", async () => {
  let turn = 0;
  // The operator at once, two members, the operator late.
  const script = [100, 0, 300, 1, 0, 2, 400, 900, 0];
  const report = await killCampaign(3, (below) => (script[turn++ % script.length] ?? 0) % below);
  expect(report).toMatchObject({ mints: 18, withdrawals: 2, operatorKills: 2 });
  expect(report.batches.blobs).toBeGreaterThan(0);
}, 180_000);
