import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Hex } from "../../../core/index.ts";
import { tokenIdOf } from "../../../core/protocol/blob.ts";
import { fastTokenIdOf } from "../../../core/store/token-id.ts";
import { blobOf } from "./fixture.ts";

describe("the fast token id", () => {
  it("equals the plain one, with the same refusals", () => {
    const text = fc.oneof(
      fc.bigInt(0n, 10n ** 18n).map(String),
      fc.stringMatching(/^0[0-9]{0,4}$/),
      fc.stringMatching(/^[0-9]{13,17}$/),
      fc.stringMatching(/^\{[0-9]{1,16}\}:\{[a-z]{0,3}\}$/),
      fc.string({ maxLength: 17 }),
    );
    const blob: fc.Arbitrary<Hex> = fc.oneof(
      text.map(blobOf),
      fc.uint8Array({ maxLength: 17 }).map((b) => `0x${Buffer.from(b).toString("hex")}` as const),
    );
    const standard = fc.constantFrom("erc20", "erc721", "erc1155");
    fc.assert(
      fc.property(standard, fc.constantFrom("mintmark", "imx"), blob, (...parts) => {
        const outcome = (read: typeof tokenIdOf) => {
          try {
            return read(...parts);
          } catch (error) {
            return error instanceof Error && "code" in error ? error.code : error;
          }
        };
        expect(outcome(fastTokenIdOf)).toEqual(outcome(tokenIdOf));
      }),
      { numRuns: 2000 },
    );
  });
});
