import { afterAll, expect, test } from "vitest";
import { readSettings } from "../../server/process/settings/config.ts";
import { settings } from "../../server/process/settings/settings.ts";
import { createWorld } from "./fixture.ts";

const world = await createWorld();
afterAll(() => world[Symbol.asyncDispose]());

const detailOf = async (...asked: Parameters<typeof world.send>) =>
  (await world.send(...asked)).body.detail as string;
const minting = (entry: object) =>
  detailOf("POST", "/api/v1/mint", {
    body: {
      users: [
        {
          userId: world.users[0],
          mints: [{ assetId: world.erc20.assetId, dataAvailabilityMode: "validium", ...entry }],
        },
      ],
    },
  });

test.each([
  [{ amount: 1.5 }, "amountDecimal"],
  [{ amount: "1.5" }, "amountDecimal"],
  [{ amount: 0 }, "must be at least 1"],
  [{ amount: "0" }, "must be at least 1"],
  [{ amount: -5 }, "must be at least 1"],
  [{ amount: "-5" }, "must be at least 1"],
  [{ amount: "0007" }, "leading zeros"],
  [{ tokenId: "0007", amount: 1 }, "leading zeros"],
  [{ amount: "9223372036854775808" }, "at most 2^63 - 1"],
  [{ amountDecimal: "-5" }, "positive"],
  [{ amountDecimal: "0" }, "must be from 1 to"],
])("the detail of a mint of %j says what it breaks", async (entry, words) => {
  expect(await minting(entry)).toContain(words);
});

test("the first fault stands in the detail", async () => {
  expect(await detailOf("GET", "/api/v1/users?limit=0")).toBe(
    "query/limit: Give a whole number from 1 to 100.",
  );
});

test("each fault of a key has its own sentence", async () => {
  const { key, secret } = await world.engine.keys.issue(world.applicationId);
  await world.engine.keys.revoke(key.keyId);
  const sentences = await Promise.all(
    [
      secret,
      world.key.slice(0, -1),
      world.key.replace("mm_test_", "mm_live_"),
      (await createWorld()).key,
    ].map((sent) => detailOf("GET", "/api/v1/users", { key: sent })),
  );
  expect(sentences).toEqual([
    expect.stringContaining("has been revoked"),
    expect.stringContaining("incomplete or mistyped"),
    expect.stringContaining("another environment"),
    expect.stringContaining("knows no such"),
  ]);
});

test.each([
  ["GET", "/api/v1/transaction", "GET /api/v1/transactions."],
  ["GET", "/api/v2/users/018f/vaults?limit=1", "GET /api/v1/users/{userId}/vaults."],
  ["POST", "/v1/mint", "POST /api/v1/mint."],
  ["DELETE", "/api/v1/batchs", "GET /api/v1/batches."],
  ["GET", "/favicon.ico", "lists all routes."],
] as const)(
  "the unknown route %s %s names the nearest, if one is near",
  async (method, path, end) => {
    expect((await detailOf(method, path)).endsWith(end)).toBe(true);
  },
);

test.each([
  ["a".repeat(100)],
  ["b".repeat(16_000)],
  ["c/".repeat(99)],
  ["api/v1/users/users/users/users/users/users/users"],
])("no route is named for a path like none", async (path) => {
  expect(await detailOf("GET", `/${path}`)).not.toContain("nearest");
});

test.each([
  ["wss://rpc.example", "a WebSocket's address"],
  ["", "empty. Remove it"],
])("MINTMARK_RPC_URL=%s is told as what it is", (given, words) => {
  expect(() => readSettings(settings, { MINTMARK_RPC_URL: given })).toThrow(words);
});
