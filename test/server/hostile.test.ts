import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { conform, createWorld, entries, type World } from "./fixture.ts";

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

const hostileText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "__proto__",
    "constructor",
    "toString",
    "\u0000",
    "0x",
    "0x0",
    "-1",
    "1e1000",
    "9223372036854775808",
    "💥",
    "%00",
  ),
);

const hostileNumber = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.constantFrom(0, -0, 1, 2 ** 53 - 1, 5e-324),
);

/** A body like a right one, of which any part may be something else. */
function nearMint(): fc.Arbitrary<unknown> {
  const { erc20, erc721, erc1155 } = world;
  const mostly = <T>(right: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: fc.jsonValue() });
  const mint = fc.record(
    {
      mintingBlob: mostly(fc.oneof(fc.constant(""), fc.stringMatching(/^[0-9a-f]{0,12}$/), hostileText)),
      assetId: mostly(
        fc.oneof(fc.constantFrom(erc20.assetId, erc721.assetId, erc1155.assetId), fc.uuid(), hostileText),
      ),
      amount: mostly(fc.oneof(fc.constantFrom(1, "1", "9223372036854775807"), hostileNumber, hostileText)),
      dataAvailabilityMode: mostly(fc.constantFrom("validium", "zk-rollup")),
    },
    { requiredKeys: ["assetId", "amount"] },
  );
  const user = fc.record({
    userId: mostly(fc.oneof(fc.constantFrom(...world.users, world.otherUser), fc.uuid())),
    mints: mostly(fc.array(mostly(mint), { maxLength: 4 })),
  });
  return mostly(fc.record({ users: mostly(fc.array(mostly(user), { maxLength: 5 })) }));
}

test("any JSON to the mint route is minted or refused as documented", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(nearMint(), fc.jsonValue()), async (body) => {
      const { status } = await world.send("POST", "/api/v1/mint", { body });
      expect(status).toBeLessThan(500);
    }),
    { numRuns: RUNS },
  );
  expect(await world.engine.verify()).toMatchObject({ problems: [] });
});

test("any bytes to the mint route are refused as documented", async () => {
  const right = JSON.stringify({ users: [{ userId: world.users[0], mints: entries(world, 1) }] });
  // A right body with a few bytes changed, removed or put in.
  const damage = fc.array(fc.tuple(fc.nat(right.length), fc.nat(2), fc.string({ unit: "binary", maxLength: 3 })), {
    maxLength: 3,
  });
  const damaged = damage.map((cuts) => {
    return Buffer.from(cuts.reduce((text, [at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut), right));
  });
  const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
  await fc.assert(
    fc.asyncProperty(fc.oneof(damaged, bytes), async (raw) => {
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
