import { describe, expect } from "vitest";
import type { Address, Mode } from "../../../core/index.ts";
import {
  all,
  type Fixture,
  fixture,
  memory,
  newTenant,
  OWNERS,
  openTest,
  refusal,
  START,
} from "./fixture.ts";
import { it } from "./it.ts";

const NEW = `0x${"4e".repeat(20)}` as const;
const OTHER = `0x${"4f".repeat(20)}` as const;
const OWNER = OWNERS[0].address.toLowerCase() as Address;

/** An entry of a new token. */
let tokens = 0;
const entry = ({ assets }: Fixture, more: object = {}) => ({
  assetId: assets.erc721,
  tokenId: String(++tokens),
  dataAvailabilityMode: "validium",
  ...more,
});

describe("a mint to an address", () => {
  it("creates its user once, and mints to it from then on", async ({ engine, tenant, made }) => {
    const mint = () =>
      engine.mint(tenant.principal, {
        users: [{ ownerAddress: NEW, mints: [entry(made)] }],
      } as unknown);
    const minted = [await mint(), ...(await Promise.all([mint(), mint(), mint()]))];
    const vaults = minted.flatMap((result) => result.vaults);
    const [{ userId, ownerAddress } = { userId: "", ownerAddress: "" }] = vaults;
    expect(ownerAddress).toBe(NEW);
    expect(vaults.map((vault) => vault.userId)).toEqual(Array(4).fill(userId));
    expect(await engine.users.get(tenant.applicationId, userId)).toMatchObject({
      ownerAddress: NEW,
      reference: null,
    });
    expect(await all(engine.users.list(tenant.applicationId, { ownerAddress: NEW }))).toHaveLength(
      1,
    );
    expect(
      (await all(engine.vaults.list(tenant.applicationId, { userId }))).map(
        ({ vaultId }) => vaultId,
      ),
    ).toEqual(vaults.map(({ vaultId }) => vaultId));
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("creates one user for concurrent requests, even if one of them registers the address", async ({
    made,
  }) => {
    const { engine, tenant } = made;
    const { applicationId } = tenant;
    const mint = () =>
      engine.mint(tenant.principal, {
        users: [{ ownerAddress: NEW, mints: [entry(made)] }],
      } as unknown);
    const [first, created, second] = await Promise.all([
      mint(),
      engine.users.createAll(applicationId, [{ ownerAddress: NEW }]),
      mint(),
    ]);
    const ids = [first.vaults[0]?.userId, created[0]?.userId, second.vaults[0]?.userId];
    expect(new Set(ids).size).toBe(1);
    expect(await all(engine.users.list(applicationId, { ownerAddress: NEW }))).toHaveLength(1);
  });

  it("goes to the owner's first user in its own application, even after a restart", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { engine, tenant, assets } = made;
    const other = await newTenant(engine, [assets.erc721]);
    await engine.users.create(tenant.applicationId, { ownerAddress: OWNER });
    const mintAs = async (principal: typeof tenant.principal, on = engine) =>
      (
        await on.mint(principal, {
          users: [{ ownerAddress: OWNERS[0].address, mints: [entry(made)] }],
        } as unknown)
      ).vaults[0]?.userId;
    expect(await mintAs(tenant.principal)).toBe(tenant.users[0]?.userId);
    expect(await mintAs(other.principal)).toBe(other.users[0]?.userId);
    await engine.close();
    await using again = await openTest(store);
    expect(await mintAs(tenant.principal, again)).toBe(tenant.users[0]?.userId);
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("repeats under its idempotency key", async ({ engine, tenant, made }) => {
    const request = { users: [{ ownerAddress: NEW, mints: [entry(made)] }] };
    const once = { idempotencyKey: "order" };
    const first = await engine.mint(tenant.principal, request as unknown, once);
    expect(await engine.mint(tenant.principal, request as unknown, once)).toMatchObject({
      replayed: true,
      mintId: first.mintId,
      vaults: first.vaults,
    });
  });

  it("creates nobody when the request is refused, or only checked", async ({
    engine,
    tenant,
    assets,
    made,
  }) => {
    const good = { ownerAddress: NEW, mints: [entry(made)] };
    const bad = { ownerAddress: OTHER, mints: [entry(made, { assetId: assets.erc20 })] };
    expect(
      (await refusal(engine.mint(tenant.principal, { users: [good, bad] } as unknown))).code,
    ).toBe("validation_failed");
    expect(await engine.mints.check(tenant.principal, { users: [good] } as unknown)).toEqual({
      users: 1,
      mints: 1,
    });
    expect(await all(engine.users.list(tenant.applicationId))).toHaveLength(OWNERS.length);
  });

  it("needs the scope users for an address without a user, and only for that", async ({
    engine,
    tenant,
    made,
  }) => {
    const { secret } = await engine.keys.issue(tenant.applicationId, { scopes: ["mint"] });
    const minter = await engine.keys.authenticate(secret);
    const mint = (ownerAddress: Address) =>
      engine.mint(minter, { users: [{ ownerAddress, mints: [entry(made)] }] } as unknown);
    expect(await refusal(mint(NEW))).toEqual({
      code: "scope_missing",
      issues: { "/users/0/ownerAddress": "scope_missing" },
    });
    expect((await mint(OWNER)).vaults).toMatchObject([{ userId: tenant.users[0]?.userId }]);
  });

  it.for([
    [
      "a wrong checksum",
      { ownerAddress: "0x70997970C51812dc3A010C7d01b50e0d17dc79c8" },
      "validation_failed",
    ],
    ["no address", { ownerAddress: "0x1234" }, "validation_failed"],
    ["the zero address", { ownerAddress: `0x${"0".repeat(40)}` }, "validation_failed"],
    ["a number", { ownerAddress: 7 }, "validation_failed"],
    ["null", { ownerAddress: null }, "validation_failed"],
  ] as const)("refuses %s", async ([, user, code], { made }) => {
    const request = { users: [{ ...user, mints: [entry(made)] }] };
    expect(await refusal(made.engine.mint(made.tenant.principal, request as unknown))).toEqual({
      code,
      issues: { "/users/0/ownerAddress": code },
    });
  });

  it("refuses an id with the address, and a repeated user", async ({ engine, tenant, made }) => {
    const userId = tenant.users[0]?.userId;
    const mint = (...users: object[]) =>
      refusal(
        engine.mint(tenant.principal, {
          users: users.map((user) => ({ ...user, mints: [entry(made)] })),
        } as unknown),
      );
    expect(await mint({ userId, ownerAddress: OWNER })).toEqual({
      code: "validation_failed",
      issues: { "/users/0/ownerAddress": "validation_failed" },
    });
    const twice = { code: "duplicate_user", issues: { "/users/1/ownerAddress": "duplicate_user" } };
    expect(await mint({ userId }, { ownerAddress: OWNER })).toEqual(twice);
    expect(
      await mint({ ownerAddress: NEW }, { ownerAddress: NEW.toUpperCase().replace("X", "x") }),
    ).toEqual(twice);
  });
});

describe("users created together", () => {
  it("come in their order, all or none, and again as they were", async ({ engine, tenant }) => {
    const { applicationId } = tenant;
    const userId = "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a11";
    const asked = [
      { ownerAddress: NEW, reference: "first" },
      { ownerAddress: OWNER },
      { userId, ownerAddress: NEW, reference: "second" },
      { ownerAddress: NEW },
    ];
    const created = await engine.users.createAll(applicationId, asked);
    expect(created.map(({ ownerAddress, reference }) => [ownerAddress, reference])).toEqual([
      [NEW, "first"],
      [OWNER, null],
      [NEW, "second"],
      [NEW, "first"],
    ]);
    expect([created[1]?.userId, created[2]?.userId]).toEqual([tenant.users[0]?.userId, userId]);
    expect(created[3]).toEqual(created[0]);
    expect(await engine.users.createAll(applicationId, asked)).toEqual(created);
    expect(await all(engine.users.list(applicationId))).toHaveLength(OWNERS.length + 2);
    const wrong = [{ ownerAddress: OTHER }, { userId, ownerAddress: OTHER }];
    expect(await refusal(engine.users.createAll(applicationId, wrong))).toEqual({
      code: "user_exists",
      issues: { "/users/1/userId": "user_exists" },
    });
    expect(await all(engine.users.list(applicationId, { ownerAddress: OTHER }))).toEqual([]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("are found by owner and by reference, page by page", async ({ engine, tenant }) => {
    const { applicationId } = tenant;
    const id = (i: number) => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`;
    const users = Array.from({ length: 7 }, (_, i) => ({
      userId: id(i),
      ownerAddress: i % 2 === 0 ? NEW : OTHER,
      reference: i < 5 ? "team" : "team 2",
    }));
    await engine.users.createAll(applicationId, users);
    const idsOf = async (filter: object) => {
      const pages = [];
      for (let cursor: string | undefined; ; ) {
        const page = await engine.users.list(applicationId, { ...filter, limit: 2, cursor });
        pages.push(page.data.map(({ userId }) => Number(userId.slice(-2))));
        if (page.nextCursor === null) return pages;
        cursor = page.nextCursor;
      }
    };
    expect(await idsOf({ ownerAddress: NEW })).toEqual([
      [0, 2],
      [4, 6],
    ]);
    expect(await idsOf({ ownerAddress: OTHER })).toEqual([[1, 3], [5]]);
    expect(await idsOf({ ownerAddress: OTHER, order: "desc" })).toEqual([[5, 3], [1]]);
    expect(await idsOf({ reference: "team", order: "desc" })).toEqual([[4, 3], [2, 1], [0]]);
    expect(await idsOf({ reference: "team" })).toEqual([[0, 1], [2, 3], [4]]);
    expect((await idsOf({ ownerAddress: NEW, reference: "team" })).flat()).toEqual([0, 2, 4]);
    expect(await idsOf({ reference: "tea" })).toEqual([[]]);
  });

  it.for([[""], ["x".repeat(65)], ["a\u0000b"], [7]])(
    "refuse the reference %j",
    async ([reference], { engine, tenant }) => {
      const user = { ownerAddress: NEW, reference: reference as string };
      expect((await refusal(engine.users.create(tenant.applicationId, user))).code).toBe(
        "validation_failed",
      );
    },
  );
});

describe("an entry without a mode", () => {
  it("gets the asset's default, else the application's, else it is refused", async ({ made }) => {
    const { engine, tenant, assets } = made;
    const { applicationId } = tenant;
    const userId = tenant.users[0]?.userId;
    const mint = async () => {
      const entries = [{ ...entry(made), dataAvailabilityMode: undefined }];
      const request = JSON.parse(JSON.stringify({ users: [{ userId, mints: entries }] }));
      return (await engine.mint(tenant.principal, request)).vaults[0]?.dataAvailabilityMode;
    };
    const refused = {
      code: "validation_failed",
      issues: { "/users/0/mints/0/dataAvailabilityMode": "validation_failed" },
    };
    const setBoth = async (asset: Mode | null, application: Mode | null) => {
      await engine.assets.change(assets.erc721, { dataAvailabilityMode: asset });
      await engine.applications.change(applicationId, { dataAvailabilityMode: application });
    };
    expect(await refusal(mint())).toEqual(refused);
    await setBoth(null, "zk-rollup");
    expect(await mint()).toBe("zk-rollup");
    await setBoth("validium", "zk-rollup");
    expect(await mint()).toBe("validium");
    await setBoth("validium", null);
    expect(await mint()).toBe("validium");
    await setBoth(null, null);
    expect(await refusal(mint())).toEqual(refused);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("repeats with its key even after the default has changed, and defaults survive a restart", async () => {
    const store = memory();
    const made = await fixture({ store });
    const { engine, tenant, assets } = made;
    const { applicationId } = tenant;
    const created = await engine.applications.create({
      name: "with a default",
      dataAvailabilityMode: "validium",
    });
    await engine.applications.change(applicationId, { dataAvailabilityMode: "validium" });
    const request = {
      users: [{ userId: tenant.users[0]?.userId, mints: [{ assetId: assets.erc20, amount: 5 }] }],
    };
    const once = { idempotencyKey: "order" };
    const first = await engine.mint(tenant.principal, request as unknown, once);
    await engine.assets.change(assets.erc20, { dataAvailabilityMode: "zk-rollup" });
    expect(await engine.mint(tenant.principal, request as unknown, once)).toMatchObject({
      replayed: true,
      mintId: first.mintId,
    });
    await engine.close();
    await using again = await openTest(store, { clock: () => START + 1 });
    expect((await again.applications.get(created.applicationId)).dataAvailabilityMode).toBe(
      "validium",
    );
    expect((await again.assets.get(applicationId, assets.erc20)).dataAvailabilityMode).toBe(
      "zk-rollup",
    );
    expect((await again.operator.verify()).problems).toEqual([]);
  });
});
