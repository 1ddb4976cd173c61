import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Address, Hash, Hex } from "../../../core/index.ts";
import { MODES } from "../../../core/index.ts";
import { batchDataOf, encodeBatchData, wordBatch } from "../../../core/protocol/batch-data.ts";
import { hexToBytes } from "../../../core/protocol/hex.ts";
import { leavesOfWords } from "../../../core/protocol/words.ts";
import { columnWords } from "../../../core/sealing/seal-columns.ts";
import type { StoredVault } from "../../../core/store/vault-columns.ts";
import {
  encodeChunk,
  encodeColumns,
  highWord,
  lowWord,
  VaultColumns,
} from "../../../core/store/vault-columns.ts";

const ASSETS = [1, 2, 3].map((n) => ({
  chainId: BigInt(n === 3 ? 1 : 31_337),
  assetType: `0x${n.toString(16).padStart(64, "0")}` as Hash,
}));
const assetAt = (index: number) =>
  ASSETS[index] ?? { chainId: 0n, assetType: `0x${"00".repeat(32)}` as const };

const hex = (text: string): Hex => `0x${Buffer.from(text, "latin1").toString("hex")}`;
/**
 * Decimals that follow one another or nearly do, long ones, other characters that pack, and bytes
 * that do not.
 */
const mintingBlob = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 95, max: 105 }).map(String) },
  fc.bigInt(10n ** 20n - 2n, 10n ** 20n + 2n).map(String),
  fc.constantFrom("", "0", "00", "9", "10", "099", "9".repeat(32), "9".repeat(33), "12:3", "abc"),
  fc.string({ maxLength: 60 }).map((text) => Buffer.from(text).toString("latin1")),
);
const vault = fc
  .record({
    user: fc.nat(4),
    assetIndex: fc.nat(2),
    amount: fc.oneof(
      fc.bigInt(1n, 300n),
      fc.bigInt(1n, (1n << 63n) - 1n),
      fc.constantFrom(2n ** 32n - 1n, 2n ** 32n),
    ),
    mintingBlob,
    age: fc.nat(100),
  })
  .map(({ user, assetIndex, amount, mintingBlob, age }) => ({
    applicationIndex: user % 2,
    userIndex: user,
    // Two users share an owner.
    owner: `0x${Math.max(1, user).toString(16).padStart(40, "0")}` as Address,
    assetIndex,
    amount,
    mintingBlob: hex(mintingBlob),
    age,
  }));

function push(columns: VaultColumns, stored: StoredVault): void {
  const { applicationIndex, userIndex, assetIndex, amount, createdAt, updatedAt } = stored;
  const holder = { applicationIndex, userIndex, owner: hexToBytes(stored.owner) };
  const mintingBlobs = hexToBytes(stored.mintingBlob);
  const words = { amountHigh: highWord(amount), amountLow: lowWord(amount) };
  columns.push(
    holder,
    { assetIndex, ...words, mintingBlobs, start: 0, end: mintingBlobs.length },
    createdAt,
    updatedAt,
    0,
  );
}

describe("a batch in columns", () => {
  it("has the records, the data and the leaves of the same vaults as objects", () => {
    fc.assert(
      fc.property(
        fc.array(vault, { minLength: 1, maxLength: 150 }),
        fc.nat(0xffff_ffff),
        fc.constantFrom(...MODES),
        (made, batchNumber, mode) => {
          let createdAt = 1_893_456_000_000;
          const plain = made.map(({ age, ...rest }): StoredVault => {
            createdAt += age;
            return { ...rest, createdAt, updatedAt: createdAt + (age % 7) };
          });
          const columns = new VaultColumns();
          for (const one of plain) push(columns, one);
          expect(plain.map((_, slot) => columns.at(slot))).toEqual(plain);
          const first = plain.length > 64 ? 64 : 0;
          const end = Math.min(first + 64, plain.length);
          expect(encodeColumns(columns, first, end)).toEqual(encodeChunk(plain.slice(first, end)));
          const entries = plain.map(entryOf);
          const batch = columnWords(columns, assetAt);
          const expected = wordBatch(entries);
          expect(batch.assets).toEqual(expected.assets);
          expect(batchDataOf(batch)).toEqual(encodeBatchData(entries));
          const place = { mode, batchNumber };
          expect(leavesOfWords(batch.words, place)).toEqual(leavesOfWords(expected.words, place));
        },
      ),
      { numRuns: 300 },
    );
  });

  it("of more than a chunk of leaves has them in their slots", () => {
    const columns = new VaultColumns();
    const plain = Array.from({ length: 70_000 }, (_, i): StoredVault => {
      const owner = `0x${((i % 9) + 1).toString(16).padStart(40, "0")}` as const;
      const facts = {
        applicationIndex: 0,
        userIndex: i % 9,
        owner,
        assetIndex: i % 3,
        amount: BigInt(i + 1),
      };
      return { ...facts, mintingBlob: hex(String(i)), createdAt: 1, updatedAt: 1 };
    });
    for (const one of plain) push(columns, one);
    const place = { mode: "zk-rollup", batchNumber: 7 } as const;
    const whole = wordBatch(plain.map(entryOf));
    const leaves = Buffer.from(leavesOfWords(whole.words, place));
    expect(leaves.equals(leavesOfWords(columnWords(columns, assetAt).words, place))).toBe(true);
    const page = new VaultColumns();
    for (const one of plain.slice(66_560, 66_816)) push(page, one);
    const { words } = columnWords(page, assetAt, null, whole.assets);
    const part = leaves.subarray(66_560 * 32, 66_816 * 32);
    expect(part.equals(leavesOfWords(words, place, 66_560))).toBe(true);
  });
});

const entryOf = ({ owner, assetIndex, amount, mintingBlob }: StoredVault) => {
  return { ...assetAt(assetIndex), owner, amount, mintingBlob };
};
