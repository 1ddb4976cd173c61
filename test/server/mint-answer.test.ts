import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { MODES } from "../../core/index.ts";
import { BufferPool } from "../../server/http/wire/buffers.ts";
import { mintAnswer, mintToWire } from "../../server/routes/mint-answer.ts";
import { createWorld, OWNER } from "./fixture.ts";

const KEY = `0x${"2a".repeat(32)}` as const;
const hex = (text: string) => Buffer.from(text).toString("hex");

/**
 * The name of an ERC-721 or ERC-1155 token: short decimals, long ones, and other text; of few
 * tokens, so that some occur again.
 */
const name = fc.oneof(
  fc.nat({ max: 3 }).map(String),
  fc.bigInt({ min: 0n, max: 10n ** 80n }).map(String),
  fc.string({ minLength: 1, maxLength: 100, unit: "grapheme-ascii" }),
);
const amount = fc.oneof(
  fc.integer({ min: 1, max: 3 }),
  fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String),
);
const mode = fc.constantFrom(...MODES);
const entry = fc.oneof(
  fc.record({ token: fc.constantFrom("erc20" as const, "gold" as const), mode, amount }),
  fc.record({ token: fc.constant("erc1155" as const), mode, amount, name }),
  fc.record({
    token: fc.constantFrom("erc721" as const, "framed" as const),
    mode,
    amount: fc.constant(1),
    name,
  }),
);
const requests = fc.array(fc.array(entry, { minLength: 1, maxLength: 12 }), {
  minLength: 1,
  maxLength: 3,
});

test.each([
  ["with a receipt", privateKeyToAccount(KEY)],
  ["without", undefined],
])("an answer's bytes, %s, are those of the plain objects", async (_, receiptSigner) => {
  let now = 1_700_000_000_000;
  await using world = await createWorld({
    clock: () => ++now,
    limits: { batchVaults: { validium: 7, "zk-rollup": 7 } },
    ...(receiptSigner && { receiptSigner }),
  });
  const { engine, applicationId, key, erc20, erc721, erc1155 } = world;
  // Names are any text, and amounts have decimals.
  const gold = await engine.assets.add({
    standard: "erc20",
    decimals: 18,
    quantum: 10n ** 16n,
    contractAddress: `0x${"f8".repeat(20)}`,
    name: `Gold "24k" \\ 金貨 🪙`,
    symbol: "Ǧ£💰",
  });
  const framed = await engine.assets.add({
    standard: "erc721",
    mintingBlobScheme: "imx",
    contractAddress: `0x${"f7".repeat(20)}`,
    name: "Framed",
    symbol: "FRM",
  });
  for (const { assetId } of [gold, framed]) {
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId, { minterLocked: true });
    await engine.assets.enable(applicationId, assetId);
  }
  const assetIds = {
    erc20: erc20.assetId,
    gold: gold.assetId,
    erc721: erc721.assetId,
    erc1155: erc1155.assetId,
    framed: framed.assetId,
  };
  const { userId: third } = await engine.users.create(applicationId, { ownerAddress: OWNER });
  const principal = await engine.keys.authenticate(key);
  const buffers = new BufferPool();
  let tokens = 0;
  const mintingBlobOf = (of: typeof entry extends fc.Arbitrary<infer E> ? E : never): string => {
    if (!("name" in of)) return "";
    if (of.token === "erc1155") return hex(of.name);
    // No token twice: the first seven digits are its own.
    const own = 1_000_000 + ++tokens;
    return hex(of.token === "framed" ? `{${own}}:{${of.name}}` : `${own}${of.name}`);
  };
  await fc.assert(
    fc.asyncProperty(requests, async (mintsOfUsers) => {
      const users = mintsOfUsers.map((mints, i) => ({
        userId: [...world.users, third][i],
        mints: mints.map((of) => ({
          assetId: assetIds[of.token],
          mintingBlob: mintingBlobOf(of),
          amount: of.amount,
          dataAvailabilityMode: of.mode,
        })),
      }));
      const result = await engine.mint(principal, { users } as unknown);
      const plain = JSON.stringify(await mintToWire(result));
      // Both results are written: the accepted one from columns, and the one that is read later
      // from objects.
      for (const of of [result, await engine.mints.get(applicationId, result.mintId)]) {
        const { body, sent } = await mintAnswer(of, buffers, async () => {});
        expect(String(body)).toBe(of === result ? plain : JSON.stringify(await mintToWire(of)));
        sent?.();
      }
    }),
    { numRuns: 100 },
  );
});

test("a long answer waits for a turn between its pieces", async () => {
  await using world = await createWorld();
  const { engine, erc721, users, key } = world;
  const mints = Array.from({ length: 4_500 }, (_, i) => ({
    assetId: erc721.assetId,
    mintingBlob: hex(`${i}`),
    amount: 1,
    dataAvailabilityMode: "validium",
  }));
  const result = await engine.mint(await engine.keys.authenticate(key), {
    users: [{ userId: users[0], mints }],
  } as unknown);
  let turns = 0;
  const { body } = await mintAnswer(result, new BufferPool(), async () => void turns++);
  expect(String(body)).toBe(JSON.stringify(await mintToWire(result)));
  expect(turns).toBe(3);
});
