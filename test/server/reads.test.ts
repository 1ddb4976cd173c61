import { keccak256, toHex } from "viem";
import { afterAll, describe, expect, test } from "vitest";
import { HOME, made } from "../core/engine/l1-fixture.ts";
import { type Answer, createWorld, entries, OWNER, refusal } from "./fixture.ts";

const world = await createWorld();
const [first, second] = world.users;
const answers = [];
for (const [n, userId] of [first, first, second].entries()) {
  const body = { users: [{ userId, mints: entries(world, n) }] };
  answers.push((await world.send("POST", "/api/v1/mint", { body })).body);
  if (n === 1) await world.engine.operator.seal("validium");
}
/** Answers of three mints: two of the first user, one of the second. */
const mints: readonly Answer["body"][] = answers;
const theirs = { users: [{ userId: world.otherUser, mints: entries(world, 99).slice(0, 2) }] };
await world.send("POST", "/api/v1/mint", { body: theirs, key: world.otherKey });
afterAll(() => world[Symbol.asyncDispose]());

const get = (path: string, key?: string | null) =>
  world.send("GET", path, key === undefined ? {} : { key });
const pick = (answer: Answer, field: string) =>
  answer.body.data.map((entry: Record<string, unknown>) => entry[field]);

describe("a query", () => {
  test.each([
    ["/api/v1/transactions?userid=1&status=done", ["/query/status", "/query/userid"]],
    ["/api/v1/transactions?limit=0", ["/query/limit"]],
    ["/api/v1/transactions?limit=101", ["/query/limit"]],
    ["/api/v1/transactions?limit=1e1", ["/query/limit"]],
    ["/api/v1/transactions?limit=5&limit=6", ["/query/limit"]],
    ["/api/v1/transactions?createdAfter=2020-01-01", ["/query/createdAfter"]],
    ["/api/v1/transactions?vaultId=18446744073709551616", ["/query/vaultId"]],
    ["/api/v1/transactions?batchId=validium", ["/query/batchId"]],
    ["/api/v1/assets?assetType=erc777", ["/query/assetType"]],
    ["/api/v1/assets?enabled=yes", ["/query/enabled"]],
    ["/api/v1/vaults?cursor=", ["/query/cursor"]],
    ["/api/v1/limits?x", ["/query/x"]],
    ["/api/v1/users/not-a-uuid/vaults?mode=validium", ["/path/userId", "/query/mode"]],
    ["/api/v1/state?__proto__=1", ["/query/__proto__"]],
    ["/api/v1/users?__proto__=1", ["/query/__proto__"]],
  ])("%s is refused", async (path, pointers) => {
    const { status, code, errors } = refusal(await get(path));
    expect({ status, code }).toEqual({ status: 400, code: "validation_failed" });
    expect(errors.toSorted()).toEqual(pointers.map((pointer) => `${pointer} validation_failed`));
  });
});

describe("assets", () => {
  test("are enabled and disabled by the application for itself", async () => {
    const path = `/api/v1/assets/${world.erc1155.assetId}`;
    expect((await get(path, world.otherKey)).body).toMatchObject({
      enabled: false,
      mintingAvailable: false,
    });
    const enabled = await world.send("PUT", `${path}/enablement`, { key: world.otherKey });
    expect(enabled.body).toMatchObject({
      enabled: true,
      mintingAvailable: true,
      unavailableReason: null,
    });
    await world.send("DELETE", `${path}/enablement`, { key: world.otherKey });
    expect((await get(path, world.otherKey)).body.enabled).toBe(false);
    expect((await get(path)).body.enabled).toBe(true);
  });

  test("that are not whitelisted cannot be enabled", async () => {
    const contractAddress = `0x${"ab".repeat(20)}` as const;
    const { assetId } = await world.engine.assets.add({
      standard: "erc20",
      contractAddress,
      name: "New",
      symbol: "NEW",
    });
    const answer = await world.send("PUT", `/api/v1/assets/${assetId}/enablement`);
    expect(refusal(answer)).toMatchObject({ status: 409, code: "asset_not_whitelisted" });
  });
});

