import { describe, expect, it } from "vitest";
import { openChain } from "./fixture/deployment.ts";
import { registeredAssets, sameRoots, sameVerdicts } from "./fixture/differential.ts";
import { TransferHistory } from "./fixture/transfer-histories.ts";
import { openTransferChain } from "./fixture/transfers.ts";

const { fresh } = await openChain();
const { fresh: freshTransfers } = await openTransferChain();

describe("the core and L1", () => {
  it("derive one root from every batch that the core encodes", async () => {
    const d = await fresh();
    await sameRoots(d, await registeredAssets(d), 60);
  });

  it("take and refuse the same data", async () => {
    const d = await fresh();
    await sameVerdicts(d, await registeredAssets(d), 400);
  });
});

it("L1 pays each vault to the account that an eager ledger of transfers names, and to nobody else", async () => {
  const total = { moved: 0, deepExits: 0, refuted: 0, deepSplits: 0, voidsBehindExits: 0 };
  const least = () => Math.min(...Object.values(total));
  // A short history may have no exit of each kind: what happens depends on the chain's clock too.
  for (let seed = 1; seed <= 2 || (seed <= 12 && least() === 0); seed++) {
    const history = new TransferHistory(await freshTransfers(), seed);
    for (let i = 0; i < 40; i++) await history.step();
    await history.compare();
    for (const name of Object.keys(total) as (keyof typeof total)[])
      total[name] += history.counts[name];
  }
  expect(least(), JSON.stringify(total)).toBeGreaterThan(0);
});
