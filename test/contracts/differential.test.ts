import { describe, it } from "vitest";
import { openChain } from "./fixture/deployment.ts";
import { registeredAssets, sameRoots, sameVerdicts } from "./fixture/differential.ts";

const { fresh } = await openChain();

describe("the core and L1", () => {
  it("derive one root from every batch that the core encodes", async () => {
    const d = await fresh();
    await sameRoots(d, await registeredAssets(d), 60);
  });

  it("take and refuse the same data", async () => {
    const d = await fresh();
    await sameVerdicts(d, await registeredAssets(d), 300);
  });
});
