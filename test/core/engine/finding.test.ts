import fc from "fast-check";
import { v7 as uuidv7 } from "uuid";
import { describe, expect, vi } from "vitest";
import type {
  Engine,
  TransactionFilter,
  Uuid,
  Vault,
  VaultFilter,
  WithdrawalFilter,
} from "../../../core/index.ts";
import { batchIdOf } from "../../../core/index.ts";
import { Table } from "../../../core/store/group.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import {
  all,
  type Fixture,
  fixture,
  hashOf,
  knownAsset,
  memory,
  mintOf,
  newTenant,
  OWNERS,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { it } from "./it.ts";
import { committed, HOME, hear, ownerAddress, signed, withdrawn } from "./l1-fixture.ts";

/**
 * An application that has minted a lot of everything, into batches of every status, at many times.
 */
async function furnished() {
  const store = memory();
  const made = await fixture({ store, limits: { batchVaults: { validium: 90, "zk-rollup": 40 } } });
  const { engine, tenant, assets, clock } = made;
  const other = await knownAsset(engine, "erc1155");
  await engine.assets.enable(tenant.applicationId, other);
  await engine.users.create(tenant.applicationId, { ownerAddress: OWNERS[0].address });
  let id = 0;
  for (let round = 0; round < 60; round++) {
    clock.now += 1_000;
    const mode = round % 7 < 5 ? "validium" : "zk-rollup";
    const entries = Array.from({ length: round % 5 === 0 ? 90 : 1 }, (_, i) => {
      const reference = { reference: `order ${round % 11}` };
      if (round % 9 === 4) return { ...mintOf(other, i % 3, 2, mode), ...reference };
      if (round % 3 === 0) return { ...mintOf(assets.erc721, ++id, 1, mode), ...reference };
      if (round % 3 === 1) return mintOf(assets.erc1155, i % 7, 3, mode);
      return { ...mintOf(assets.erc20, "", 5, mode), ...reference };
    });
    await engine.mint(tenant.principal, requestOf(tenant.users[round % 4], ...entries));
    if (round % 20 === 19) await engine.operator.seal("zk-rollup");
  }
  await engine.operator.seal("validium");
  await engine.operator.recordSubmitted("validium", 0, hashOf(1));
  await hear(engine, await committed(engine, "validium", 0, 10n));
  await engine.operator.recordFinalized(HOME, 10n);
  await engine.operator.recordSubmitted("validium", 1, hashOf(2));
  await engine.operator.voidSlots("zk-rollup", 0, [{ firstSlot: 1, count: 3, failure: "refused" }]);
  clock.now += 1_000;
  await engine.mint(
    tenant.principal,
    requestOf(tenant.users[3], mintOf(other, 1, 7), mintOf(assets.erc721, 9_999)),
  );
  return { ...made, store, other };
}

/** All entries of a list, through pages of a size. */
async function paged<T>(
  page: (cursor: string | undefined) => Promise<{ data: readonly T[]; nextCursor: string | null }>,
) {
  const found: T[] = [];
  for (let cursor: string | undefined; ; ) {
    const { data, nextCursor } = await page(cursor);
    found.push(...data);
    if (nextCursor === null) return found;
    cursor = nextCursor;
  }
}

/** Whether a filter lets a vault through, said plainly. */
function lets(filter: VaultFilter, vault: Vault): boolean {
  return (
    (filter.userId ?? vault.userId) === vault.userId &&
    (filter.ownerAddress?.toLowerCase() ?? vault.ownerAddress) === vault.ownerAddress &&
    (filter.assetId ?? vault.assetId) === vault.assetId &&
    (filter.tokenId ?? vault.tokenId) === vault.tokenId &&
    (filter.batchId ?? vault.batchId) === vault.batchId &&
    (filter.dataAvailabilityMode ?? vault.dataAvailabilityMode) === vault.dataAvailabilityMode &&
    (filter.status ?? vault.status) === vault.status &&
    vault.createdAt > (filter.createdAfter ?? 0) &&
    vault.createdAt < (filter.createdBefore ?? Number.POSITIVE_INFINITY)
  );
}

