import { encodePacked, keccak256, toFunctionSelector } from "viem";
import { describe, expect, it } from "vitest";
import type { Address, Hash, Hex, Standard } from "../../../core/model.ts";
import { assetType, MAX_QUANTUM } from "../../../core/protocol/asset.ts";
import { vectors } from "./vectors.ts";

const TOKEN: Address = "0x5da41d8b03b656ac0daac9f27b98feba461dfbad";

/** StarkEx publishes no asset types, only the ids that it derives from them. */
function mintableAssetId(standard: Standard, type: Hash, mintingBlob: Hex): bigint {
  const parts = ["MINTABLE:", BigInt(type), keccak256(mintingBlob)] as const;
  const hash = BigInt(keccak256(encodePacked(["string", "uint256", "bytes32"], parts)));
  const flags = { erc20: 0b111n, erc721: 0b100n, erc1155: 0b110n };
  return (hash & ((1n << 240n) - 1n)) | (flags[standard] << 248n);
}

describe("asset types", () => {
  it.each(vectors("starkex-assets").vectors)(
    "give StarkEx's published asset id: $standard $mintingBlob",
    (vector) => {
      const type = assetType(vector.standard, vector.token, BigInt(vector.quantum));
      expect(mintableAssetId(vector.standard, type, vector.mintingBlob)).toBe(
        BigInt(vector.assetId),
      );
    },
  );

  it.each(vectors("assets").vectors)(
    "and ids are the vectors': $name",
    ({ standard, token, quantum, mintingBlob, ...made }) => {
      const type = assetType(standard, token, BigInt(quantum));
      expect([type, mintableAssetId(standard, type, mintingBlob)]).toEqual([
        made.assetType,
        BigInt(made.mintableAssetId),
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