describe("users", () => {
  test("are registered once with an owner that never changes", async () => {
    const userId = crypto.randomUUID();
    const create = (ownerAddress: string) =>
      world.send("POST", "/api/v1/users", { body: { userId, ownerAddress } });
    const first = await create(OWNER.toUpperCase().replace("0X", "0x"));
    expect(first.body).toMatchObject({ userId, ownerAddress: OWNER });
    expect(first.headers.location).toBe(`/api/v1/users/${userId}`);
    expect((await create(OWNER)).body).toEqual(first.body);
    expect(refusal(await create(`0x${"99".repeat(20)}`))).toMatchObject({
      status: 409,
      code: "user_exists",
    });
    expect((await get(`/api/v1/users/${userId}`)).body).toEqual(first.body);
    expect(pick(await get("/api/v1/users"), "userId")).toContain(userId);
  });

  test.each([
    [{}, ["/ownerAddress"]],
    [{ ownerAddress: `0x${"00".repeat(20)}` }, ["/ownerAddress"]],
    [{ ownerAddress: "0x12", userId: "1", name: "x" }, ["/name", "/ownerAddress", "/userId"]],
    [[], [""]],
  ])("%j is refused", async (body, pointers) => {
    const { status, errors } = refusal(await world.send("POST", "/api/v1/users", { body }));
    expect(status).toBe(400);
    expect(errors.toSorted()).toEqual(pointers.map((pointer) => `${pointer} validation_failed`));
  });

  test("have vaults and balances", async () => {
    const [userId] = world.users;
    const vaults = await get(`/api/v1/users/${userId}/vaults`);
    expect(vaults.body.data).toHaveLength(4);
    expect(vaults.body).toEqual((await get(`/api/v1/vaults?userId=${userId}`)).body);
    const { body } = await get(`/api/v1/users/${userId}/balances`);
    expect(body.data).toContainEqual({
      assetId: world.erc20.assetId,
      name: "Token erc20",
      symbol: "ERC20",
      quantum: "1",
      decimals: 0,
      tokenId: null,
      mintingBlob: "0x",
      amount: "500",
      amountDecimal: "500",
      available: "500",
      withdrawn: "0",
    });
    const first = await get(`/api/v1/users/${userId}/balances?limit=1`);
    expect(first.body).toMatchObject({
      data: [body.data[0]],
      pagination: { hasMore: true, limit: 1 },
    });
    const rest = await get(
      `/api/v1/users/${userId}/balances?cursor=${first.body.pagination.nextCursor}`,
    );
    expect([...first.body.data, ...rest.body.data]).toEqual(body.data);
  });
});

describe("pages", () => {
  test("a cursor is bound to its filters and its application, and cannot be forged", async () => {
    const { nextCursor } = (await get("/api/v1/transactions?limit=1")).body.pagination;
    const forged = nextCursor.slice(0, -2) + (nextCursor.endsWith("AA") ? "BB" : "AA");
    const uses = [
      await get(`/api/v1/transactions?limit=1&type=mint&cursor=${nextCursor}`),
      await get(`/api/v1/vaults?limit=1&cursor=${nextCursor}`),
      await get(`/api/v1/transactions?limit=1&cursor=${nextCursor}`, world.otherKey),
      await get(`/api/v1/transactions?limit=1&cursor=${forged}`),
      await get(`/api/v1/transactions?limit=1&cursor=x`),
    ];
    for (const answer of uses)
      expect(refusal(answer)).toMatchObject({ status: 400, code: "cursor_invalid" });
  });
});

describe("batches, proofs and state", () => {
  const BOTH = ["/api/v1", "/public/v1"];

  test.each(BOTH)("%s/batches: list, one, data", async (root) => {
    expect(pick(await get(`${root}/batches`), "batchId").toSorted()).toEqual([
      "validium-0",
      "validium-1",
      "zk-rollup-0",
    ]);
    expect(pick(await get(`${root}/batches?mode=zk-rollup`), "batchId")).toEqual(["zk-rollup-0"]);
    const { body } = await get(`${root}/batches/validium-0`);
    expect(body).toMatchObject({ vaultCount: 2, status: "sealed", l1TxHash: null });
    const data = await get(`${root}/batches/validium-0/data`);
    expect(data.headers["content-type"]).toBe("application/octet-stream");
    expect(keccak256(data.body)).toBe(body.dataHash);
    expect(refusal(await get(`${root}/batches/zk-rollup-0/data`))).toMatchObject({
      status: 409,
      code: "proof_not_ready",
    });
    for (const path of ["validium-7", "zk-rollup-9999999999", "validium-7/data"]) {
      expect(refusal(await get(`${root}/batches/${path}`))).toMatchObject({
        status: 404,
        code: "batch_not_found",
      });
    }
  });

  test.each(BOTH)("%s/vaults/{vaultId}/proof", async (root) => {
    const [sealed, open] = mints[0].vaults;
    const { body } = await get(`${root}/vaults/${sealed.vaultId}/proof`);
    expect(body).toMatchObject({
      vaultCount: 2,
      header: null,
      vault: { owner: OWNER, amount: "500" },
    });
    expect(refusal(await get(`${root}/vaults/${open.vaultId}/proof`))).toMatchObject({
      status: 409,
      code: "proof_not_ready",
    });
    for (const id of ["18446744073709551615", "5242880", "99"]) {
      expect(refusal(await get(`${root}/vaults/${id}/proof`))).toMatchObject({
        status: 404,
        code: "vault_not_found",
      });
    }
  });

  test.each(BOTH)("%s/state", async (root) => {
    const { body } = await get(`${root}/state`);
    const state = world.engine.batches.state();
    expect(body.sealed).toEqual(state);
    expect(body.committed).toMatchObject({ countValidium: 0, countRollup: 0 });
    expect(body).toMatchObject({ chainId: "31337", engineVersion: 5 });
  });

  test("public reads need no key and show nothing of tenants", async () => {
    const [{ vaultId }] = mints[0].vaults;
    const paths = ["/batches", "/batches/validium-0", `/vaults/${vaultId}/proof`, "/state"];
    const answers = await Promise.all(paths.map((path) => get(`/public/v1${path}`, null)));
    const shown = answers.map(({ text }) => text).join();
    const secrets = [
      world.applicationId,
      world.otherApplicationId,
      ...world.users,
      world.otherUser,
      world.keyId,
    ];
    for (const secret of [...secrets, ...mints.map(({ mintId }) => mintId)])
      expect(shown).not.toContain(secret);
    expect(shown).not.toMatch(/mintCount|userId|applicationId/);
  });
});

