import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Address, Hash, Hex } from "../../../core/index.ts";
import { MODES } from "../../../core/index.ts";
import { encodeBatchColumns, encodeBatchData } from "../../../core/protocol/batch-encoder.ts";
import { hexToBytes } from "../../../core/protocol/hex.ts";
import { vaultLeaves } from "../../../core/protocol/vault.ts";
import { contentOf } from "../../../core/sealing/contents.ts";
import { columnLeaves, encoderColumns } from "../../../core/sealing/seal-columns.ts";
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
const blob = fc.oneof(
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
    blob,
    age: fc.nat(100),
  })
  .map(({ user, assetIndex, amount, blob, age }) => ({
    applicationIndex: user % 2,
    userIndex: user,
    // Two users share an owner.
    owner: `0x${Math.max(1, user).toString(16).padStart(40, "0")}` as Address,
    assetIndex,
    amount,
    blob: hex(blob),
    age,
  }));

function push(columns: VaultColumns, stored: StoredVault): void {
  const { applicationIndex, userIndex, assetIndex, amount, createdAt, updatedAt } = stored;
  const holder = { applicationIndex, userIndex, owner: hexToBytes(stored.owner) };
  const blobs = hexToBytes(stored.blob);
  const words = { amountHigh: highWord(amount), amountLow: lowWord(amount) };
  columns.push(
    holder,
    { assetIndex, ...words, blobs, start: 0, end: blobs.length },
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
          const contents = plain.map((vault, slot) =>
            contentOf({ mode, batchNumber, slot }, vault, assetAt(vault.assetIndex)),
          );
          expect(columnLeaves(mode, batchNumber, columns, assetAt)).toEqual(vaultLeaves(contents));
          for (const least of ["bytes", "gas"] as const) {
            const data = encodeBatchColumns(encoderColumns(columns, assetAt), least);
            expect(data).toEqual(encodeBatchData(contents, least));
          }
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
      return { ...facts, blob: hex(String(i)), createdAt: 1, updatedAt: 1 };
    });
    for (const one of plain) push(columns, one);
    const contents = plain.map((vault, slot) =>
      contentOf({ mode: "zk-rollup", batchNumber: 7, slot }, vault, assetAt(vault.assetIndex)),
    );
    expect(
      Buffer.from(columnLeaves("zk-rollup", 7, columns, assetAt)).equals(vaultLeaves(contents)),
    ).toBe(true);
    const page = new VaultColumns();
    for (const one of plain.slice(66_560, 66_816)) push(page, one);
    const leaves = Buffer.from(columnLeaves("zk-rollup", 7, page, assetAt, 66_560));
    expect(leaves.equals(vaultLeaves(contents.slice(66_560, 66_816)))).toBe(true);
  });
});
