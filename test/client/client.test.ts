import { afterEach, beforeEach, describe, expect, expectTypeOf, test, vi } from "vitest";
import { takesIdempotencyKey as clientGivesKey } from "../../server/client/client.ts";
import type { MintmarkClient, MintRequest, Vault } from "../../server/client/index.ts";
import { ApiError, answer, createClient, mint } from "../../server/client/index.ts";
import { takesIdempotencyKey } from "../../server/routes/api/endpoint.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { createWorld, entries, type World, type WorldOptions } from "../server/fixture.ts";

type Fetch = typeof globalThis.fetch;

/** A world whose server listens, and a client of it; `through` stands between the two. */
async function listen(
  options: WorldOptions = {},
  through: (fetch: Fetch) => Fetch = (fetch) => fetch,
) {
  const world = await createWorld(options);
  const baseUrl = await world.app.listen({ host: "127.0.0.1", port: 0 });
  const client = createClient({ baseUrl, apiKey: world.key, fetch: through(globalThis.fetch) });
  return { world, baseUrl, client };
}

describe("the client", () => {
  let world: World;
  let baseUrl: string;
  let client: MintmarkClient;
  const attempts: Request[] = [];
  /** The next attempts meet these instead of, or after, the server. */
  const faults: ((request: Request) => Promise<Response>)[] = [];

  beforeEach(async () => {
    attempts.length = 0;
    faults.length = 0;
    ({ world, baseUrl, client } = await listen({}, (fetch) => async (input) => {
      const request = input as Request;
      attempts.push(request.clone());
      return (faults.shift() ?? fetch)(request);
    }));
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const request = (n: number): MintRequest => ({
    users: [
      { userId: world.users[0], mints: entries(world, n) as MintRequest["users"][number]["mints"] },
    ],
  });
  const lostAnswer = async (request: Request) => {
    await (await fetch(request)).text();
    throw new TypeError("fetch failed");
  };
  const mintsMade = async () =>
    (await world.engine.transactions.list(world.applicationId, { limit: 100 })).data.length;

  test("sends a key to exactly the routes that accept one", () => {
    for (const endpoint of ENDPOINTS) {
      const { method, path } = endpoint;
      expect(clientGivesKey(method, path), `${method} ${path}`).toBe(takesIdempotencyKey(endpoint));
    }
  });

  test("mints, with typed responses", async () => {
    const reply = await mint(client, request(1));
    expectTypeOf(reply.vaults).toEqualTypeOf<Vault[]>();
    expect(reply.vaults.map(({ amount }) => BigInt(amount))).toEqual([250n, 1n, 3n]);
    expect(attempts[0]?.headers.get("x-api-key")).toBe(world.key);
  });

  test("returns an error as a typed value, or throws it with its code", async () => {
    const body = { users: [] };
    const { data, error, response } = await client.POST("/api/v1/mint", { body });
    expect([data, response.status]).toEqual([undefined, 400]);
    if (error?.code === "rate_limited") throw new Error("not this one");
    expectTypeOf(error?.errors).toEqualTypeOf<
      { pointer: string; code: string; detail: string }[] | undefined
    >();
    expect(error?.code).toBe("validation_failed");
    const refusal = await mint(client, body).catch((thrown: unknown) => thrown);
    expect(refusal).toBeInstanceOf(ApiError);
    expect((refusal as ApiError).code).toBe("validation_failed");
    expect((refusal as ApiError).message).toContain("/users");
  });

  test("retries a mint after a lost response with the same idempotency key, and it happens once", async () => {
    faults.push(lostAnswer, lostAnswer);
    const { transactions } = await mint(client, request(1));
    expect(attempts.length).toBeGreaterThanOrEqual(3);
    expect(new Set(attempts.map(({ headers }) => headers.get("idempotency-key"))).size).toBe(1);
    expect(await mintsMade()).toBe(transactions.length);
    await mint(client, request(2));
    expect(await mintsMade()).toBe(2 * transactions.length);
  });

  test("repeats every POST that takes an idempotency key, and it happens once", async () => {
    faults.push(lostAnswer);
    const user = await answer(
      client.POST("/api/v1/users", { body: { ownerAddress: `0x${"72".repeat(20)}` } }),
    );
    expect(attempts).toHaveLength(2);
    const { data } = await answer(client.GET("/api/v1/users"));
    expect(data.filter(({ ownerAddress }) => ownerAddress === user.ownerAddress)).toEqual([user]);
  });

  test("does not retry a POST without one", async () => {
    faults.push(lostAnswer);
    const call = client.POST("/owner/v1/challenge", { body: { address: `0x${"72".repeat(20)}` } });
    await expect(call).rejects.toThrow("fetch failed");
    expect(attempts).toHaveLength(1);
  });

  test("retries when a server is shutting down, and finds its successor", async () => {
    await using old = await createWorld();
    const oldUrl = await old.app.listen({ host: "127.0.0.1", port: 0 });
    old.app.drain();
    const toOld = (request: Request) =>
      fetch(new Request(request.url.replace(baseUrl, oldUrl), request));
    faults.push(toOld, toOld);
    expect((await answer(client.GET("/api/v1/limits"))).usersPerRequest).toBe(100);
    expect(attempts).toHaveLength(3);
  });

  test("returns the readiness probe's 503, and the error of the last retry", async () => {
    world.app.drain();
    expect((await client.GET("/readyz")).response.status).toBe(503);
    expect(attempts).toHaveLength(1);
    const impatient = createClient({ baseUrl, apiKey: world.key, retries: 1 });
    const { error } = await impatient.GET("/api/v1/limits");
    expect(error?.code).toBe("shutting_down");
    const lasting = vi.fn(async () => Response.json({ code: "history_diverged" }, { status: 503 }));
    await createClient({ baseUrl, apiKey: world.key, fetch: lasting }).GET("/api/v1/limits");
    expect(lasting).toHaveBeenCalledTimes(1);
  });
});

describe("the client, over its rate", () => {
  const rateLimits = { key: { units: 2, windowSeconds: 1 } };

  test("waits for Retry-After, up to its limit", async () => {
    const { world, client, baseUrl } = await listen({ rateLimits });
    await using _ = world;
    for (let n = 0; n < 4; n++)
      expect((await client.GET("/api/v1/limits")).response.status).toBe(200);
    const impatient = createClient({ baseUrl, apiKey: world.key, maxWaitMs: 0 });
    // At once, so that a slow machine does not earn new units meanwhile.
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => impatient.GET("/api/v1/limits")),
    );
    expect(answers.map(({ response }) => response.status)).toContain(429);
  });

  test("stops waiting when its signal is aborted", async () => {
    const { world, client } = await listen({
      rateLimits: { key: { units: 1, windowSeconds: 20 } },
    });
    await using _ = world;
    const stopping = new AbortController();
    await client.GET("/api/v1/limits");
    const waiting = client.GET("/api/v1/limits", { signal: stopping.signal });
    world.app.server.once("request", (_request, response) =>
      response.once("finish", () => stopping.abort(new Error("enough"))),
    );
    await expect(waiting).rejects.toThrow();
  });
});
