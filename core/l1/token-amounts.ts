import { type PublicClient, parseAbi } from "viem";
import type { Address, Standard } from "../model.ts";
import { saysNothing } from "./failure.ts";

const ABI = parseAbi([
  "function balanceOf(address account) view returns (uint256)",
  "function balanceOf(address account, uint256 id) view returns (uint256)",
  "function ownerOf(uint256 id) view returns (address)",
]);
/** What tokens without a bound state where the interface asks for one. */
const UNBOUNDED = (1n << 256n) - 1n;

/** `cap()` */
const CAP = "355274ea";

/**
 * Most base units of an ERC-20 that can ever exist; null when the token states no bound. A token that answers with anything but one word, or
 * burns the 200,000 gas that it has for it, states none: what a token does must not look like a chain that does not answer.
 */
export async function tokenCap(client: PublicClient, contract: Address): Promise<bigint | null> {
  // mstore(0, CAP); if and(staticcall(200000, contract, 28, 4, 0, 32), eq(returndatasize(), 32)) { return(0, 32) } return(0, 0)
  const question = `63${CAP}5f5260205f6004601c73${contract.slice(2)}62030d40fa3d602014166033575f5ff35b60205ff3`;
  const { data } = await client.call({ data: `0x${question}` });
  if (data === undefined || data.length !== 66) return null;
  const cap = BigInt(data);
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
