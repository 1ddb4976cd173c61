import fc from "fast-check";
import { expect, it } from "vitest";
import type { Hex, MintResult, Vault } from "../../core/index.ts";
import { MODES, STATUSES } from "../../core/index.ts";
import { mintAnswer } from "../../server/mint-answer.ts";
import { mintToWire } from "../../server/wire.ts";

/** `0x` and so many bytes. */
function hex(least: number, most = least): fc.Arbitrary<Hex> {
  return fc
    .uint8Array({ minLength: least, maxLength: most })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);
}

/** Few different ones, so that neighbours share some, and differ in any one thing. */
function few<T>(values: fc.Arbitrary<T>): fc.Arbitrary<fc.Arbitrary<T>> {
  return fc.array(values, { minLength: 1, maxLength: 2 }).map((some) => fc.constantFrom(...some));
}

const decimals = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const times = fc.integer({ min: 0, max: 4e12 });

const vaults: fc.Arbitrary<readonly Vault[]> = fc
  .tuple(few(fc.uuid()), few(hex(20)), few(fc.uuid()), few(hex(32)), few(times), few(fc.constantFrom(...STATUSES)))
  .chain(([userId, ownerAddress, assetId, assetType, time, status]) =>
    fc.array(
      fc.record({
        vaultId: decimals,
        userId,
        ownerAddress,
        assetId,
        assetType,
        mintingBlob: hex(0, 255),
        tokenId: fc.option(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })),
        dataAvailabilityMode: fc.constantFrom(...MODES),
        amount: fc.constantFrom(1n, 2n ** 63n - 1n),
        availableBalance: fc.constantFrom(0n, 1n, 2n ** 63n - 1n),
        withdrawnBalance: decimals,
        batchId: fc.constantFrom("validium-0", "zk-rollup-4294967295"),
        status,
        createdAt: time,
        updatedAt: time,
      }),
    ),
  );

const results: fc.Arbitrary<MintResult> = fc.record({
  mintId: fc.uuid(),
  vaults,
  transactions: fc.array(
    fc.record({
      transactionId: fc.uuid().map((mintId) => `${mintId}.7`),
      userIndex: fc.nat(),
      mintIndex: fc.nat(),
      vaultId: decimals,
      status: fc.constantFrom(...STATUSES),
    }),
  ),
  replayed: fc.boolean(),
  receipt: fc.oneof(
    fc.constant(async () => null),
    fc
      .record({
        root: hex(32),
        count: fc.nat(),
        time: times,
        signer: hex(20),
        signature: hex(65),
        chainIds: fc.dictionary(fc.uuid(), decimals),
      })
      .map((receipt) => async () => receipt),
  ),
});

it("an answer's bytes are those of the plain object", async () => {
  await fc.assert(
    fc.asyncProperty(results, async (result) => {
      const plain = JSON.stringify(await mintToWire(result));
      expect((await mintAnswer(result)).toString("utf8")).toBe(plain);
    }),
  );
});
