import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { type Engine, LevelJournal, restoreStore } from "../../../core/index.ts";
import { NaiveJournal, NaiveStore } from "../naive/naive-store.ts";
import { CHANGES, changeable } from "./every-change.ts";
import { fixture, memory, mintOf, openTest, refusal, requestOf } from "./fixture.ts";
import { seen } from "./seen.ts";

const folder = await mkdtemp(join(tmpdir(), "mintmark-ports-"));
afterAll(() => rm(folder, { recursive: true }));

describe("a store and a journal of one's own", () => {
  it("receive every change, and a store from the journal shows the same", async () => {
    const journal = new NaiveJournal();
    const made = await changeable({ store: new NaiveStore(), journal });
    const { engine, clock } = made;
    const { applicationId } = made.tenant;
    for (const change of Object.values(CHANGES)) await change(made);
    const before = await seen(engine, applicationId);
    expect(await engine.operator.verify()).toMatchObject({
      journalEntries: journal.list.length,
      problems: [],
    });
    await engine.close();

    const path = join(folder, "restored");
    expect(await restoreStore(journal, path)).toBe(journal.list.length);
    await using again = await openTest(path, { clock: clock.read, journal });
    expect(await seen(again, applicationId)).toEqual(before);
    expect((await again.operator.verify()).problems).toEqual([]);
    await again.applications.create({ name: "behind" });
    expect((await again.operator.verify()).journalEntries).toBe(journal.list.length);
  });

  it("lead to the same roots as LevelDB, whatever is minted, from any beginning of the journal on", async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          user: fc.nat(3),
          text: fc.nat(40),
          amount: fc.integer({ min: 1, max: 9 }),
        }),
      },
      { weight: 1, arbitrary: fc.constantFrom("validium" as const, "zk-rollup" as const) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 25 }),
        fc.nat(),
        async (steps, cut) => {
          const journal = new NaiveJournal();
          const { engine, tenant, assets, clock, database } = await fixture({ journal });
          const roots = new Map([[journal.list.length, engine.batches.state()]]);
          for (const one of steps) {
            if (typeof one === "string") await engine.operator.seal(one);
            else {
              const mode = one.text % 2 === 0 ? "validium" : "zk-rollup";
              const request = requestOf(
                tenant.users[one.user],
                mintOf(assets.erc1155, one.text, one.amount, mode),
                mintOf(assets.erc721, one.text, 1, mode),
              );
              await engine.mint(tenant.principal, request).catch((error) => {
                expect(error).toMatchObject({ code: "token_already_minted" });
              });
            }
            roots.set(journal.list.length, engine.batches.state());
          }
          await engine.close();
          const ends = [...roots.keys()];
          const end = ends[cut % ends.length] ?? 0;
          const store = new NaiveStore();
          await restoreStore(new NaiveJournal(journal.list.slice(0, end)), store);
          await using restored = await openTest(store, { clock: clock.read });
          expect(restored.batches.state()).toEqual(roots.get(end));
          expect((await restored.operator.verify()).problems).toEqual([]);
          // The store that went on is not touched by any of it.
          await using original = await openTest(database, { journal });
          expect(original.batches.state()).toEqual(roots.get(journal.list.length));
        },
      ),
      { numRuns: 15 },
    );
  });
});

