import { expect, test } from "vitest";
import { openAs } from "../../core/engine.ts";
import { MintmarkError } from "../../core/index.ts";
import {
  knownAsset,
  memory,
  mintOf,
  newTenant,
  openTest,
  requestOf,
  SETTLEMENT,
} from "../core/engine/fixture.ts";

/** Vaults of a batch that is derived on the thread, not at once. */
const LARGE = 1_100;

test("a batch that is closed while changes are refused is still sealed, before the batch after it", async () => {
  const database = memory();
  const { engine, refuse } = await openAs("leader", {
    store: database,
    settlement: SETTLEMENT,
    environment: "sandbox",
    createIfMissing: true,
    limits: { batchVaults: { validium: LARGE, "zk-rollup": LARGE } },
  });
  const asset = await knownAsset(engine, "erc721");
  const tenant = await newTenant(engine, [asset]);
  let tokens = 0;
  const mint = (count: number) => {
    const mints = Array.from({ length: count }, () => mintOf(asset, tokens++));
    return engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
  };
  await mint(1_000);
  // The last one closes the batch, which the thread then derives.
  await mint(LARGE - 999);
  refuse(new MintmarkError("journal_unavailable"));
  expect(engine.batches.state().countValidium).toBe(0);
  await expect(mint(1)).rejects.toMatchObject({ code: "journal_unavailable" });
  await expect.poll(() => engine.batches.state().countValidium).toBe(1);
  refuse(null);
  await mint(1);
  expect(await engine.operator.seal("validium")).toMatchObject({ batchNumber: 1, vaultCount: 2 });
  expect((await engine.operator.verify()).problems).toEqual([]);
  const state = engine.batches.state();
  await engine.close();
  await using again = await openTest(database);
  expect(again.batches.state()).toEqual(state);
});
