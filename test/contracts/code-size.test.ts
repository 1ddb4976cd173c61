import hre from "hardhat";
import { size } from "viem";
import { expect, it } from "vitest";

/** EIP-170's bound. */
const MAX_CODE_BYTES = 24_576;
/** Later changes of the settlement contract need this room. */
const SPARE_BYTES = 1_000;

it("fits the code size that L1 accepts, EIP-170", async () => {
  for (const name of [
    "StateCommitment",
    "Administration",
    "Transfers",
    "Makings",
    "StateMirror",
    "AdminTimeLock",
    "MintableERC20",
    "MintableERC721",
    "MintableERC1155",
    "EscrowFactory",
  ] as const) {
    const { deployedBytecode } = await hre.artifacts.readArtifact(name);
    expect(size(deployedBytecode as `0x${string}`), name).toBeLessThanOrEqual(
      name === "StateCommitment" ? MAX_CODE_BYTES - SPARE_BYTES : MAX_CODE_BYTES,
    );
  }
});