test("another application's things are not found", async () => {
  const [{ vaultId }] = mints[0].vaults;
  const [{ transactionId }] = mints[0].transactions;
  const paths = [
    `/api/v1/users/${world.users[0]}`,
    `/api/v1/users/${world.users[0]}/vaults`,
    `/api/v1/users/${world.users[0]}/balances`,
    `/api/v1/vaults/${vaultId}`,
    `/api/v1/vaults/${vaultId}/proof`,
    `/api/v1/transactions/${transactionId}`,
    `/api/v1/mints/${mints[0].mintId}`,
    `/api/v1/withdrawals/${crypto.randomUUID()}`,
    `/api/v1/assets/${crypto.randomUUID()}`,
  ];
  for (const path of paths) {
    const { status, code } = refusal(await get(path, world.otherKey));
    expect({ path, status, code }).toEqual({
      path,
      status: 404,
      code: expect.stringMatching(/_not_found$/),
    });
  }
  const lists = ["transactions", "vaults", "users"].map((name) =>
    get(`/api/v1/${name}`, world.otherKey),
  );
  const shown = (await Promise.all(lists)).map(({ text }) => text).join();
  for (const own of [...world.users, mints[0].mintId]) expect(shown).not.toContain(own);
});

describe("deposits", () => {
  test("are listed page by page, newest first, and to their application alone", async () => {
    const { engine, erc20, erc721 } = world;
    const units = {
      owner: OWNER,
      assetType: erc20.assetType,
      amount: 7n,
      mintingBlob: "0x",
    } as const;
    const token = {
      owner: OWNER,
      assetType: erc721.assetType,
      amount: 1n,
      mintingBlob: toHex("900"),
    };
    const makings = [made(1, [units], 5n), made(2, [token], 6n, 900n)];
    await engine.operator.recordEvents(HOME, makings, 9n, { fromBlock: 0n, finalized: 9n });

    const newest = await get("/api/v1/deposits?limit=1");
    expect(newest.body.data).toMatchObject([
      {
        vaultId: `${(1n << 62n) | (2n << 20n)}`,
        userId: first,
        ownerAddress: OWNER,
        assetId: erc721.assetId,
        tokenId: "900",
        amount: "1",
        l1BlockNumber: "6",
      },
    ]);
    const { nextCursor } = newest.body.pagination;
    const next = await get(`/api/v1/deposits?limit=1&cursor=${nextCursor}`);
    expect(next.body).toMatchObject({
      data: [{ assetId: erc20.assetId, tokenId: null, amount: "7" }],
      pagination: { hasMore: false },
    });
    const ofAsset = await get(`/api/v1/deposits?assetId=${erc20.assetId}`);
    expect(ofAsset.body.data).toEqual(next.body.data);

    const byOther = await get("/api/v1/deposits", world.otherKey);
    expect([byOther.status, byOther.body.data]).toEqual([200, []]);
    const cursorOfOther = await get(
      `/api/v1/deposits?limit=1&cursor=${nextCursor}`,
      world.otherKey,
    );
    expect(refusal(cursorOfOther)).toMatchObject({ status: 400, code: "cursor_invalid" });
    const { code, errors } = refusal(await get("/api/v1/deposits?owner=1"));
    expect([code, errors]).toEqual(["validation_failed", ["/query/owner validation_failed"]]);
  });
});
