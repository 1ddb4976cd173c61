import { createPublicClient, erc20Abi, erc721Abi, type Hex, http, parseAbi } from "viem";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";

type Address = `0x${string}`;

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
    async gasUsed(hash: Hex): Promise<bigint> {
      return (await client.getTransactionReceipt({ hash })).gasUsed;
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
