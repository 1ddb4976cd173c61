import { toFunctionSelector } from "viem";
import { describe, expect, it } from "vitest";
import type { Address, Hash } from "../../../core/model.ts";
import { assetType, MAX_QUANTUM, mintableAssetId } from "../../../core/protocol/asset.ts";
import { vectors } from "./vectors.ts";

const TOKEN: Address = "0x5da41d8b03b656ac0daac9f27b98feba461dfbad";

describe("asset types", () => {
  it.each(vectors("starkex-assets").vectors)(
    "give StarkEx's published asset id: $standard $mintingBlob",
    (vector) => {
      const type = assetType(vector.standard, vector.token, BigInt(vector.quantum));
      expect(BigInt(mintableAssetId(vector.standard, type, vector.mintingBlob))).toBe(
        BigInt(vector.assetId),
      );
    },
  );

  it.each(vectors("assets").vectors)(
    "and ids are the vectors': $name",
    ({ standard, token, quantum, blob, ...made }) => {
      const type = assetType(standard, token, BigInt(quantum));
      expect([type, mintableAssetId(standard, type, blob)]).toEqual([
        made.assetType,
        made.mintableAssetId,
      ]);
    },
  );

  it("are of 32 bytes and below 2^250", () => {
    const type: Hash = assetType("erc20", TOKEN, MAX_QUANTUM);
    expect(type).toMatch(/^0x[0-9a-f]{64}$/);
    expect(BigInt(type)).toBeLessThan(1n << 250n);
  });

  it("differ by standard, token and quantum", () => {
    const other: Address = "0x5da41d8b03b656ac0daac9f27b98feba461dfbae";
    const types = [
      assetType("erc20", TOKEN, 1n),
      assetType("erc20", TOKEN, 2n),
      assetType("erc20", other, 1n),
      assetType("erc721", TOKEN, 1n),
      assetType("erc1155", TOKEN, 1n),
    ];
    expect(new Set(types).size).toBe(types.length);
  });

  it("take an address in any case", () => {
    expect(assetType("erc20", TOKEN.toUpperCase().replace("0X", "0x") as Address, 7n)).toBe(
      assetType("erc20", TOKEN, 7n),
    );
  });

  it("refuse a quantum of 0, of 2^128, and other than 1 for tokens with ids", () => {
    const invalid = expect.objectContaining({ code: "validation_failed" });
    expect(() => assetType("erc20", TOKEN, 0n)).toThrow(invalid);
    expect(() => assetType("erc20", TOKEN, 1n << 128n)).toThrow(invalid);
    expect(() => assetType("erc721", TOKEN, 2n)).toThrow(invalid);
    expect(() => assetType("erc1155", TOKEN, 2n)).toThrow(invalid);
    expect(() => assetType("erc20", "0x1234", 1n)).toThrow(invalid);
  });

  it("use the selectors of StarkEx's function texts", () => {
    // The formula by other means, so that a wrong constant shows even where no published vector is.
    expect(toFunctionSelector("function MintableERC20Token(address)")).toBe("0x68646e2d");
    expect(toFunctionSelector("function MintableERC721Token(address,uint256)")).toBe("0xb8b86672");
    expect(toFunctionSelector("function MintableERC1155Token(address,uint256)")).toBe("0xbae32628");
  });
});
