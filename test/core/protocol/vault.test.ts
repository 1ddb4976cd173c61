import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_AMOUNT, MODES, type Mode } from "../../../core/model.ts";
import { placeVaults } from "../../../core/protocol/batch-decoder.ts";
import { bytesToHex, unpackHashes } from "../../../core/protocol/hex.ts";
import {
  packVaultId,
  unpackVaultId,
  vaultLeaf,
  vaultLeaves,
} from "../../../core/protocol/vault.ts";
import { naiveLeaf } from "../naive/naive-vault.ts";
import { anySlots } from "./arbitrary.ts";
import { contentOf, vectors } from "./vectors.ts";

const file = vectors("vaults");
const invalid = expect.objectContaining({ code: "validation_failed" });

describe("vault ids", () => {
  it("are mode, batch number and slot, and nothing else", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...MODES),
        fc.integer({ min: 0, max: 0xffff_ffff }),
        fc.integer({ min: 0, max: (1 << 20) - 1 }),
        (mode, batchNumber, slot) => {
          const vaultId = packVaultId({ mode, batchNumber, slot });
          expect(vaultId).toBe(
            (BigInt(MODES.indexOf(mode)) << 63n) | (BigInt(batchNumber) << 20n) | BigInt(slot),
          );
          expect(unpackVaultId(vaultId)).toEqual({ mode, batchNumber, slot });
        },
      ),
    );
  });

  it.each(file.refusedVaultIds)("with an unused bit are refused: %s", (vaultId) => {
    expect(() => unpackVaultId(BigInt(vaultId))).toThrow(invalid);
  });

  it("refuse parts out of bounds", () => {
    const place = { mode: "validium", batchNumber: 0, slot: 0 } as const;
    expect(() => packVaultId({ ...place, batchNumber: 2 ** 32 })).toThrow(invalid);
    expect(() => packVaultId({ ...place, batchNumber: -1 })).toThrow(invalid);
    expect(() => packVaultId({ ...place, batchNumber: 0.5 })).toThrow(invalid);
    expect(() => packVaultId({ ...place, slot: 2 ** 20 })).toThrow(invalid);
    expect(() => packVaultId({ ...place, slot: Number.NaN })).toThrow(invalid);
    expect(() => packVaultId({ ...place, mode: "plasma" as Mode })).toThrow(invalid);
    expect(() => unpackVaultId(-1n)).toThrow(invalid);
    expect(() => unpackVaultId(1n << 64n)).toThrow(invalid);
  });
});

describe("vault leaves", () => {
  it.each(file.vectors)(
    "vault $vault.vaultId, blob $vault.blob",
    ({ vault, leaf, mode, batchNumber, slot }) => {
      const content = contentOf(vault);
      expect(bytesToHex(vaultLeaf(content))).toBe(leaf);
      expect(naiveLeaf(content)).toBe(leaf);
      expect(unpackVaultId(content.vaultId)).toEqual({
        mode,
        batchNumber: Number(batchNumber),
        slot: Number(slot),
      });
    },
  );

  it("of a whole batch are those of its vaults, zero where a slot is void", () => {
    fc.assert(
      fc.property(anySlots, fc.constantFrom(...MODES), (slots, mode) => {
        const vaults = placeVaults(slots, mode, 7);
        const expected = vaults.map((vault) =>
          vault === null ? `0x${"00".repeat(32)}` : naiveLeaf(vault),
        );
        expect(unpackHashes(vaultLeaves(vaults))).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });

  it("of a batch longer than a chunk are in their places", () => {
    const vault = contentOf(file.vectors[0]?.vault ?? never());
    const slots = Array.from({ length: 9000 }, (_, slot) =>
      slot % 1023 === 17 ? null : { ...vault, vaultId: BigInt(slot) },
    );
    const leaves = unpackHashes(vaultLeaves(slots));
    for (const slot of [0, 17, 18, 1023, 1024, 1039, 1040, 1041, 4095, 4096, 8191, 8192, 8999]) {
      const content = slots[slot] ?? null;
      expect(leaves[slot]).toBe(content === null ? `0x${"00".repeat(32)}` : naiveLeaf(content));
    }
  });

  it("refuse content out of bounds", () => {
    const vault = contentOf(file.vectors[0]?.vault ?? never());
    const withAmount = (amount: bigint) => () => vaultLeaf({ ...vault, amount });
    const outOfRange = expect.objectContaining({ code: "amount_out_of_range" });
    expect(withAmount(0n)).toThrow(outOfRange);
    expect(withAmount(-1n)).toThrow(outOfRange);
    expect(withAmount(MAX_AMOUNT + 1n)).toThrow(outOfRange);
    expect(() => vaultLeaf({ ...vault, blob: `0x${"31".repeat(256)}` })).toThrow(
      expect.objectContaining({ code: "blob_invalid" }),
    );
    expect(() => vaultLeaf({ ...vault, blob: "0x3" })).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, blob: "0xzz" })).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, owner: "0x1234" })).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, assetType: `0x${"ab".repeat(33)}` })).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, chainId: 1n << 64n })).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, vaultId: 1n << 60n })).toThrow(invalid);
  });
});

function never(): never {
  throw new Error("the vector file is empty");
}
