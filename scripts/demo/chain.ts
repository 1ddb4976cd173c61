import { createPublicClient, erc20Abi, erc721Abi, type Hex, http, parseAbi } from "viem";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";

type Address = `0x${string}`;

/** EIP-4844. */
const GAS_PER_BLOB = 131_072n;
const ERC1155 = parseAbi(["function balanceOf(address owner, uint256 id) view returns (uint256)"]);

/** The demo's own reads of L1, without the engine. */
export function chainReader(rpcUrl: string, contract: Address) {
  const client = createPublicClient({ transport: http(rpcUrl) });
  return {
    async stateRoot(mode: "validium" | "zk-rollup"): Promise<Hex> {
      const args = [mode === "validium" ? 0 : 1] as const;
      return client.readContract({ abi: stateCommitmentAbi, address: contract, functionName: "stateRoot", args });
    },
    stateCommitment: (): Promise<Hex> =>
      client.readContract({ abi: stateCommitmentAbi, address: contract, functionName: "stateCommitment" }),
    /** From the receipt. The local chain's receipts leave the blob gas out: there it follows from the blobs. */
    async gasOf(hash: Hex): Promise<{ readonly gas: bigint; readonly blobGas: bigint }> {
      const { gasUsed: gas, blobGasUsed, type } = await client.getTransactionReceipt({ hash });
      if (blobGasUsed !== undefined || type !== "eip4844") return { gas, blobGas: blobGasUsed ?? 0n };
      const { blobVersionedHashes = [] } = await client.getTransaction({ hash });
      return { gas, blobGas: BigInt(blobVersionedHashes.length) * GAS_PER_BLOB };
    },
    async chainId(): Promise<bigint> {
      return BigInt(await client.getChainId());
    },
    balance20: (token: Address, owner: Address): Promise<bigint> =>
      client.readContract({ abi: erc20Abi, address: token, functionName: "balanceOf", args: [owner] }),
    owner721: (token: Address, id: bigint): Promise<Address> =>
      client.readContract({ abi: erc721Abi, address: token, functionName: "ownerOf", args: [id] }),
    balance1155: (token: Address, owner: Address, id: bigint): Promise<bigint> =>
      client.readContract({ abi: ERC1155, address: token, functionName: "balanceOf", args: [owner, id] }),
  };
}

export type ChainReader = ReturnType<typeof chainReader>;
