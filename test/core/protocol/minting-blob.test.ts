import fc from "fast-check";
import { keccak256 } from "viem";
import { describe, expect, it, test } from "vitest";
import type { Hex } from "../../../core/model.ts";
import { bytesToHex } from "../../../core/protocol/hex.ts";
import { canonicalMintingBlob, tokenIdOf } from "../../../core/protocol/minting-blob.ts";
import { textMintingBlob } from "./arbitrary.ts";
import { vectors } from "./vectors.ts";

const file = vectors("minting-blobs");
const mintingBlobInvalid = expect.objectContaining({ code: "minting_blob_invalid" });

describe("minting blobs", () => {
  it.each(file.vectors)(
    "$scheme $standard $input",
    ({ standard, scheme, input, canonical, tokenId }) => {
      expect(canonicalMintingBlob(input)).toBe(canonical);
      expect(tokenIdOf(standard, scheme, canonical)).toBe(
        tokenId === null ? null : BigInt(tokenId),
      );
    },
  );

  it.each(file.refused)("refused: $scheme $standard $input", ({ standard, scheme, input }) => {
    expect(() => tokenIdOf(standard, scheme, canonicalMintingBlob(input))).toThrow(
      mintingBlobInvalid,
    );
  });

  it("have one canonical form, whatever the case and the prefix", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 255 }),
        fc.boolean(),
        fc.boolean(),
        (bytes, isUpper, isPrefixed) => {
          const hex = bytesToHex(bytes);
          const digits = isUpper ? hex.slice(2).toUpperCase() : hex.slice(2);
          expect(canonicalMintingBlob(isPrefixed ? `0x${digits}` : digits)).toBe(hex);
        },
      ),
    );
  });

  it("name by mintmark's scheme the number they spell, or else their hash", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.bigInt({ min: 0n, max: 1n << 257n }).map(String), fc.string({ minLength: 1 })),
        (characters) => {
          const mintingBlob = textMintingBlob(characters);
          if (mintingBlob.length > 2 + 2 * 255) return;
          const isNumber = /^(0|[1-9]\d*)$/.test(characters) && BigInt(characters) < 1n << 256n;
          expect(tokenIdOf("erc721", "mintmark", mintingBlob)).toBe(
            isNumber ? BigInt(characters) : BigInt(keccak256(mintingBlob)),
          );
        },
      ),
    );
  });

  it("name by Immutable X's scheme the id between the first braces", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: (1n << 256n) - 1n }),
        fc.string({ maxLength: 40 }),
        (id, blueprint) => {
          expect(tokenIdOf("erc721", "imx", textMintingBlob(`{${id}}:{${blueprint}}`))).toBe(id);
        },
      ),
    );
  });
});

test("a minting blob of another scheme is refused with the id that it names, and how to give it", () => {
  const text = (of: string): Hex => `0x${Buffer.from(of).toString("hex")}`;
  const word: Hex = `0x${"11".padStart(64, "0")}`;
  for (const [scheme, mintingBlob, right] of [
    ["raw32", text("17"), word],
    ["raw32", text("{17}:{}"), word],
    ["imx", text("17"), text("{17}:{}")],
    ["imx", word, text("{17}:{}")],
  ] as const) {
    const hint = `(scheme ${scheme}); for the id 17, which was sent, give its tokenId, or the mintingBlob ${right}`;
    expect(() => tokenIdOf("erc721", scheme, mintingBlob)).toThrow(hint);
    expect(tokenIdOf("erc721", scheme, right)).toBe(17n);
  }
});
