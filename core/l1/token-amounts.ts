import { type PublicClient, parseAbi } from "viem";
import type { Address, Standard } from "../model.ts";
import { saysNothing } from "./failure.ts";

const ABI = parseAbi([
  "function cap() view returns (uint256)",
  "function balanceOf(address account) view returns (uint256)",
  "function balanceOf(address account, uint256 id) view returns (uint256)",
  "function ownerOf(uint256 id) view returns (address)",
]);
/** What tokens without a bound state where the interface asks for one. */
const UNBOUNDED = (1n << 256n) - 1n;

/** Most base units of an ERC-20 that can ever exist; null when the token states no bound. */
export async function tokenCap(client: PublicClient, contract: Address): Promise<bigint | null> {
  const cap = await orNothing(client.readContract({ abi: ABI, address: contract, functionName: "cap" }));
  return cap === UNBOUNDED ? null : cap;
}

/** Base units that an account holds of a token; of an ERC-721, 1 when it is the token's owner. */
export async function tokenHolding(
  client: PublicClient,
  contract: Address,
  standard: Standard,
  account: Address,
  tokenId: bigint | null,
): Promise<bigint> {
  const read = { abi: ABI, address: contract } as const;
  if (standard === "erc20") return client.readContract({ ...read, functionName: "balanceOf", args: [account] });
  const id = tokenId ?? 0n;
  if (standard === "erc1155") return client.readContract({ ...read, functionName: "balanceOf", args: [account, id] });
  // Of a token that does not exist yet, `ownerOf` reverts.
  const owner = await orNothing(client.readContract({ ...read, functionName: "ownerOf", args: [id] }));
  return owner?.toLowerCase() === account.toLowerCase() ? 1n : 0n;
}

async function orNothing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (saysNothing(error)) return null;
    throw error;
  }
}
