import { describe, expect } from "vitest";
import type { Engine, Page } from "../../../core/index.ts";
import {
  all,
  fixture,
  knownAsset,
  mintOf,
  newTenant,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { it } from "./it.ts";

/** All pages of a list. */
async function pages<T>(list: (cursor?: string) => Promise<Page<T>>): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await list(cursor);
    expect(page.data.length).toBeLessThanOrEqual(page.limit);
    expect(page.hasMore).toBe(page.nextCursor !== null);
    found.push(...page.data);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

/** Three requests of two users each: eighteen mints, sequences 0 to 17. */
async function minted() {
  const made = await fixture();
  const { engine, tenant, assets, clock } = made;
  for (let i = 0; i < 3; i++) {
    clock.now += 1000;
    await engine.mint(tenant.principal, {
      users: tenant.users.slice(0, 2).map(({ userId }, user) => ({
        userId,
        mints: [
          mintOf(assets.erc721, 10 * i + user),
          mintOf(assets.erc20, "", 1 + i, "zk-rollup"),
          mintOf(assets.erc1155, `item ${user}`, 2),
        ],
      })),
    });
  }
  await engine.operator.seal("zk-rollup");
  return made;
}

describe("a page of transactions", () => {
  it("has a cursor for its application, its list and its filter only", async () => {
    const { engine, tenant, assets } = await minted();
    await using _ = engine;
    const other = await newTenant(engine, []);
    const cursor =
      (await engine.transactions.list(tenant.applicationId, { limit: 2 })).nextCursor ?? "";
    const code = async (promise: Promise<unknown>) => (await refusal(promise)).code;
    expect(await code(engine.transactions.list(other.applicationId, { limit: 2, cursor }))).toBe(
      "cursor_invalid",
    );
    expect(await code(engine.vaults.list(tenant.applicationId, { limit: 2, cursor }))).toBe(
      "cursor_invalid",
    );
    expect(
      await code(engine.transactions.list(tenant.applicationId, { cursor, assetId: assets.erc20 })),
    ).toBe("cursor_invalid");
    for (let i = 0; i < cursor.length; i++) {
      const forged = cursor.slice(0, i) + (cursor[i] === "A" ? "B" : "A") + cursor.slice(i + 1);
      expect(await code(engine.transactions.list(tenant.applicationId, { cursor: forged }))).toBe(
        "cursor_invalid",
      );
    }
    expect(
      (await engine.transactions.list(tenant.applicationId, { limit: 3, cursor })).data[0]
        ?.sequence,
    ).toBe(15);
    expect(await code(engine.transactions.list(tenant.applicationId, { limit: 0 }))).toBe(
      "validation_failed",
    );
    expect(await code(engine.transactions.list(tenant.applicationId, { limit: 101 }))).toBe(
      "validation_failed",
    );
  });
});

describe("other lists", () => {
  it("page through vaults, users, assets and batches", async () => {
    const { engine, tenant, assets } = await minted();
    await using _ = engine;
    const { applicationId } = tenant;
    const paged = (cursor?: string) => ({ limit: 3, ...(cursor !== undefined && { cursor }) });
    const vaults = await pages((cursor) => engine.vaults.list(applicationId, paged(cursor)));
    // Six ERC-721 vaults, and one vault per user for each of the fungible two.
    expect(vaults).toHaveLength(10);
    expect(new Set(vaults.map(({ vaultId }) => vaultId)).size).toBe(10);
    for (const vault of vaults)
      expect(await engine.vaults.get(applicationId, vault.vaultId)).toEqual(vault);
    const userId = tenant.users[1]?.userId ?? "";
    const own = await pages((cursor) =>
      engine.vaults.list(applicationId, { ...paged(cursor), userId, assetId: assets.erc721 }),
    );
    expect(own).toEqual(
      vaults.filter((vault) => vault.userId === userId && vault.assetId === assets.erc721),
    );
    expect(await pages((cursor) => engine.users.list(applicationId, paged(cursor)))).toEqual(
      tenant.users,
    );
    const newest = (cursor?: string) => ({ ...paged(cursor), order: "desc" }) as const;
    const backwards = await pages((cursor) => engine.vaults.list(applicationId, newest(cursor)));
    expect(backwards).toEqual(vaults.toReversed());
    expect(await pages((cursor) => engine.users.list(applicationId, newest(cursor)))).toEqual(
      tenant.users.toReversed(),
    );
    for (let i = 0; i < 4; i++) await engine.keys.issue(applicationId, { name: `key ${i}` });
    const keys = await all(engine.keys.list(applicationId));
    expect(await pages((cursor) => engine.keys.list(applicationId, newest(cursor)))).toEqual(
      keys.toReversed(),
    );
    const known = await pages((cursor) =>
      engine.assets.list(applicationId, { limit: 1, ...(cursor && { cursor }) }),
    );
    expect(known.map(({ assetId }) => assetId)).toEqual(Object.values(assets));
    const erc20 = await engine.assets.list(applicationId, {
      standard: ["erc20"],
      enabled: true,
      symbol: "erc20",
    });
    expect(erc20.data.map(({ assetId }) => assetId)).toEqual([assets.erc20]);
    await engine.operator.seal("validium");
    const batches = await pages((cursor) =>
      engine.batches.list({ limit: 1, ...(cursor && { cursor }) }),
    );
    expect(batches.map(({ batchId }) => batchId)).toEqual(["zk-rollup-0", "validium-0"]);
  });

  it("keep applications apart", async () => {
    const { engine, tenant } = await minted();
    await using _ = engine;
    const other = await newTenant(engine, []);
    const [mint] = (await engine.transactions.list(tenant.applicationId)).data;
    const id = other.applicationId;
    const codes = await Promise.all(
      [
        engine.transactions.get(id, mint?.transactionId ?? ""),
        engine.mints.get(id, mint?.mintId ?? ""),
        engine.vaults.get(id, mint?.vaultId ?? 0n),
        engine.users.get(id, mint?.userId ?? ""),
        all(engine.vaults.balances(id, mint?.userId ?? "")),
      ].map(async (promise) => (await refusal(promise)).code),
    );
    expect(codes).toEqual([
      "transaction_not_found",
      "mint_not_found",
      "vault_not_found",
      "user_not_found",
      "user_not_found",
    ]);
    expect((await engine.transactions.list(id)).data).toEqual([]);
    expect((await engine.vaults.list(id, { userId: mint?.userId ?? "" })).data).toEqual([]);
  });
});

describe("keys", () => {
  it("are accepted only as issued, and in time", async ({ engine, tenant, clock }) => {
    const { applicationId } = tenant;
    const code = async (token: string) => (await refusal(engine.keys.authenticate(token))).code;
    const { key, secret } = await engine.keys.issue(applicationId, {
      scopes: ["read"],
      expiresAt: clock.now + 1000,
    });
    expect(secret).toMatch(/^mm_test_[0-9a-f]{16}_[0-9a-f]{72}$/);
    expect(await engine.keys.authenticate(secret)).toEqual({
      applicationId,
      keyId: key.keyId,
      scopes: ["read"],
    });
    for (const wrong of [
      "",
      secret.slice(0, -1),
      `${secret}0`,
      secret.replace("test", "live"),
      secret.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")),
      secret.replace(key.keyId, "0".repeat(16)),
      tenant.token.replace(/_[0-9a-f]{16}_/, `_${key.keyId}_`),
    ]) {
      expect(await code(wrong)).toBe("credentials_invalid");
    }
    const principal = await engine.keys.authenticate(secret);
    expect((await refusal(engine.mint(principal, {} as unknown))).code).toBe("scope_missing");
    clock.now += 1000;
    expect(await code(secret)).toBe("credentials_expired");
    await engine.keys.revoke(key.keyId);
    expect(await code(secret)).toBe("credentials_invalid");
    expect((await refusal(engine.keys.revoke("nobody"))).code).toBe("key_not_found");
  });

  it("are what their caller says in the sandbox, once and whole", async ({ engine, tenant }) => {
    const old = await fixture();
    const { secret: token } = await old.engine.keys.issue(old.tenant.applicationId);
    await old.engine.close();
    const { applicationId } = tenant;
    const { key, secret } = await engine.keys.issue(applicationId, { token, scopes: ["read"] });
    expect(secret).toBe(token);
    expect(await engine.keys.authenticate(token)).toEqual({
      applicationId,
      keyId: key.keyId,
      scopes: ["read"],
    });
    const refused = (text: string, why: string, by = engine, own = applicationId) =>
      expect(by.keys.issue(own, { token: text })).rejects.toThrow(`token ${why}`);
    await refused(token, "has the id of a key that exists");
    await refused(token.slice(0, -1), "must be a whole key, from mm_test_ on");
    await refused(token.replace("test", "live"), "must be a whole key, from mm_test_ on");
    const live = await fixture({ environment: "live" });
    await using _ = live.engine;
    const inLive = live.tenant.applicationId;
    await refused(token, "is for the sandbox environment only", live.engine, inLive);
  });

  it("stop with their application, even for a request already authenticated", async ({
    engine,
    tenant,
    assets,
  }) => {
    const request = requestOf(tenant.users[0], mintOf(assets.erc20, "", 1));
    await engine.applications.suspend(tenant.applicationId);
    expect((await refusal(engine.keys.authenticate(tenant.token))).code).toBe(
      "application_suspended",
    );
    expect((await refusal(engine.mint(tenant.principal, request))).code).toBe(
      "application_suspended",
    );
    await engine.applications.resume(tenant.applicationId);
    await engine.mint(tenant.principal, request);
    await engine.keys.revoke(tenant.principal.keyId);
    expect((await refusal(engine.mint(tenant.principal, request))).code).toBe(
      "credentials_invalid",
    );
  });
});

describe("an asset", () => {
  it("is minted only when whitelisted, registered and enabled, and reports missing steps", async ({
    made,
  }) => {
    const { engine, tenant } = made;
    const { applicationId, principal, users } = tenant;
    const assetId = await knownAsset(engine, "erc20", { ready: false });
    const attempt = async (engine: Engine) =>
      (await refusal(engine.mint(principal, requestOf(users[0], mintOf(assetId, "", 1))))).code;
    expect(await attempt(engine)).toBe("asset_not_whitelisted");
    expect((await refusal(engine.assets.enable(applicationId, assetId))).code).toBe(
      "asset_not_whitelisted",
    );
    await engine.assets.whitelist(assetId);
    expect(await attempt(engine)).toBe("asset_not_registered");
    await engine.operator.recordRegistered(assetId, { minterLocked: false });
    expect(await attempt(engine)).toBe("asset_not_enabled");
    expect(await engine.assets.get(applicationId, assetId)).toMatchObject({
      enabled: false,
      mintingAvailable: false,
    });
    expect(await engine.assets.enable(applicationId, assetId)).toMatchObject({
      enabled: true,
      minterLocked: false,
      mintingAvailable: true,
      unavailableReason: null,
    });
    await engine.mint(principal, requestOf(users[0], mintOf(assetId, "", 1)));
    await engine.assets.disable(applicationId, assetId);
    expect(await attempt(engine)).toBe("asset_not_enabled");
    expect((await all(engine.operator.assets())).at(-1)).toMatchObject({
      assetId,
      enabled: false,
      minted: 1n,
    });
  });

  it("of one application cannot be enabled for another, with any key, even after a restart", async () => {
    const { engine, database, tenant } = await fixture();
    const { applicationId: stranger } = await engine.applications.create({ name: "Another" });
    const assetId = await knownAsset(engine, "erc721", { applicationId: tenant.applicationId });
    const facts = {
      standard: "erc20",
      contractAddress: `0x${"5a".repeat(20)}`,
      name: "n",
      symbol: "s",
    } as const;
    const unknown = "00000000-0000-4000-8000-000000000000";
    expect((await refusal(engine.assets.add({ ...facts, applicationId: unknown }))).code).toBe(
      "application_not_found",
    );
    expect((await refusal(engine.assets.enable(stranger, assetId))).code).toBe("asset_not_found");
    await engine.close();
    await using again = await openTest(database);
    expect((await refusal(again.assets.enable(stranger, assetId))).code).toBe("asset_not_found");
    expect(await again.assets.enable(tenant.applicationId, assetId)).toMatchObject({
      enabled: true,
    });
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("of one application is whitelisted and enabled in the step that adds it", async ({
    engine,
    tenant,
  }) => {
    const { applicationId } = tenant;
    const facts = {
      standard: "erc20",
      contractAddress: `0x${"5a".repeat(20)}`,
      name: "n",
      symbol: "s",
    } as const;
    const { sequence } = (await all(engine.events.stream(applicationId))).at(-1) ?? { sequence: 0 };
    const added = await engine.assets.add({ ...facts, applicationId });
    expect(added).toMatchObject({
      whitelisted: true,
      enabled: true,
      registered: false,
      mintingAvailable: false,
    });
    const { assetId } = added;
    expect(await engine.operator.recordRegistered(assetId)).toMatchObject({ whitelisted: true });
    expect(await engine.assets.get(applicationId, assetId)).toMatchObject({
      enabled: true,
      mintingAvailable: true,
    });
    const told = await all(engine.events.stream(applicationId, { after: sequence }));
    expect(told).toMatchObject([{ type: "asset.enabled", data: { assetId } }]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("of a standard that the contract's version lacks is refused, and the list says why", async ({
    make,
  }) => {
    const settlement = { chainId: 1n, contract: `0x${"ab".repeat(20)}` as const, engineVersion: 4 };
    const { engine, tenant, assets } = await make({ settlement });
    const mint = (assetId: string, text: string | number) =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assetId, text)));
    expect((await refusal(mint(assets.erc20, ""))).code).toBe("standard_not_available");
    expect((await refusal(mint(assets.erc1155, 1))).code).toBe("standard_not_available");
    await mint(assets.erc721, 1);
    const { unavailableReason } = await engine.assets.get(tenant.applicationId, assets.erc20);
    expect(unavailableReason).toContain("engine version 5");
  });

  it("shares its contract with no other asset", async ({ engine }) => {
    const asset = { contractAddress: `0x${"cd".repeat(20)}`, name: "a", symbol: "A" } as const;
    await engine.assets.add({ ...asset, standard: "erc721" });
    const shouted = { ...asset, contractAddress: `0x${"CD".repeat(20)}` } as const;
    expect((await refusal(engine.assets.add({ ...shouted, standard: "erc1155" }))).code).toBe(
      "asset_exists",
    );
    await engine.assets.add({ ...asset, standard: "erc1155", chainId: 5n });
    expect(
      (await refusal(engine.assets.add({ ...asset, chainId: 6n, standard: "erc721", quantum: 2n })))
        .code,
    ).toBe("validation_failed");
  });
});

describe("a user", () => {
  it("keeps its owner for ever, and can be registered again with the same one", async ({
    engine,
    tenant,
  }) => {
    const { applicationId } = tenant;
    const userId = "7D444840-9DC0-11D1-B245-5FFDCE74FAD2";
    const ownerAddress = `0x${"AB".repeat(20)}` as const;
    const user = await engine.users.create(applicationId, { userId, ownerAddress });
    expect(user).toMatchObject({
      userId: userId.toLowerCase(),
      ownerAddress: ownerAddress.toLowerCase(),
    });
    expect(await engine.users.create(applicationId, { userId, ownerAddress })).toEqual(user);
    const thief = { userId, ownerAddress: `0x${"ef".repeat(20)}` as const };
    expect((await refusal(engine.users.create(applicationId, thief))).code).toBe("user_exists");
    const burnt = { ownerAddress: `0x${"00".repeat(20)}` as const };
    expect((await refusal(engine.users.create(applicationId, burnt))).code).toBe(
      "validation_failed",
    );
  });
});
