import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_AMOUNT, MODES, type Mode } from "../../../core/model.ts";
import { batchLeaves, type VaultEntry, wordBatch } from "../../../core/protocol/batch-data.ts";
import { bytesToHex, hexToBytes, unpackHashes } from "../../../core/protocol/hex.ts";
import {
  isMadeVaultId,
  isVaultId,
  packMadeVaultId,
  packVaultId,
  unpackBatchVaultId,
  unpackMadeVaultId,
  unpackVaultId,
} from "../../../core/protocol/vault.ts";
import {
  leavesOfWords,
  readWords,
  vaultLeaf,
  type WordVault,
  wordsOf,
} from "../../../core/protocol/words.ts";
import { decimalMintingBlob, naiveLeaf } from "../naive/naive-vault.ts";
import {
  type NaiveWords,
  naiveLeaf as naiveLeafOf,
  naiveVault,
  naiveWords,
  naiveWordsOf,
} from "../naive/naive-words.ts";
import { anySlots, anyVault } from "./arbitrary.ts";
import { contentOf, vectors } from "./vectors.ts";

const file = vectors("vaults");
const invalid = expect.objectContaining({ code: "validation_failed" });
const VAULT: VaultEntry = {
  chainId: 1n,
  owner: `0x${"11".repeat(20)}`,
  assetType: `0x${"22".repeat(32)}`,
  amount: 1n,
  mintingBlob: "0x",
};

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

  it("of makings are a series of their own, in which no batch has a place", () => {
    fc.assert(
      fc.property(
        fc.bigInt(1n, (1n << 42n) - 1n),
        fc.integer({ min: 0, max: 255 }),
        (making, slot) => {
          const vaultId = packMadeVaultId({ making, slot });
          expect(vaultId).toBe((1n << 62n) | (making << 20n) | BigInt(slot));
          expect(unpackMadeVaultId(vaultId)).toEqual({ making, slot });
          expect([isMadeVaultId(vaultId), isVaultId(vaultId)]).toEqual([true, true]);
          const place = { mode: "made", batchNumber: Number(making), slot } as const;
          expect(unpackVaultId(vaultId)).toEqual(place);
          expect(packVaultId(place)).toBe(vaultId);
          expect(() => unpackBatchVaultId(vaultId)).toThrow(invalid);
        },
      ),
    );
    const batches = [0n, (1n << 52n) - 1n, 1n << 63n, (1n << 63n) + (1n << 52n) - 1n];
    const nobodys = [1n << 62n, (1n << 62n) + 5n, 3n << 62n, 1n << 52n, 1n << 61n, -1n, 1n << 64n];
    for (const vaultId of [...batches, ...nobodys]) {
      expect(isMadeVaultId(vaultId)).toBe(false);
      expect(isVaultId(vaultId)).toBe(batches.includes(vaultId));
      expect(() => unpackMadeVaultId(vaultId)).toThrow(invalid);
    }
    for (const place of [
      { making: 0n, slot: 0 },
      { making: 1n << 42n, slot: 0 },
      { making: 1n, slot: 256 },
      { making: 1n, slot: -1 },
    ])
      expect(() => packMadeVaultId(place)).toThrow(invalid);
  });
});

