import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { conform, createWorld, entries, type World } from "./fixture.ts";
import { damaged, hostileText, nearMint } from "./hostile-values.ts";

// Whatever is sent, the answer is documented (the fixture checks each one) and never our fault. The heavy suite raises the number of runs.
const RUNS = Number(process.env.MINTMARK_FUZZ_RUNS ?? 300);

let world: World;
beforeAll(async () => {
  const rich = { units: 1_000_000_000, windowSeconds: 1 };
  world = await createWorld({
    limits: { usersPerRequest: 4, mintsPerRequest: 8 },
    rateLimits: { key: rich, failedAuthentication: rich, publicReads: rich },
  });
});
afterAll(() => world[Symbol.asyncDispose]());

test("any JSON to the mint route is minted or refused as documented", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(nearMint(world), fc.jsonValue()), async (body) => {
      const { status } = await world.send("POST", "/api/v1/mint", { body });
      expect(status).toBeLessThan(500);
    }),
    { numRuns: RUNS },
  );
  expect(await world.engine.operator.verify()).toMatchObject({ problems: [] });
});

test("any bytes to the mint route are refused as documented", async () => {
  const right = JSON.stringify({ users: [{ userId: world.users[0], mints: entries(world, 1) }] });
  const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
  await fc.assert(
    fc.asyncProperty(fc.oneof(damaged(right), bytes), async (raw) => {
      expect((await world.send("POST", "/api/v1/mint", { raw })).status).toBeLessThan(500);
    }),
    { numRuns: RUNS },
  );
});

test("any parameters, query, headers and body to any route are answered as documented", async () => {
  const parameter = fc.oneof(
    hostileText,
    fc.uuid(),
    fc.bigInt({ min: 0n, max: 1n << 66n }).map(String),
    fc.constant("validium-0"),
  );
  const names = [
    "limit",
    "cursor",
    "status",
    "assetType",
    "userId",
    "vaultId",
    "batchId",
    "createdAfter",
    "symbol",
    "mode",
    "order",
  ];
  const query = fc.array(fc.tuple(fc.oneof(fc.constantFrom(...names), hostileText), hostileText), { maxLength: 3 });
  const header = fc.tuple(
    fc.constantFrom("idempotency-key", "x-request-id", "authorization", "content-encoding", "accept", "if-none-match"),
    fc.string({ maxLength: 40 }),
  );
  const calls = fc.record({
    endpoint: fc.constantFrom(...ENDPOINTS),
    parameters: fc.array(parameter, { minLength: 1, maxLength: 1 }),
    query,
    header,
    body: fc.jsonValue(),
    key: fc.constantFrom(world.key, world.otherKey, "mm_test_0_0", null),
  });
  await fc.assert(
    fc.asyncProperty(calls, async ({ endpoint, parameters, query, header: [name, value], body, key }) => {
      const { method } = endpoint;
      const path = endpoint.path.replace(/\{\w+\}/, encodeURIComponent((parameters[0] || "x").toWellFormed()));
      const search = query
        .map((pair) => pair.map((text) => encodeURIComponent(text.toWellFormed())).join("="))
        .join("&");
      const response = await world.app.inject({
        method: method as "GET",
        url: search ? `${path}?${search}` : path,
        headers: {
          ...(key !== null && { "x-api-key": key }),
          ...(method === "POST" && { "content-type": "application/json" }),
          [name]: value,
        },
        ...(method === "POST" && { payload: JSON.stringify(body) }),
      });
      expect(response.statusCode).toBeLessThan(500);
      conform(method, path, response);
    }),
    { numRuns: RUNS },
  );
});
