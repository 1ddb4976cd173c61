import fc from "fast-check";
import type { World } from "./fixture.ts";

// Callers send these who mean no good, or have not read the documentation.

export const hostileText = fc.oneof(
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
    "../../etc/passwd",
  ),
);

export const hostileNumber = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.constantFrom(0, -0, 1, 2 ** 53 - 1, 5e-324),
);

/** A body like a right one, of which any part may be something else. */
export function nearMint({
  erc20,
  erc721,
  erc1155,
  users,
  otherUser,
}: World): fc.Arbitrary<unknown> {
  const mostly = <T>(right: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: fc.jsonValue() });
  const mint = fc.record(
    {
      tokenId: mostly(fc.oneof(fc.stringMatching(/^[0-9]{1,3}$/), fc.nat(), hostileText)),
      mintingBlob: mostly(
        fc.oneof(fc.constant(""), fc.stringMatching(/^[0-9a-f]{0,12}$/), hostileText),
      ),
      assetId: mostly(
        fc.oneof(
          fc.constantFrom(erc20.assetId, erc721.assetId, erc1155.assetId),
          fc.uuid(),
          hostileText,
        ),
      ),
      amount: mostly(
        fc.oneof(fc.constantFrom(1, "1", "9223372036854775807"), hostileNumber, hostileText),
      ),
      amountDecimal: mostly(fc.oneof(fc.constantFrom("1", "0.5"), hostileNumber, hostileText)),
      dataAvailabilityMode: mostly(fc.constantFrom("validium", "zk-rollup")),
    },
    { requiredKeys: ["assetId"] },
  );
  const user = fc.record({
    userId: mostly(fc.oneof(fc.constantFrom(...users, otherUser), fc.uuid())),
    mints: mostly(fc.array(mostly(mint), { maxLength: 4 })),
  });
  return mostly(fc.record({ users: mostly(fc.array(mostly(user), { maxLength: 5 })) }));
}

/** A right text with a few characters changed, removed or put in. */
export function damaged(right: string): fc.Arbitrary<Buffer> {
  const cuts = fc.tuple(
    fc.nat(right.length),
    fc.nat(2),
    fc.string({ unit: "binary", maxLength: 3 }),
  );
  return fc.array(cuts, { maxLength: 3 }).map((all) => {
    return Buffer.from(
      all.reduce((text, [at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut), right),
    );
  });
}
