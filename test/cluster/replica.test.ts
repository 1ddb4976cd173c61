import { expect, test } from "vitest";
import { openAs } from "../../core/engine.ts";
import { LevelStore } from "../../core/store/level-store.ts";
import type { Store, StoreOperation } from "../../core/store/ports.ts";
import { CHANGES, changeable } from "../core/engine/every-change.ts";
import { memory, mintOf, openTest, requestOf, SETTLEMENT } from "../core/engine/fixture.ts";
import { shown } from "../core/engine/shown.ts";

/** A store that tells of each write. */
class ToldStore implements Store {
  readonly #store: Store;
  told: (operations: readonly StoreOperation[]) => Promise<void> = async () => {};
  constructor(store: Store) {
    this.#store = store;
  }
  get = (...asked: Parameters<Store["get"]>) => this.#store.get(...asked);
  getMany = (...asked: Parameters<Store["getMany"]>) => this.#store.getMany(...asked);
  entries = (...asked: Parameters<Store["entries"]>) => this.#store.entries(...asked);
  atSnapshot = <T>(body: Parameters<Store["atSnapshot"]>[0]) =>
    this.#store.atSnapshot(body) as Promise<T>;
  async write(operations: readonly StoreOperation[]): Promise<void> {
    await this.#store.write(operations);
    await this.told(operations);
  }
  close = () => this.#store.close();
}

test("a standby shows what its leader shows, and what a fresh start would show, after every kind of change", async () => {
  const own = memory();
  const store = new ToldStore(await LevelStore.open(memory(), false));
  const copy = await LevelStore.open(own, false);
  store.told = (operations) => copy.write(operations);
  const made = await changeable({ store });
  const { engine, tenant, assets } = made;
  const options = {
    settlement: SETTLEMENT,
    environment: "sandbox",
    clock: made.clock.read,
  } as const;
  const standby = await openAs("standby", { ...options, store: copy });
  store.told = async (operations) => {
    await copy.write(operations);
    expect(standby.apply(operations)).toBe(true);
  };
  for (const [name, change] of Object.entries(CHANGES)) {
    await change(made);
    expect(await shown(standby.engine, tenant.applicationId), name).toEqual(
      await shown(engine, tenant.applicationId),
    );
  }
  for (let i = 0; i < 300; i++) {
    const mode = i % 2 === 0 ? "validium" : "zk-rollup";
    const mints = [mintOf(assets.erc721, 1_000 + i, 1, mode), mintOf(assets.erc20, "", 5, mode)];
    await engine.mint(tenant.principal, requestOf(tenant.users[i % 4], ...mints));
    if (i % 70 === 69) await engine.operator.seal(mode);
  }
  const now = await shown(standby.engine, tenant.applicationId);
  expect(now).toEqual(await shown(engine, tenant.applicationId));
  await expect(standby.engine.applications.create({ name: "x" })).rejects.toMatchObject({
    code: "not_leader",
  });
  await engine.close();
  await standby.engine.close();
  await using fresh = await openTest(own, { clock: made.clock.read, createIfMissing: false });
  expect(now).toEqual(await shown(fresh, tenant.applicationId));
});
