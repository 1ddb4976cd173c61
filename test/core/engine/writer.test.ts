import { setImmediate as nextPass } from "node:timers/promises";
import { MemoryLevel } from "memory-level";
import { expect, test } from "vitest";
import { LevelStore } from "../../../core/store/level-store.ts";
import { Writer } from "../../../core/store/writer.ts";
import { memory, openTest } from "./fixture.ts";
import { GatedStore } from "./gated-store.ts";

const OWNER = `0x${"70".repeat(20)}` as const;

test("requests during the last write are in the next one", async () => {
  const gate = new GatedStore();
  await using engine = await openTest(gate.store);
  const { applicationId } = await engine.applications.create({ name: "A" });
  for (let round = 0; round < 3; round++) {
    const started = gate.close();
    const first = engine.users.create(applicationId, { ownerAddress: OWNER });
    await started;
    // Nothing else is queued: the writer waits for this one write only.
    const others = [1, 2].map(() => engine.users.create(applicationId, { ownerAddress: OWNER }));
    gate.open();
    const users = await Promise.all([first, ...others]);
    expect(new Set(users.map(({ userId }) => userId)).size).toBe(3);
  }
  expect((await engine.users.list(applicationId)).data).toHaveLength(9);
});

test("callers at any turn of the event loop are all served", async () => {
  await using engine = await openTest(memory());
  const { applicationId } = await engine.applications.create({ name: "A" });
  const caller = async (turns: number) => {
    for (let round = 0; round < 20; round++) {
      for (let turn = 0; turn < turns + round; turn++) await null;
      await engine.users.create(applicationId, { ownerAddress: OWNER });
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, turns) => caller(turns)));
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await engine.users.list(applicationId, { limit: 100, ...(cursor && { cursor }) });
    count += page.data.length;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  expect(count).toBe(240);
});

test("heavy transitions that read nothing leave room for others between them and between their steps", async () => {
  const writer = new Writer(
    await LevelStore.of(new MemoryLevel({ storeEncoding: "buffer" }), true),
    () => {},
    {
      room: null,
    },
  );
  let passes = 0;
  let over = false;
  const others = (async () => {
    while (!over) {
      await nextPass();
      passes += 1;
    }
  })();
  const seen: number[] = [];
  const transition = (weight: number) => ({
    weight,
    keys: () => {
      seen.push(passes);
      return [];
    },
    apply: () => void seen.push(passes),
  });
  await Promise.all([10_000, 10_000, 10_000].map((weight) => writer.run(transition(weight))));
  expect(new Set(seen).size).toBe(6);
  seen.length = 0;
  // One group: the keys of all in one pass, then each in a pass of its own.
  await Promise.all([2_100, 2_100, 2_100].map((weight) => writer.run(transition(weight))));
  expect(seen.slice(0, 3)).toEqual(Array(3).fill(seen[0]));
  expect(new Set(seen).size).toBe(4);
  seen.length = 0;
  await Promise.all([1, 1, 1].map((weight) => writer.run(transition(weight))));
  expect(new Set(seen).size).toBe(1);
  over = true;
  await others;
  await writer.close();
});

test("light transitions share the next write, whatever heavy ones wait before them", async () => {
  const store = await LevelStore.of(new MemoryLevel({ storeEncoding: "buffer" }), true);
  const writer = new Writer(store, () => {}, { room: null });
  const applied: string[] = [];
  const run = (name: string, weight: number) =>
    writer.run({ weight, keys: () => [], apply: () => void applied.push(name) });
  await Promise.all([
    run("first", 5_000),
    run("second", 5_000),
    run("third", 1_000),
    run("light", 1),
    writer.alone(async () => void applied.push("alone")),
    run("later", 1),
  ]);
  expect(applied).toEqual(["first", "light", "second", "third", "alone", "later"]);
  await writer.close();
});
