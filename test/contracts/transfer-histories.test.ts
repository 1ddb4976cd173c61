import { expect, it } from "vitest";
import { TransferHistory } from "./fixture/transfer-histories.ts";
import { openTransferChain } from "./fixture/transfers.ts";

const { fresh } = await openTransferChain();

it("L1 pays each vault to the account that an eager ledger of transfers names, and to nobody else", async () => {
  const total = { moved: 0, deepExits: 0, refuted: 0 };
  for (const seed of [1, 2]) {
    const history = new TransferHistory(await fresh(), seed);
    for (let i = 0; i < 40; i++) await history.step();
    await history.compare();
    for (const name of ["moved", "deepExits", "refuted"] as const) total[name] += history.counts[name];
  }
  expect(Math.min(...Object.values(total)), JSON.stringify(total)).toBeGreaterThan(0);
});