describe("the words of vaults", () => {
  it.each(file.vectors)("vault $vault.vaultId, minting blob $vault.mintingBlob", (vector) => {
    const { vault, assetIndex, words, leaf, mode, batchNumber, slot } = vector;
    const content = contentOf(vault);
    const index = Number(assetIndex);
    const { head, rest } = wordsOf(bytesOf(content, index));
    expect([bytesToHex(head), ...partsOf(rest)]).toEqual(words);
    expect(bytesToHex(vaultLeaf(content, index))).toBe(leaf);
    expect(naiveLeaf(content, index)).toBe(leaf);
    expect(unpackVaultId(content.vaultId)).toEqual({
      mode,
      batchNumber: Number(batchNumber),
      slot: Number(slot),
    });
  });

  it.each(file.notWords)("none of $name", ({ words: [head = "0x", ...parts] }) => {
    const rest = Uint8Array.from(parts.flatMap((part) => [...hexToBytes(part, 31)]));
    expect(readWords({ head: hexToBytes(head, 32), rest })).toBeNull();
  });

  it("are the naive writer's, and are read as the vault", () => {
    fc.assert(
      fc.property(anyVault, fc.nat(254), (vault, assetIndex) => {
        const content = bytesOf(vault, assetIndex);
        const { head, rest } = wordsOf(content);
        const naive = naiveWords(vault, assetIndex);
        expect(bytesToHex(head)).toBe(`0x${naive.head}`);
        expect(bytesToHex(rest)).toBe(`0x${naive.rest.join("")}`);
        expect(readWords({ head, rest })).toEqual(content);
        expect(naiveVault(naive)).toEqual({ ...vault, assetIndex });
      }),
      { numRuns: 500 },
    );
  });

  it("are read without a fault whatever they are, and then as the naive reader reads them", () => {
    const words = fc
      .tuple(
        fc.oneof(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0x10, max: 0x69 })),
        fc.uint8Array({ minLength: 31, maxLength: 31 }),
        fc.oneof(fc.constant(0), fc.nat(255)),
        fc.nat(255),
      )
      .map(([tag, head, fill, first]) => ({
        head: Uint8Array.of(tag, ...head.map((byte, i) => (i > 20 && fill === 0 ? 0 : byte))),
        rest: new Uint8Array(31 * (tag & 15)).fill(fill).fill(first, 0, 1),
      }));
    fc.assert(
      fc.property(words, ({ head, rest }) => {
        const read = readWords({ head, rest });
        const parts = partsOf(rest).map((part) => part.slice(2));
        const naive = naiveVault({ head: bytesToHex(head).slice(2), rest: parts });
        expect(read && { ...hexOf(read), assetIndex: read.assetIndex }).toEqual(
          naive !== null && naive.assetIndex < 255 ? naive : null,
        );
      }),
      { numRuns: 1000 },
    );
  });

  it("have leaves in their places, in a batch longer than a chunk too", () => {
    const slots = Array.from({ length: 3000 }, (_, slot) =>
      slot % 1023 === 17 ? null : { ...VAULT, mintingBlob: decimalMintingBlob(slot) },
    );
    const naive = naiveWordsOf(slots);
    for (const mode of MODES) {
      const leaves = unpackHashes(batchLeaves(wordBatch(slots), mode, 7));
      for (const slot of [0, 17, 18, 1023, 1024, 1039, 1040, 1041, 2047, 2048, 2999]) {
        const vaultId = packVaultId({ mode, batchNumber: 7, slot });
        expect(leaves[slot]).toBe(naiveLeafOf(vaultId, naive[slot] as NaiveWords));
      }
    }
  });

  it("give a part of a batch the leaves of the whole", () => {
    fc.assert(
      fc.property(anySlots, fc.nat(30), fc.constantFrom(...MODES), (slots, start, mode) => {
        const { words } = wordBatch(slots);
        const place = { mode, batchNumber: 7 };
        const first = Math.min(start, words.count - 1);
        const part = words.slice(first, words.count - first);
        const whole = unpackHashes(leavesOfWords(words, place));
        expect(unpackHashes(leavesOfWords(part, place, first))).toEqual(whole.slice(first));
      }),
      { numRuns: 50 },
    );
  });

  it("refuse content out of bounds", () => {
    const vault = { ...VAULT, vaultId: 0n };
    const withAmount = (amount: bigint) => () => vaultLeaf({ ...vault, amount }, 0);
    const outOfRange = expect.objectContaining({ code: "amount_out_of_range" });
    expect(withAmount(0n)).toThrow(outOfRange);
    expect(withAmount(-1n)).toThrow(outOfRange);
    expect(withAmount(MAX_AMOUNT + 1n)).toThrow(outOfRange);
    expect(() => vaultLeaf({ ...vault, mintingBlob: `0x${"31".repeat(256)}` }, 0)).toThrow(
      expect.objectContaining({ code: "minting_blob_invalid" }),
    );
    expect(() => vaultLeaf({ ...vault, mintingBlob: "0x3" }, 0)).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, mintingBlob: "0xzz" }, 0)).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, owner: "0x1234" }, 0)).toThrow(invalid);
    expect(() => vaultLeaf({ ...vault, vaultId: 1n << 60n }, 0)).toThrow(invalid);
    expect(() => vaultLeaf(vault, 255)).toThrow(invalid);
    expect(() => vaultLeaf(vault, -1)).toThrow(invalid);
  });
});

type Content = Pick<VaultEntry, "owner" | "amount" | "mintingBlob">;

function bytesOf({ owner, amount, mintingBlob }: Content, assetIndex: number): WordVault {
  return { assetIndex, owner: hexToBytes(owner, 20), amount, mintingBlob: hexToBytes(mintingBlob) };
}

function hexOf({ owner, amount, mintingBlob }: WordVault): Content {
  return { owner: bytesToHex(owner), amount, mintingBlob: bytesToHex(mintingBlob) };
}

/** The continuations, each as hex. */
function partsOf(rest: Uint8Array) {
  return Array.from({ length: rest.length / 31 }, (_, i) =>
    bytesToHex(rest.subarray(31 * i, 31 * (i + 1))),
  );
}
