import { MemoryLevel } from "memory-level";
import { expect, it } from "vitest";
import { restoreStore } from "../../../core/index.ts";
import { NaiveJournal } from "../naive/naive-store.ts";
import { all, fixture, hashOf, openTest } from "./fixture.ts";
import { HOME } from "./l1-fixture.ts";

it("keeps the hashes of the blocks that were read, of final ones the newest 64, also in a restored store", async () => {
  const { engine } = await fixture();
  const { operator } = engine;
  const numbers = async (at = engine) => (await all(at.operator.checkpoints(HOME))).map(({ number }) => Number(number));
  const from = (newest: number, oldest: number) => Array.from({ length: newest - oldest + 1 }, (_, i) => newest - i);
  for (let block = 1; block <= 200; block++) {
    await operator.recordEvents(HOME, [], BigInt(block), { blockHash: hashOf(block) });
  }
  expect(await numbers()).toEqual(from(200, 1));
  // Without a hash: nothing is known of the block. Beyond the blocks that were read: it is the hash of none of them.
  await operator.recordEvents(HOME, [], 201n);
  await operator.recordFinalized(HOME, 300n, { blockHash: hashOf(300) });
  expect(await numbers()).toEqual(from(200, 138));
  await operator.recordReorg(HOME, 150n, "below final");
  expect(await numbers()).toEqual(from(149, 138));
  await operator.recordEvents(HOME, [], 160n, { blockHash: hashOf(1160) });
  await operator.recordFinalized(HOME, 155n, { blockHash: hashOf(1155) });
  const expected = [160, 155, ...from(149, 138)];
  expect(await numbers()).toEqual(expected);
  const [newest] = await all(operator.checkpoints(HOME));
  expect(newest).toEqual({ number: 160n, hash: hashOf(1160) });
  expect((await operator.verify()).problems).toEqual([]);

  const journal = new NaiveJournal();
  await operator.backup(journal);
  await engine.close();
  const store = new MemoryLevel<Uint8Array, Uint8Array>();
  await restoreStore(journal, store);
  const restored = await openTest(store);
  expect(await numbers(restored)).toEqual(expected);
  await restored.close();
});