const idOf = ({ vaultId }: Vault) => vaultId;
const ascending = (a: bigint, b: bigint) => (a < b ? -1 : 1);

describe("a list of vaults", () => {
  it("matches its filters, in pages of any size and all combinations", async () => {
    const { engine, tenant, assets, other, store, clock } = await furnished();
    const { applicationId } = tenant;
    const everything = await all(engine.vaults.list(applicationId));
    expect(new Set(everything.map(({ status }) => status))).toEqual(
      new Set(["accepted", "batched", "submitted", "finalized", "failed"]),
    );
    const times = everything.map(({ createdAt }) => createdAt);
    const maybe = <T>(...values: T[]) =>
      fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 });
    const filter = fc.record({
      userId: maybe(...tenant.users.map(({ userId }) => userId)),
      ownerAddress: maybe(OWNERS[0].address, OWNERS[1].address),
      assetId: maybe(...Object.values(assets), other),
      tokenId: fc.option(fc.bigInt({ min: 0n, max: 9n }), { nil: undefined, freq: 2 }),
      batchId: maybe(
        batchIdOf("validium", 0),
        batchIdOf("validium", 2),
        batchIdOf("zk-rollup", 0),
        "validium-99",
      ),
      dataAvailabilityMode: maybe("validium" as const, "zk-rollup" as const),
      status: maybe(
        ...(["accepted", "batched", "submitted", "settled", "finalized", "failed"] as const),
      ),
      createdAfter: maybe(...times),
      createdBefore: maybe(...times),
    });
    const holds = (on: Engine) => async (filter: VaultFilter, limit: number) => {
      const found = await paged((cursor) =>
        on.vaults.list(applicationId, { ...filter, limit, cursor }),
      );
      // A void vault's ERC-721 token is free, so its id leads there no more.
      const isFree = (vault: Vault) =>
        filter.tokenId !== undefined &&
        vault.status === "failed" &&
        vault.assetId === assets.erc721;
      const expected = everything
        .filter((vault) => lets(filter, vault) && !isFree(vault))
        .map(idOf);
      if (filter.tokenId === undefined) expect(found.map(idOf)).toEqual(expected);
      else expect(found.map(idOf).sort(ascending)).toEqual(expected.sort(ascending));
    };
    // No time lies after and before the same one.
    const [at] = times;
    const never = {
      ownerAddress: OWNERS[0].address,
      batchId: batchIdOf("validium", 0),
      createdAfter: at,
    };
    await holds(engine)({ ...never, createdBefore: at }, 1);
    await fc.assert(fc.asyncProperty(filter, fc.integer({ min: 1, max: 40 }), holds(engine)), {
      numRuns: 150,
    });
    expect((await engine.operator.verify()).problems).toEqual([]);
    await engine.close();
    await using again = await openTest(store, { clock: clock.read });
    await fc.assert(fc.asyncProperty(filter, fc.constant(20), holds(again)), { numRuns: 50 });
  });

  it("of a token tells what it examines: assets, open batches, and its vaults", async ({
    engine,
  }) => {
    const assets: Uuid[] = [];
    for (let i = 0; i < 95; i++) assets.push(await knownAsset(engine, "erc1155"));
    const tenant = await newTenant(engine, assets);
    const { applicationId } = tenant;
    const [user] = tenant.users;
    await engine.mint(
      tenant.principal,
      requestOf(user, ...assets.map((assetId) => mintOf(assetId, 7))),
    );
    for (let first = 1_000; first < 11_000; first += 1_000)
      await engine.mint(
        tenant.principal,
        requestOf(user, ...Array.from({ length: 1_000 }, (_, i) => mintOf(assets[0]!, first + i))),
      );
    const told: number[] = [];
    const onExamined = async (transactions: number) => void told.push(transactions);
    const { data } = await engine.vaults.list(applicationId, { tokenId: 7n }, { onExamined });
    expect(data).toHaveLength(50);
    expect(told.length).toBeGreaterThan(2);
    expect(told.at(-1)).toBeGreaterThan(500);
    const refused = engine.vaults.list(
      applicationId,
      { tokenId: 7n },
      { onExamined: () => Promise.reject(new Error("no more units")) },
    );
    await expect(refused).rejects.toThrow("no more units");
    // A batch that is sealed while the page waits is neither left out nor listed twice.
    let isSealed = false;
    const waiting = {
      async onExamined() {
        if (isSealed) return;
        isSealed = true;
        await engine.operator.seal("validium");
        await engine.operator.seal("zk-rollup");
      },
    };
    const found = await engine.vaults.list(applicationId, { tokenId: 7n, limit: 100 }, waiting);
    expect(new Set(found.data.map(idOf)).size).toBe(95);
    expect(found.data).toHaveLength(95);
  });

  it("shows nothing of another application, though it has minted of the same token", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const other = await newTenant(engine, [assets.erc1155, assets.erc721]);
    await engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mintOf(assets.erc1155, 7), mintOf(assets.erc721, 1)),
    );
    for (const tokenId of [7n, 1n])
      expect(await all(engine.vaults.list(other.applicationId, { tokenId }))).toEqual([]);
  });
});

