import { encodeFunctionData, parseAbi } from "viem";
import type { BatchVaultProof, Hex } from "../../core/index.ts";

const ABI = parseAbi([
  "struct Vault { uint64 vaultId; uint64 chainId; address owner; uint256 assetType; uint64 amount; bytes blob; }",
  "struct BatchHeader { bytes32 batchRoot; uint32 vaultCount; uint64 committedAt; uint64 sequence; }",
  "struct VaultPath { bytes32[] siblings; uint8 assetIndex; bytes32[] assetSiblings; }",
  "struct Authorization { uint64 deadline; bytes signature; }",
  "function withdraw(Vault vault, BatchHeader header, VaultPath path, uint64 quantity, address recipient, Authorization authorization)",
]);

/**
 * Calldata with which the vault's owner can withdraw `quantity` to itself, without a signature and without the
 * operator; null while L1 has not committed the batch, and when nothing is left.
 */
export function withdrawCalldata(quantity: bigint, proof: BatchVaultProof): Hex | null {
  const { vault, header, siblings, assetPath } = proof;
  if (header === null || quantity === 0n) return null;
  return encodeFunctionData({
    abi: ABI,
    functionName: "withdraw",
    args: [
      { ...vault, assetType: BigInt(vault.assetType) },
      header,
      { siblings, assetIndex: assetPath.index, assetSiblings: assetPath.siblings },
      quantity,
      vault.owner,
      { deadline: 0n, signature: "0x" },
    ],
  });
}
