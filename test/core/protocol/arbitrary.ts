import fc from "fast-check";
import { type Hex, MAX_AMOUNT } from "../../../core/model.ts";
import type { VaultEntry } from "../../../core/protocol/batch-data.ts";
import { bytesToHex } from "../../../core/protocol/hex.ts";
import { decimalMintingBlob } from "../naive/naive-vault.ts";

export const anyHash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(bytesToHex);

/** `count` leaves of 32 bytes, back to back. */
export function anyLeaves(maxCount: number): fc.Arbitrary<Uint8Array> {
  return fc
    .integer({ min: 1, max: maxCount })
    .chain((count) => fc.uint8Array({ minLength: count * 32, maxLength: count * 32 }));
}

const fewAssets = fc.integer({ min: 0, max: 3 }).map((n) => ({
  chainId: BigInt(n % 2 === 0 ? 1 : Number.MAX_SAFE_INTEGER),
  assetType: `0x${"ab".repeat(31)}0${n >> 1}` as Hex,
}));
const owners = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.integer({ min: 0, max: 4 }).map((n) => `0x${"11".repeat(19)}0${n}` as Hex),
  },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 20, maxLength: 20 }).map(bytesToHex) },
);
const amounts = fc.oneof(
  { weight: 3, arbitrary: fc.constant(1n) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 62 }).map((bits) => 1n << BigInt(bits)) },
  { weight: 1, arbitrary: fc.bigInt({ min: 2n, max: 2n ** 41n }) },
  { weight: 1, arbitrary: fc.bigInt({ min: 1n, max: MAX_AMOUNT }) },
);
const ids = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
  fc
    .integer({ min: 0, max: 256 })
    .chain((bits) => fc.constantFrom(2n ** BigInt(bits) - 1n, 2n ** BigInt(bits) % 2n ** 256n)),
);
const mintingBlobs: fc.Arbitrary<Hex> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Hex>("0x") },
  { weight: 3, arbitrary: fc.bigInt({ min: 0n, max: 10n ** 33n }).map(decimalMintingBlob) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 12 }).map(decimalMintingBlob) },
  { weight: 2, arbitrary: ids.map(decimalMintingBlob) },
  { weight: 1, arbitrary: ids.map((id) => textMintingBlob(`{${id}}:{}`)) },
  { weight: 1, arbitrary: ids.map((id): Hex => `0x${id.toString(16).padStart(64, "0")}`) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom("00", "007", "9x", "1 ", "{}:{}", "{01}:{}", "{1}:{x}", "}:{}", "{1}:{")
      .map(textMintingBlob),
  },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 255 }).map(bytesToHex) },
);
/** A vault without its asset. */
export const anyVault = fc.record({ owner: owners, amount: amounts, mintingBlob: mintingBlobs });
const oneSlot = fc
  .record({ asset: fewAssets, vault: anyVault })
  .map(({ asset, vault }) => [{ ...asset, ...vault }]);
/** Consecutive ids of one asset, to one owner or several in turn. */
const range = fc
  .record({
    asset: fewAssets,
    owner: fc.array(owners, { minLength: 1, maxLength: 3 }),
    first: fc.oneof(
      fc.bigInt({ min: 0n, max: 120n }),
      fc.constantFrom(10n ** 15n - 3n, 10n ** 16n - 2n, 10n ** 20n - 2n, 10n ** 32n - 2n),
    ),
    length: fc.integer({ min: 1, max: 20 }),
    amount: amounts,
  })
  .map(({ asset, owner, first, length, amount }) =>
    Array.from({ length }, (_, i) => ({
      ...asset,
      owner: owner[i % owner.length] ?? `0x${"00".repeat(20)}`,
      amount,
      mintingBlob: decimalMintingBlob(first + BigInt(i)),
    })),
  );
const voids = fc.integer({ min: 1, max: 3 }).map((length) => Array.from({ length }, () => null));

/** The slots of a batch: single vaults, ranges and void slots, mixed. */
export const anySlots: fc.Arbitrary<(VaultEntry | null)[]> = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: oneSlot },
      { weight: 2, arbitrary: range },
      { weight: 1, arbitrary: voids },
    ),
    { minLength: 1, maxLength: 40 },
  )
  .map((parts) => parts.flat() as (VaultEntry | null)[]);

export function textMintingBlob(characters: string): Hex {
  return bytesToHex(new TextEncoder().encode(characters));
}