describe("a list of transactions", () => {
  it("matches its filters, with withdrawals among the mints", async () => {
    const made = await furnished();
    const { engine, tenant, assets, other } = made;
    await using _ = engine;
    const { applicationId } = tenant;
    const vaults = await all(engine.vaults.list(applicationId));
    const { vaultId, ownerAddress: holder } = vaults.find(
      ({ status }) => status === "finalized",
    ) as Vault;
    const signer = OWNERS.find(
      ({ address }) => address.toLowerCase() === holder,
    ) as (typeof OWNERS)[0];
    await withdrawOne(engine, tenant.principal, await signed(made, 1n, { vaultId, signer }));
    const everything = await all(engine.transactions.list(applicationId, { order: "asc" }));
    const times = everything.map(({ timestamps }) => timestamps.accepted ?? 0);
    const mints = everything.flatMap(({ mintId }) => mintId ?? []);
    const maybe = <T>(...values: T[]) =>
      fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 });
    const filter = fc.record({
      userId: maybe(...tenant.users.map(({ userId }) => userId)),
      assetId: maybe(...Object.values(assets), other),
      batchId: maybe(batchIdOf("validium", 1), batchIdOf("zk-rollup", 1)),
      reference: maybe("order 1", "order 4"),
      dataAvailabilityMode: maybe("validium" as const, "zk-rollup" as const),
      status: maybe(...(["accepted", "batched", "finalized", "failed"] as const)),
      type: maybe("mint" as const, "withdrawal" as const),
      vaultId: maybe(vaultId, 99n),
      mintId: maybe(...mints, applicationId),
      createdAfter: maybe(...times),
      createdBefore: maybe(...times),
      order: maybe("asc" as const, "desc" as const),
    });
    await fc.assert(
      fc.asyncProperty(
        filter,
        fc.integer({ min: 1, max: 40 }),
        async ({ order, createdAfter, createdBefore, ...wanted }: TransactionFilter, limit) => {
          const filter = { ...wanted, createdAfter, createdBefore };
          const found = await paged((cursor) =>
            engine.transactions.list(applicationId, { ...filter, order, limit, cursor }),
          );
          const expected = everything
            .filter((one) => {
              const at = one.timestamps.accepted ?? 0;
              if (at <= (createdAfter ?? -1) || at >= (createdBefore ?? Number.POSITIVE_INFINITY))
                return false;
              return Object.entries(wanted).every(
                ([name, value]) => value === undefined || one[name as "type"] === value,
              );
            })
            .map(({ sequence }) => sequence);
          expect(found.map(({ sequence }) => sequence)).toEqual(
            order === "asc" ? expected : expected.reverse(),
          );
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("a list of withdrawals", () => {
  it("matches its filters while statuses change", async ({
    engine,
    tenant,
    assets,
    clock,
    made,
  }) => {
    const { applicationId } = tenant;
    const entries = [mintOf(assets.erc20, "", 100), mintOf(assets.erc1155, 7, 100)];
    const users = OWNERS.map((_owner, i) => ({ userId: tenant.users[i]?.userId, mints: entries }));
    const { vaults } = await engine.mint(tenant.principal, { users } as unknown);
    await engine.operator.seal("validium");
    const ids: string[] = [];
    for (const [i, { vaultId }] of vaults.entries()) {
      clock.now += 1_000;
      const owner = OWNERS[Math.floor(i / 2)];
      const { withdrawalId } = await withdrawOne(
        engine,
        tenant.principal,
        await signed(made, BigInt(i + 1), { vaultId, ...(owner && { signer: owner }) }),
      );
      ids.push(withdrawalId);
    }
    await engine.operator.recordSubmitted("validium", 0, hashOf(1));
    await hear(engine, await committed(engine, "validium", 0, 10n));
    for (const id of ids.slice(0, 5))
      await engine.operator.recordWithdrawalSubmitted(id, hashOf(2));
    for (const i of [0, 1, 2]) {
      await hear(
        engine,
        withdrawn(
          vaults[i]?.vaultId ?? 0n,
          BigInt(i + 1),
          BigInt(i + 1),
          ownerAddress,
          BigInt(11 + i),
        ),
      );
    }
    await engine.operator.recordFinalized(HOME, 11n);
    await engine.operator.recordReorg(HOME, 13n);
    const everything = await all(engine.withdrawals.list(applicationId));
    expect(everything.map(({ withdrawalId }) => withdrawalId)).toEqual(ids.toReversed());
    expect(everything.map(({ status }) => status).toReversed()).toEqual([
      "finalized",
      "settled",
      ...Array(3).fill("submitted"),
      ...Array(3).fill("accepted"),
    ]);
    const assetOf = new Map(vaults.map(({ vaultId, assetId }) => [vaultId, assetId]));
    const ownerOf = new Map(vaults.map(({ vaultId, ownerAddress }) => [vaultId, ownerAddress]));
    const maybe = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
    const times = everything.map(({ createdAt }) => createdAt);
    const filter = fc.record({
      status: maybe(...(["accepted", "submitted", "settled", "finalized", "failed"] as const)),
      userId: maybe(...tenant.users.map(({ userId }) => userId)),
      ownerAddress: maybe(...OWNERS.map(({ address }) => address)),
      assetId: maybe(assets.erc20, assets.erc1155, assets.erc721),
      vaultId: maybe(...vaults.map(({ vaultId }) => vaultId)),
      createdAfter: maybe(...times),
      createdBefore: maybe(...times),
    });
    await fc.assert(
      fc.asyncProperty(
        filter,
        fc.integer({ min: 1, max: 4 }),
        async (filter: WithdrawalFilter, limit) => {
          const found = await paged((cursor) =>
            engine.withdrawals.list(applicationId, { ...filter, limit, cursor }),
          );
          const expected = everything.filter(
            (one) =>
              (filter.status ?? one.status) === one.status &&
              (filter.userId ?? one.userId) === one.userId &&
              (filter.ownerAddress?.toLowerCase() ?? ownerOf.get(one.vaultId)) ===
                ownerOf.get(one.vaultId) &&
              (filter.assetId ?? assetOf.get(one.vaultId)) === assetOf.get(one.vaultId) &&
              (filter.vaultId ?? one.vaultId) === one.vaultId &&
              one.createdAt > (filter.createdAfter ?? 0) &&
              one.createdAt < (filter.createdBefore ?? Number.POSITIVE_INFINITY),
          );
          expect(found).toEqual(expected);
        },
      ),
      { numRuns: 200 },
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});

/** Entries that the engine read from its store while it did something. */
async function recordsRead({ database }: Fixture, work: () => Promise<unknown>): Promise<number> {
  let read = 0;
  const { get, iterator } = database;
  Object.assign(database, {
    get: (...args: Parameters<typeof get>) => {
      read++;
      return get.apply(database, args);
    },
    iterator: (...args: Parameters<typeof iterator>) => {
      const made = iterator.apply(database, args);
      const { nextv } = made;
      made.nextv = async (...sizes: Parameters<typeof nextv>) => {
        const entries = await nextv.apply(made, sizes);
        read += entries.length;
        return entries;
      };
      return made;
    },
  });
  try {
    await work();
  } finally {
    Object.assign(database, { get, iterator });
  }
  return read;
}

describe("a filter", () => {
  it("by time, mint, or withdrawals reads a few records of many", async ({ made: world }) => {
    const { engine, tenant, assets, clock } = world;
    const results = [];
    for (let i = 0; i < 500; i++) {
      clock.now += 1000;
      results.push(
        await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, i))),
      );
    }
    const middle = results[250];
    const time = clock.now - 249_000;
    const filters: TransactionFilter[] = [
      { createdAfter: time - 1, createdBefore: time + 1 },
      { createdBefore: time + 1, createdAfter: time - 1, order: "asc" },
      { mintId: middle?.mintId },
      { type: "withdrawal" },
    ];
    for (const filter of filters) {
      let found = 0;
      const read = await recordsRead(world, async () => {
        found = (await all(engine.transactions.list(tenant.applicationId, filter))).length;
      });
      expect(found).toBe(filter.type === undefined ? 1 : 0);
      expect(read, JSON.stringify(filter)).toBeLessThan(60);
    }
  });
});

/** Most iterators of the store that were open at once while the engine did something. */
async function iteratorsOpened({ database }: Fixture, work: () => Promise<unknown>) {
  const { iterator } = database;
  let [open, most] = [0, 0];
  Object.assign(database, {
    iterator: (...args: Parameters<typeof iterator>) => {
      const made = iterator.apply(database, args);
      const { close } = made;
      most = Math.max(most, ++open);
      let isClosed = false;
      made.close = () => {
        if (!isClosed) open--;
        isClosed = true;
        return close.apply(made);
      };
      return made;
    },
  });
  try {
    await work();
  } finally {
    Object.assign(database, { iterator });
  }
  return most;
}

const manyOf = (ownerAddress: `0x${string}`) =>
  Array.from({ length: 1_000 }, () => ({ ownerAddress, userId: uuidv7() }));

describe("a list by an owner with a thousand users", () => {
  it("has each transaction once in pages of any size, reads one index at a time, and tells of its work", async ({
    made: world,
  }) => {
    const { engine, tenant, assets } = world;
    const { applicationId } = tenant;
    const shared = { ownerAddress: `0x${"99".repeat(20)}` } as const;
    const users = await engine.users.createAll(applicationId, manyOf(shared.ownerAddress));
    const mint = (holders: readonly { userId: string | undefined }[]) =>
      engine.mint(tenant.principal, {
        users: holders.map(({ userId }) => ({ userId, mints: [mintOf(assets.erc1155, 7)] })),
      } as unknown);
    // One user has many more than the others, and some requests have a stranger between them.
    for (let first = 0; first < 1_000; first += 100) await mint(users.slice(first, first + 100));
    for (let i = 0; i < 12; i++) {
      await mint([tenant.users[1]!, users[i % 7]!, users[900 - i]!]);
      await mint([users[500]!]);
      await mint([tenant.users[2]!]);
    }
    const own = new Set(users.map(({ userId }) => userId));
    const every = await all(engine.transactions.list(applicationId, { order: "asc" }));
    const expected = every.filter(({ userId }) => own.has(userId)).map(({ sequence }) => sequence);
    expect(expected.length).toBe(1_036);
    for (const order of ["asc", "desc"] as const)
      for (const limit of [37, 100]) {
        const found = await paged((cursor) =>
          engine.transactions.list(applicationId, { ...shared, order, limit, cursor }),
        );
        expect(found.map(({ sequence }) => sequence)).toEqual(
          order === "asc" ? expected : expected.toReversed(),
        );
      }
    for (const filter of [{ status: "failed" }, { type: "withdrawal" }, {}] as const) {
      const told: number[] = [];
      const opened = await iteratorsOpened(world, async () => {
        const onExamined = async (transactions: number) => void told.push(transactions);
        await engine.transactions.list(applicationId, { ...shared, ...filter }, { onExamined });
      });
      expect(opened).toBeLessThanOrEqual(2);
      expect(told.at(-1)).toBeGreaterThan(4_000);
      const steps = told.map((transactions, i) => transactions - (told[i - 1] ?? 0));
      expect(Math.max(...steps)).toBeLessThan(500);
    }
    const refused = engine.vaults.list(applicationId, shared, {
      onExamined: () => Promise.reject(new Error("no more units")),
    });
    await expect(refused).rejects.toThrow("no more units");
  });

  it("is cut after so many transactions, and goes on from there", async ({ made: world }) => {
    const { engine, tenant, assets } = world;
    const { applicationId } = tenant;
    const shared = { ownerAddress: `0x${"98".repeat(20)}` } as const;
    const users = await engine.users.createAll(applicationId, manyOf(shared.ownerAddress));
    for (let i = 0; i < 9; i++)
      await engine.mint(tenant.principal, {
        users: users.slice(i * 100, i * 100 + 100).map(({ userId }) => ({
          userId,
          mints: Array.from({ length: 20 }, () => mintOf(assets.erc1155, 7)),
        })),
      } as unknown);
    for (const order of ["asc", "desc"] as const) {
      let pages = 0;
      const found = await paged((cursor) => {
        expect(++pages).toBeLessThan(20);
        return engine.transactions.list(applicationId, {
          ...shared,
          status: "failed",
          order,
          cursor,
        });
      });
      expect(found).toEqual([]);
      expect(pages).toBeGreaterThan(2);
    }
  });
});

describe("a page of batches", () => {
  it("has both modes by number, however unevenly sealed, and reads only its own batches", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const put = vi.spyOn(Table.prototype, "put");
    for (let i = 0; i < 40; i++) {
      const mode = i % 10 === 3 ? "zk-rollup" : "validium";
      await engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], mintOf(assets.erc721, 7_000 + i, 1, mode)),
      );
      await engine.operator.seal(mode);
    }
    const ids = (batches: readonly { readonly batchId: string }[]) =>
      batches.map(({ batchId }) => batchId);
    const wanted = Array.from({ length: 36 }, (__, i) => [
      `zk-rollup-${35 - i}`,
      `validium-${35 - i}`,
    ]).flat();
    const expected = wanted.filter((id) => !id.startsWith("zk") || Number(id.split("-")[2]) < 4);
    expect(ids(await all(engine.batches.list({ limit: 3 })))).toEqual(expected);
    expect(ids(await all(engine.batches.list({ limit: 3, mode: "zk-rollup" })))).toEqual(
      expected.filter((id) => id.startsWith("zk")),
    );
    const views = [...new Set(put.mock.contexts as Table<number, object>[])].map(
      ({ durable }) => durable,
    );
    const asked = views.map((view) => vi.spyOn(view, "get"));
    const listed = views.map((view) => vi.spyOn(view, "values"));
    const page = await engine.batches.list({ mode: "validium", limit: 5 });
    expect(ids(page.data)).toEqual(Array.from({ length: 5 }, (__, i) => `validium-${35 - i}`));
    expect(asked.flatMap(({ mock }) => mock.calls).length).toBeLessThanOrEqual(6);
    for (const spy of listed) expect(spy).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });
});

const mint = ({ engine, tenant }: Fixture, user: number, ...mints: object[]) =>
  engine.mint(tenant.principal, {
    users: [{ userId: tenant.users[user]?.userId, mints }],
  } as unknown);

describe("the reference of a mint", () => {
  it("is in its transaction, and finds its transactions and vaults, page by page and after a restart", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { engine, tenant, assets } = made;
    const { applicationId } = tenant;
    await mint(
      made,
      0,
      { ...mintOf(assets.erc721, 1), reference: "order 1" },
      { ...mintOf(assets.erc20, "", 5), reference: "order 1" },
      mintOf(assets.erc721, 2),
      { ...mintOf(assets.erc721, 3), reference: "order 1 again" },
    );
    await mint(made, 1, mintOf(assets.erc721, 4), {
      ...mintOf(assets.erc721, 5, 1, "zk-rollup"),
      reference: "order 1",
    });
    // More of the same vault.
    await mint(made, 0, { ...mintOf(assets.erc20, "", 7), reference: "order 1" });
    const found = async (on: typeof engine, filter: object) => {
      const transactions = [];
      for (let cursor: string | undefined; ; ) {
        const page = await on.transactions.list(applicationId, {
          ...filter,
          order: "asc",
          limit: 2,
          cursor,
        });
        transactions.push(...page.data);
        if (page.nextCursor === null) break;
        cursor = page.nextCursor;
      }
      const vaults = await all(on.vaults.list(applicationId, filter));
      return [
        transactions.map(({ sequence, reference }) => [sequence, reference]),
        vaults.map(({ tokenId, amount }) => tokenId ?? amount),
      ];
    };
    const expected = [
      [0, "order 1"],
      [1, "order 1"],
      [5, "order 1"],
      [6, "order 1"],
    ];
    expect(await found(engine, { reference: "order 1" })).toEqual([expected, [1n, 12n, 5n]]);
    expect(await found(engine, { reference: "order 1", userId: tenant.users[1]?.userId })).toEqual([
      [expected[2]],
      [5n],
    ]);
    expect(await found(engine, { reference: "order 1", assetId: assets.erc721 })).toEqual([
      [expected[0], expected[2]],
      [1n, 5n],
    ]);
    expect(await found(engine, { reference: "order" })).toEqual([[], []]);
    const newest = await engine.transactions.list(applicationId, { limit: 3 });
    expect(newest.data.map(({ reference }) => reference)).toEqual(["order 1", "order 1", null]);
    expect((await engine.operator.verify()).problems).toEqual([]);
    await engine.close();
    await using again = await openTest(store);
    expect(await found(again, { reference: "order 1" })).toEqual([expected, [1n, 12n, 5n]]);
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("is part of the request that an idempotency key compares, and of a replay", async ({
    engine,
    tenant,
    assets,
  }) => {
    const request = (reference: string) => ({
      users: [
        { userId: tenant.users[0]?.userId, mints: [{ ...mintOf(assets.erc20, "", 5), reference }] },
      ],
    });
    const once = { idempotencyKey: "k" };
    const { mintId } = await engine.mint(tenant.principal, request("a") as unknown, once);
    expect(await engine.mint(tenant.principal, request("a") as unknown, once)).toMatchObject({
      replayed: true,
      mintId,
    });
    expect((await refusal(engine.mint(tenant.principal, request("b") as unknown, once))).code).toBe(
      "idempotency_key_reused",
    );
  });

  it("applies to every token of a quantity", async ({ engine, tenant, made }) => {
    const names = {
      name: "Own",
      symbol: "OWN",
      contractAddress: `0x${"ca".repeat(20)}` as const,
      firstTokenId: 1n,
    };
    const { assetId } = await engine.assets.add({
      standard: "erc721",
      ...names,
      applicationId: tenant.applicationId,
    });
    await engine.operator.recordRegistered(assetId);
    const entry = { assetId, dataAvailabilityMode: "validium", quantity: 2 };
    await mint(made, 0, entry, { ...entry, reference: "gift" }, entry);
    const gift = await all(engine.vaults.list(tenant.applicationId, { reference: "gift" }));
    expect(gift.map(({ tokenId }) => tokenId)).toEqual([3n, 4n]);
  });

  it.for([[""], ["x".repeat(65)], ["a\nb"], [7], [null]])(
    "is refused as %j",
    async ([reference], { made }) => {
      expect(await refusal(mint(made, 0, { ...mintOf(made.assets.erc721, 1), reference }))).toEqual(
        {
          code: "validation_failed",
          issues: { "/users/0/mints/0/reference": "validation_failed" },
        },
      );
    },
  );
});