describe("a journal beside the store", () => {
  it("has every entry before its acknowledgement", async () => {
    const journal = new NaiveJournal();
    const { engine, tenant } = await fixture({ journal });
    await using _ = engine;
    const { append } = NaiveJournal.prototype;
    const asked = Promise.withResolvers<void>();
    const through = Promise.withResolvers<void>();
    journal.append = async (...entries) => {
      asked.resolve();
      await through.promise;
      return append.apply(journal, entries);
    };
    let acknowledged = false;
    const { ownerAddress } = tenant.users[0] ?? { ownerAddress: "0x" };
    const user = engine.users.create(tenant.applicationId, { ownerAddress }).then(() => {
      acknowledged = true;
    });
    await asked.promise;
    await new Promise((resolve) => setImmediate(resolve));
    expect(acknowledged).toBe(false);
    const before = journal.list.length;
    through.resolve();
    await user;
    expect(journal.list.length).toBe(before + 1);
  });

  it("stops the engine when it fails; opened again, it gets the missing entries", async () => {
    const journal = new NaiveJournal();
    const { engine, tenant, assets, database } = await fixture({ journal });
    const length = journal.list.length;
    journal.append = () => Promise.reject(new Error("no quorum"));
    const mint = () =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 1)));
    expect((await refusal(mint())).code).toBe("store_failed");
    expect((await refusal(mint())).code).toBe("store_failed");
    await engine.close();
    expect(journal.list.length).toBe(length);
    const again = new NaiveJournal(journal.list);
    await using reopened = await openTest(database, { journal: again });
    expect(again.list.length).toBe((await reopened.operator.verify()).journalEntries);
    expect(again.list.length).toBe(length + 1);
  });

  it("is refused when it is longer than the store's, or another store's", async () => {
    const journal = new NaiveJournal();
    const { engine, database } = await fixture({ journal });
    await engine.close();
    const ahead = new NaiveJournal([...journal.list, Buffer.from("more")]);
    expect((await refusal(openTest(database, { journal: ahead }))).code).toBe("store_mismatch");
    expect((await refusal(openTest(memory(), { journal }))).code).toBe("store_mismatch");
    const other = new NaiveJournal();
    await (await fixture({ journal: other })).engine.close();
    expect((await refusal(openTest(database, { journal: other }))).code).toBe("store_mismatch");
    await (await openTest(database, { journal })).close();
  });
});

describe("a journal in a folder", () => {
  it("resumes where it ended, belongs to one engine at a time, and makes a store", async () => {
    const path = join(folder, "journal");
    const { engine, tenant, assets, database, clock } = await fixture();
    const mint = (to: Engine, id: number) =>
      to.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, id)));
    await mint(engine, 1);
    await engine.close();
    for (const id of [2, 3]) {
      await using journal = await LevelJournal.open(path);
      await using again = await openTest(database, { clock: clock.read, journal });
      await mint(again, id);
      expect((await refusal(LevelJournal.open(path))).code).toBe("store_locked");
      expect(await journal.length()).toBe((await again.operator.verify()).journalEntries);
      expect((await refusal(journal.append(0, [Buffer.from("x")]))).code).toBe("store_mismatch");
    }
    expect((await refusal(openTest(path))).code).toBe("store_corrupt");
    await using journal = await LevelJournal.open(path);
    const store = memory();
    await restoreStore(journal, store);
    await using restored = await openTest(store, { clock: clock.read, journal });
    await restored.operator.seal("validium");
    await using original = await openTest(database, { clock: clock.read });
    await original.operator.seal("validium");
    expect(restored.batches.state()).toEqual(original.batches.state());
    expect(restored.batches.state().countValidium).toBe(1);
  });
});

describe("making a store from a journal", () => {
  it("refuses a damaged or empty journal and a store that is not empty; a partial result is no store", async () => {
    const journal = new NaiveJournal();
    const { engine, tenant, assets, database } = await fixture({ journal });
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 1)));
    await engine.close();
    const { list } = journal;
    const damaged = list.map((entry, i) =>
      i === list.length - 2 ? Buffer.from(entry).fill(7, 9, 10) : entry,
    );
    const half = new NaiveStore();
    expect((await refusal(restoreStore(new NaiveJournal(damaged), half))).code).toBe(
      "store_corrupt",
    );
    expect((await refusal(openTest(half))).code).toBe("store_corrupt");
    expect((await refusal(restoreStore(new NaiveJournal(), new NaiveStore()))).code).toBe(
      "store_corrupt",
    );
    expect((await refusal(restoreStore(journal, database))).code).toBe("store_mismatch");
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(restoreStore(journal, new NaiveStore(), { signal })).rejects.toThrow("enough");
  });

  it("refuses a journal that leaves out a change", async () => {
    const journal = new NaiveJournal();
    const { engine, tenant, assets } = await fixture({ journal });
    for (const id of [1, 2]) {
      await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, id)));
    }
    await engine.operator.seal("validium");
    await engine.close();
    const without = journal.list.filter((_, i) => i !== journal.list.length - 3);
    expect((await refusal(restoreStore(new NaiveJournal(without), new NaiveStore()))).code).toBe(
      "store_corrupt",
    );
  });
});
