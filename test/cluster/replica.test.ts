import { expect, test } from "vitest";
import { openAs } from "../../core/engine.ts";
import { LevelStore } from "../../core/store/level-store.ts";
import type { Store, StoreOperation } from "../../core/store/ports.ts";
import { PREFIX } from "../../core/store/store-keys.ts";
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
  /** The records of users' transactions that were read. */
  transactionsRead = 0;
  get = (...asked: Parameters<Store["get"]>) => this.#store.get(...asked);
  getMany = (...asked: Parameters<Store["getMany"]>) => this.#store.getMany(...asked);
  async *entries(...asked: Parameters<Store["entries"]>) {
    for await (const entry of this.#store.entries(...asked)) {
      if (entry[0][0] === PREFIX.userTransaction) this.transactionsRead++;
      yield entry;
    }
  }
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

test("a standby sums the balances of those anew whose vaults change, and of no others", async () => {
  const store = new ToldStore(await LevelStore.open(memory(), false));
  const copy = new ToldStore(await LevelStore.open(memory(), false));
  store.told = (operations) => copy.write(operations);
  const made = await changeable({ store });
  const { engine, tenant, assets } = made;
  for (let i = 0; i < 50; i++)
    await engine.mint(tenant.principal, {
      users: tenant.users
        .slice(0, 3)
        .flatMap((user) => requestOf(user, mintOf(assets.erc20, "", 5)).users),
    });
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
  const [changed = "", other = ""] = tenant.users.map(({ userId }) => userId);
  const balancesAt = async (at: typeof engine, user: string) =>
    (await at.vaults.balances(tenant.applicationId, user)).data;
  const readFor = async (user: string) => {
    const before = copy.transactionsRead;
    expect(await balancesAt(standby.engine, user)).toEqual(await balancesAt(engine, user));
    return copy.transactionsRead - before;
  };
  for (const user of [changed, other]) await readFor(user);
  const kept = { changed: await readFor(changed), other: await readFor(other) };
  const changes = ["operator.recordWithdrawalFailed", "withdrawals.request"];
  for (const name of changes) {
    await CHANGES[name]?.(made);
    expect(await readFor(other)).toBe(kept.other);
    expect(await readFor(changed)).toBeGreaterThan(kept.changed);
  }
  await engine.close();
  await standby.engine.close();
});
