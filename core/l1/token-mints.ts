import { type PublicClient, parseAbi } from "viem";
import type { Address } from "../model.ts";
import type { TokenMint } from "../ports.ts";
import { askInBulk } from "./bulk.ts";
import { revertReason, saysNothing } from "./failure.ts";

/** `mintFor`, and what tokens on OpenZeppelin say when they refuse it. */
const ABI = parseAbi([
  "function mintFor(address to, uint256 quantity, bytes mintingBlob)",
  "function MINTER_ROLE() view returns (bytes32)",
  "function hasRole(bytes32 role, address account) view returns (bool)",
  "function ownerOf(uint256 id) view returns (address)",
  "error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)",
  "error OwnableUnauthorizedAccount(address account)",
  "error ERC721InvalidSender(address sender)",
  "error ERC20ExceededCap(uint256 increasedSupply, uint256 cap)",
  "error EnforcedPause()",
]);

/** No transaction may use more gas (EIP-7825), so what needs more cannot be minted. */
const TRIAL_GAS = 16_777_216n;
/** Who is minted to in a trial: an account that can refuse nothing. */
const NOBODY = "0x000000000000000000000000000000000000dead";
const ZERO = "0x0000000000000000000000000000000000000000";
/**
 * Questions of one call. Where no contract gathers them, it is one that would deploy: its code has at most 49,152 bytes (EIP-3860), and its
 * answer 24,576 (EIP-170), of which each takes 224 and 160.
 */
const OWNERS_PER_CALL = 120;

/** Why the token refuses this mint by `minter` as of a block; null when it takes it. Nothing is sent. */
export async function trialOf(
  client: PublicClient,
  minter: Address,
  token: Address,
  { quantity, blob }: TokenMint,
  blockNumber: bigint,
): Promise<string | null> {
  try {
    const args = [NOBODY, quantity, blob] as const;
    await client.simulateContract({
      abi: ABI,
      address: token,
      functionName: "mintFor",
      args,
      account: minter,
      gas: TRIAL_GAS,
      blockNumber,
    });
    return null;
  } catch (error) {
    const reason = revertReason(error);
    if (reason === null) throw error;
    return reason;
  }
}

/** Whether `account` holds the token's minter role; null when the token has no such role. */
export async function holdsMinterRole(client: PublicClient, token: Address, account: Address): Promise<boolean | null> {
  try {
    const role = await client.readContract({ abi: ABI, address: token, functionName: "MINTER_ROLE" });
    return await client.readContract({ abi: ABI, address: token, functionName: "hasRole", args: [role, account] });
  } catch (error) {
    if (saysNothing(error)) return null;
    throw error;
  }
}

/** Owners of ERC-721 tokens as of a block, by id; of many in one call, whatever contracts the chain has. null where there is no such token. */
export function tokenOwners(
  client: PublicClient,
  token: Address,
  tokenIds: readonly bigint[],
  blockNumber: bigint,
): Promise<(Address | null)[]> {
  return askInBulk(tokenIds, OWNERS_PER_CALL, async (some) => {
    const contracts = some.map((id) => ({ abi: ABI, address: token, functionName: "ownerOf", args: [id] }) as const);
    const answers = await client.multicall({ contracts, deployless: true, batchSize: 0, blockNumber });
    return answers.map((answer) => {
      if (answer.status === "failure" && !saysNothing(answer.error)) throw answer.error;
      const owner = answer.status === "success" ? answer.result : ZERO;
      return BigInt(owner) === 0n ? null : (owner.toLowerCase() as Address);
    });
  });
}
