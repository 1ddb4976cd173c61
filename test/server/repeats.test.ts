import { describe, expect, it } from "vitest";
import { buildServer } from "../../server/app.ts";
import { createWorld, refusal } from "./fixture.ts";

const OWNER = "0x52908400098527886E0F7030069857D2E4169EE7";
const MIXED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

const USER = "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a10";
const OTHER = "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a11";

describe("an Idempotency-Key", () => {
  it("has every POST done once: the same status and body again", async () => {
    await using world = await createWorld();
    const headers = { "idempotency-key": "order-1" };
    const body = { ownerAddress: OWNER };
    const first = await world.send("POST", "/api/v1/users", { body, headers });
    const again = await world.send("POST", "/api/v1/users", { body, headers });
    expect([again.status, again.body, again.headers.location]).toEqual([
      201,
      first.body,
      first.headers.location,
    ]);
    expect(again.headers["idempotency-replayed"]).toBe("true");
    const other = await world.send("POST", "/api/v1/users", {
      body: { ownerAddress: MIXED },
      headers,
    });
    expect(refusal(other)).toMatchObject({ status: 422, code: "idempotency_key_reused" });
    const hook = {
      body: { url: "https://example.com/hook" },
      headers: { "idempotency-key": "hook" },
    };
    const made = await world.send("POST", "/api/v1/webhooks", hook);
    expect((await world.send("POST", "/api/v1/webhooks", hook)).body).toEqual(made.body);
    expect((await world.send("GET", "/api/v1/webhooks")).body.data).toHaveLength(1);
    // Another application's key is another key.
    const theirs = await world.send("POST", "/api/v1/users", {
      body,
      headers,
      key: world.otherKey,
    });
    expect(theirs.body.userId).not.toBe(first.body.userId);
  });

  it("is kept whatever another application sends", async () => {
    const rich = { units: 1e9, windowSeconds: 1 };
    await using world = await createWorld({ rateLimits: { key: rich } });
    const send = (key: string, name: string) =>
      world.app.inject({
        method: "POST",
        url: "/api/v1/users",
        headers: { "x-api-key": key, "idempotency-key": name },
        payload: { ownerAddress: OWNER },
      });
    await send(world.key, "mine");
    for (let i = 0; i < 16_000; i += 500)
      await Promise.all(
        Array.from({ length: 500 }, (_, j) => send(world.otherKey, `theirs ${i + j}`)),
      );
    expect(
      (await send(world.otherKey, "theirs 0")).headers["idempotency-replayed"],
    ).toBeUndefined();
    expect((await send(world.key, "mine")).headers["idempotency-replayed"]).toBe("true");
  });

  it("has many users made once, and refuses another list under the same key", async () => {
    await using world = await createWorld();
    const headers = { "idempotency-key": "customers" };
    const first = await world.send("POST", "/api/v1/users/bulk", {
      body: { users: [{ ownerAddress: OWNER }] },
      headers,
    });
    const other = await world.send("POST", "/api/v1/users/bulk", {
      body: { users: [{ ownerAddress: MIXED }] },
      headers,
    });
    expect(refusal(other)).toMatchObject({ status: 422, code: "idempotency_key_reused" });
    const again = await world.send("POST", "/api/v1/users/bulk", {
      body: { users: [{ ownerAddress: OWNER }] },
      headers,
    });
    expect([again.status, again.body, again.headers["idempotency-replayed"]]).toEqual([
      201,
      first.body,
      "true",
    ]);
    const long = { "idempotency-key": "x".repeat(256) };
    const refused = await world.send("POST", "/api/v1/users/bulk", {
      body: { users: [{ ownerAddress: OWNER }] },
      headers: long,
    });
    expect(refusal(refused).status).toBe(400);
  });

  it.each([
    [
      "/api/v1/users",
      { userId: USER, ownerAddress: OWNER },
      { userId: OTHER, ownerAddress: OWNER },
    ],
    ["/api/v1/users", { ownerAddress: OWNER }, { ownerAddress: OWNER, reference: "x" }],
    [
      "/api/v1/users/bulk",
      { users: [{ ownerAddress: OWNER }] },
      { users: [{ ownerAddress: MIXED }] },
    ],
    ["/api/v1/webhooks", { url: "https://a.example/" }, { url: "https://b.example/" }],
  ])(
    "of %s refuses another body after a restart too, until it is deleted",
    async (url, body, other) => {
      await using world = await createWorld();
      const headers = { "idempotency-key": "one" };
      const refused = { code: "validation_failed" };
      expect((await world.send("POST", url, { body: { no: 1 }, headers })).body).toMatchObject(
        refused,
      );
      expect((await world.send("POST", url, { body, headers })).status).toBe(201);
      const restarted = await buildServer({ engine: world.engine });
      const send = (payload: object) =>
        restarted.inject({
          method: "POST",
          url,
          headers: { "x-api-key": world.key, ...headers },
          payload,
        });
      expect((await send(other)).json()).toMatchObject({ code: "idempotency_key_reused" });
      expect((await send(body)).statusCode).toBe(201);
      // A mint's key is another one.
      expect(await world.engine.operator.forgetIdempotencyKeys(Number.MAX_SAFE_INTEGER)).toBe(1);
      await restarted.close();
      const later = await buildServer({ engine: world.engine });
      const answer = await later.inject({
        method: "POST",
        url: "/api/v1/users/bulk",
        headers: { "x-api-key": world.key, ...headers },
        payload: { users: [{ ownerAddress: MIXED }] },
      });
      expect(answer.statusCode).toBe(201);
      await later.close();
    },
  );

  it("finds the user and the webhook of the first request after a restart", async () => {
    await using world = await createWorld();
    const user = {
      url: "/api/v1/users",
      body: { ownerAddress: OWNER },
      others: [{ ownerAddress: MIXED }, { ownerAddress: OWNER, reference: "another" }],
    };
    const hook = {
      url: "/api/v1/webhooks",
      body: { url: "https://a.example/" },
      others: [{ url: "https://b.example/" }],
    };
    for (const { url, body, others } of [user, hook]) {
      const headers = { "x-api-key": world.key, "idempotency-key": `after a restart ${url}` };
      const first = await world.send("POST", url, { body, headers });
      // Another server over the same engine has none of the first one's memory.
      const restarted = await buildServer({ engine: world.engine });
      const again = await restarted.inject({ method: "POST", url, headers, payload: body });
      expect([again.statusCode, again.json()]).toEqual([201, first.body]);
      if (url === hook.url) expect(again.headers["idempotency-replayed"]).toBe("true");
      await restarted.close();
      for (const other of others) {
        const third = await buildServer({ engine: world.engine });
        const reused = await third.inject({ method: "POST", url, headers, payload: other });
        expect([reused.statusCode, reused.json().code]).toEqual([422, "idempotency_key_reused"]);
        await third.close();
      }
    }
    expect((await world.send("GET", "/api/v1/webhooks")).body.data).toHaveLength(1);
  });

  it("rotates a webhook's secret once, also after a restart, and never returns a superseded secret", async () => {
    await using world = await createWorld();
    const register = () =>
      world.send("POST", "/api/v1/webhooks", { body: { url: "https://a.example/" } });
    const [one, other] = [(await register()).body.webhookId, (await register()).body.webhookId];
    const rotateHere = async (webhookId: string, key: string) => {
      const headers = { "idempotency-key": key };
      const answer = await world.send("POST", `/api/v1/webhooks/${webhookId}/secret`, { headers });
      return { ...answer.body, replayed: answer.headers["idempotency-replayed"] };
    };
    const rotate = async (webhookId: string, key: string) => {
      // Each is asked by a server of its own, which has no memory of the ones before.
      const restarted = await buildServer({ engine: world.engine });
      const headers = { "x-api-key": world.key, "idempotency-key": key };
      const answer = await restarted.inject({
        method: "POST",
        url: `/api/v1/webhooks/${webhookId}/secret`,
        headers,
      });
      await restarted.close();
      return { ...answer.json(), replayed: answer.headers["idempotency-replayed"] };
    };
    const first = await rotate(one, "first");
    expect(await rotate(one, "first")).toEqual({ ...first, replayed: "true" });
    const second = await rotate(one, "second");
    expect([second.secret === first.secret, second.replayed]).toEqual([false, undefined]);
    // The first secret is superseded, so nobody gets it any more.
    for (const server of [rotate, rotateHere]) {
      expect(await server(one, "first")).toMatchObject({
        code: "idempotency_key_reused",
        status: 422,
      });
      expect(await server(one, "second")).toEqual({ ...second, replayed: "true" });
    }
    expect(world.engine.operator.webhooks.secrets(one)).toEqual([second.secret, first.secret]);
    expect((await rotate(other, "first")).code).toBe("idempotency_key_reused");
    expect((await world.engine.operator.verify()).problems).toEqual([]);
  });

  it("does not keep a refusal, and comes once", async () => {
    await using world = await createWorld();
    const headers = { "idempotency-key": "k" };
    expect((await world.send("POST", "/api/v1/users", { body: {}, headers })).status).toBe(400);
    expect(
      (await world.send("POST", "/api/v1/users", { body: { ownerAddress: OWNER }, headers }))
        .status,
    ).toBe(201);
  });
});

