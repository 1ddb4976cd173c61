import hre from "hardhat";
import { size } from "viem";
import { expect, it } from "vitest";

it("fits the code size that L1 accepts, EIP-170", async () => {
  for (const name of [
    "StateCommitment",
    "StateMirror",
    "AdminTimeLock",
    "MintableERC20",
    "MintableERC721",
    "MintableERC1155",
  ] as const) {
    const { deployedBytecode } = await hre.artifacts.readArtifact(name);
    expect(size(deployedBytecode as `0x${string}`), name).toBeLessThanOrEqual(24_576);
  }
});
