import { describe, it } from "vitest";
import { openChain } from "../contracts/fixture/deployment.ts";
import { registeredAssets, sameRoots, sameVerdicts } from "../contracts/fixture/differential.ts";
import { TransferHistory } from "../contracts/fixture/transfer-histories.ts";
import { openTransferChain } from "../contracts/fixture/transfers.ts";

process.env.MINTMARK_CHANGED_CALLS ??= "10000";
process.env.MINTMARK_HOSTILE_PLAYS ??= "500";
await import("../contracts/changed-calls.test.ts");
await import("../contracts/hostile-operator.test.ts");

const { fresh } = await openChain();
const RUNS = 10_000;
const HISTORIES = 40;
const HISTORY_STEPS = 90;

describe("the core and L1, at length", () => {
  it("derive one root from every batch that the core encodes", async () => {
    const d = await fresh();
    await sameRoots(d, await registeredAssets(d), RUNS / 5);
  });

  it("take and refuse the same data", async () => {
    const d = await fresh();
    await sameVerdicts(d, await registeredAssets(d), RUNS);
  });

  it("agree on who owns each vault after random histories of transfers", async () => {
    const chain = await openTransferChain();
    for (let seed = 100; seed < 100 + HISTORIES; seed++) {
      const history = new TransferHistory(await chain.fresh(), seed);
      for (let i = 0; i < HISTORY_STEPS; i++) await history.step();
      await history.compare();
    }
  });
});