describe("an asset that the operator keeps for one application", () => {
  it("does not exist for another", async () => {
    await using world = await createWorld();
    const { engine, applicationId, otherKey } = world;
    const { assetId } = await engine.assets.add({
      standard: "erc20",
      contractAddress: `0x${"ab".repeat(20)}`,
      name: "Reserved",
      symbol: "RSV",
      applicationId,
    });
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId, { minterLocked: true });
    const path = `/api/v1/assets/${assetId}`;
    expect((await world.send("GET", path)).status).toBe(200);
    const listed = await world.send("GET", "/api/v1/assets?symbol=RSV", { key: otherKey });
    expect(listed.body.data).toEqual([]);
    const mint = { mintingBlob: "", assetId, amount: 1, dataAvailabilityMode: "validium" };
    const users = [{ userId: world.otherUser, mints: [mint] }];
    for (const refused of [
      await world.send("GET", path, { key: otherKey }),
      await world.send("PUT", `${path}/enablement`, { key: otherKey }),
      await world.send("DELETE", `${path}/enablement`, { key: otherKey }),
      await world.send("POST", "/api/v1/mint", { key: otherKey, body: { users } }),
    ]) {
      expect(refusal(refused)).toMatchObject({ status: 404, code: "asset_not_found" });
    }
  });
});
