import fc from "fast-check";
import { describe, expect } from "vitest";
import { MintmarkError } from "../../../core/index.ts";
import { NaiveMintReader } from "../naive/naive-mint-reader.ts";
import { knownAsset, mintingBlobOf } from "./fixture.ts";
import { it } from "./it.ts";

/** A few values of each JSON type, and around each bound of a mint's fields. */
const json = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    1,
    -1,
    0.5,
    2 ** 53,
    2 ** 53 - 1,
    1e30,
    "",
    " ",
    "0",
    "1",
    "01",
    "-1",
  ),
  fc.constantFrom<unknown>(
    "1.5",
    "1e3",
    "0x",
    "0x1",
    "0X31",
    "0x3z",
    [],
    {},
    [1],
    { a: 1 },
    "ff".repeat(256),
  ),
  fc.constantFrom<unknown>(
    String(2n ** 63n - 1n),
    String(2n ** 63n),
    String(2n ** 256n - 1n),
    String(2n ** 256n),
  ),
  fc.jsonValue({ maxDepth: 1 }),
);
const mostly = <T>(usual: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 20, arbitrary: usual }, { weight: 1, arbitrary: json });

function bodies(assetIds: readonly string[], userIds: readonly string[]) {
  const id = fc.nat(6).map((number) => (number < 3 ? number : String(number)));
  const mintingBlob = fc.oneof(
    fc.nat(6).map(mintingBlobOf),
    fc.constantFrom("0x6162", "6162", "0X30", "", "0x", "0x3031", "0xc3", "0x00"),
  );
  const token = fc.oneof(
    { weight: 4, arbitrary: fc.record({ tokenId: mostly(id) }) },
    { weight: 3, arbitrary: fc.record({ mintingBlob: mostly(mintingBlob) }) },
    { weight: 3, arbitrary: fc.record({ quantity: mostly(fc.integer({ min: 1, max: 101 })) }) },
    { weight: 4, arbitrary: fc.constant({}) },
    fc.record({ tokenId: id, mintingBlob }),
  );
  const amount = fc.oneof(
    { weight: 6, arbitrary: fc.record({ amount: mostly(fc.constantFrom<unknown>(1, "1", 5)) }) },
    {
      weight: 2,
      arbitrary: fc.record({ amountDecimal: mostly(fc.constantFrom("7", "7.0", "7.5", "0")) }),
    },
    { weight: 2, arbitrary: fc.constant({}) },
  );
  const assetId = fc.oneof(
    fc.constantFrom(...assetIds),
    fc.constantFrom(...assetIds.map((one) => one.toUpperCase())),
  );
  const rest = fc.record(
    { reference: mostly(fc.constant("order 7")), colour: json, __proto: json },
    { requiredKeys: [] },
  );
  const named = fc.record({
    assetId: mostly(assetId),
    dataAvailabilityMode: mostly(fc.constantFrom("validium", "zk-rollup", "ZK_ROLLUP")),
  });
  const fields = fc.tuple(
    named,
    token,
    amount,
    fc.oneof({ weight: 9, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: rest }),
  );
  const entry = mostly(fields.map((parts): unknown => Object.assign({}, ...parts)));
  const entries = fc.array(entry, { minLength: 1, maxLength: 3 });
  const userId = fc.oneof(
    fc.constantFrom(...userIds),
    fc.constantFrom(...userIds.map((one) => one.toUpperCase())),
  );
  const user = mostly(fc.record({ userId: mostly(userId), mints: mostly(entries) }));
  const users = fc.oneof(
    { weight: 4, arbitrary: user.map((one) => [one]) },
    fc.array(user, { minLength: 1, maxLength: 3 }),
  );
  return mostly(fc.record({ users: mostly(users) }));
}

/** The error's code and all issues in order; null for success. */
async function refusalOf(attempt: Promise<unknown>): Promise<unknown> {
  try {
    await attempt;
    return null;
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    return {
      code: error.code,
      message: error.message,
      issues: error.issues,
      more: error.moreIssues,
    };
  }
}

describe("a mint request of any JSON", () => {
  it("is refused by the mint and its dry run for the same reasons, or accepted by both, as a naive reader says", async ({
    make,
  }) => {
    const { engine, tenant, assets } = await make({ limits: { mintsPerRequest: 100 } });
    const numbered = await engine.assets.add({
      ...{
        standard: "erc721",
        contractAddress: `0x${"cc".repeat(20)}`,
        name: "N",
        symbol: "N",
        firstTokenId: 7n,
      },
      applicationId: tenant.applicationId,
    });
    await engine.operator.recordRegistered(numbered.assetId);
    const userIds = tenant.users.map(({ userId }) => userId);
    const disabled = await knownAsset(engine, "erc20");
    const reader = new NaiveMintReader(
      {
        ...Object.fromEntries(
          Object.entries(assets).map(([standard, id]) => [id, { standard } as never]),
        ),
        [numbered.assetId]: { standard: "erc721", isNumbered: true },
      },
      userIds,
    );
    let accepted = 0;
    const property = async (body: unknown) => {
      const dry = await refusalOf(engine.mints.check(tenant.principal, body));
      expect(await refusalOf(engine.mint(tenant.principal, body))).toEqual(dry);
      // One request can name 100 tokens; the naive reader looks at each entry alone.
      if (JSON.stringify(dry)?.includes("batch_too_large")) return;
      expect(dry === null).toBe(reader.accepts(body));
      if (dry === null) accepted++;
    };
    const ids = [...Object.values(assets), numbered.assetId, disabled];
    await fc.assert(fc.asyncProperty(bodies(ids, userIds), property), { numRuns: 3_000 });
    expect(accepted).toBeGreaterThan(50);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("never takes an empty or missing asset id for the store's first asset", async ({
    engine,
    tenant,
  }) => {
    for (const assetId of ["", null, undefined, 0, [], "0"]) {
      const mints = [{ assetId, amount: 1, dataAvailabilityMode: "validium" }];
      const body = { users: [{ userId: tenant.users[0]?.userId, mints }] };
      expect(await refusalOf(engine.mint(tenant.principal, body as unknown))).toMatchObject({
        issues: [{ pointer: "/users/0/mints/0/assetId", code: "validation_failed" }],
      });
    }
  });
});
