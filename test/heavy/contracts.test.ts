import { describe, it } from "vitest";
import { openChain } from "../contracts/fixture/deployment.ts";
import { registeredAssets, sameRoots, sameVerdicts } from "../contracts/fixture/differential.ts";

const { fresh } = await openChain();
const RUNS = 10_000;

describe("the core and L1, at length", () => {
  it("derive one root from every batch that the core encodes", async () => {
    const d = await fresh();
    await sameRoots(d, await registeredAssets(d), RUNS / 5);
  });

  it("take and refuse the same data", async () => {
    const d = await fresh();
    await sameVerdicts(d, await registeredAssets(d), RUNS);
  });
});
