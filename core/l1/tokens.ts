import { concatHex, encodeFunctionData, hexToBytes, numberToHex, pad, parseAbi, size } from "viem";
import type { Address, Standard } from "../model.ts";
import type { TokenMint } from "../ports.ts";
import { askInBulk } from "./bulk.ts";
import type { L1Client } from "./client.ts";
import { orIfSilent, revertReason, saysNothing } from "./failure.ts";

/** The questions to tokens, and the errors of OpenZeppelin's tokens that refuse a mint. */
const ABI = parseAbi([
  "function mintFor(address to, uint256 quantity, bytes mintingBlob)",
  "function MINTER_ROLE() view returns (bytes32)",
  "function hasRole(bytes32 role, address account) view returns (bool)",
  "function ownerOf(uint256 id) view returns (address)",
  "function balanceOf(address account) view returns (uint256)",
  "function balanceOf(address account, uint256 id) view returns (uint256)",
  "error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)",
  "error OwnableUnauthorizedAccount(address account)",
  "error ERC721InvalidSender(address sender)",
  "error ERC20ExceededCap(uint256 increasedSupply, uint256 cap)",
  "error EnforcedPause()",
]);

/** The most gas of one transaction (EIP-7825). A mint that needs more is impossible. */
const TRIAL_GAS = 16_777_216n;
/** Receiver of a trial mint: an account that cannot refuse. */
const NOBODY = "0x000000000000000000000000000000000000dead";
const ZERO = "0x0000000000000000000000000000000000000000";
/**
 * Questions per call. Where no contract bundles them, the call is a deployment: its code has at most 49,152 bytes
 * (EIP-3860) and its answer 24,576 (EIP-170). A question takes 224 of the first, an answer 160 of the second.
 */
const OWNERS_PER_CALL = 120;

/** Why the token refuses this mint by `minter` as of a block; null when it takes it. Sends nothing. */
export async function trialOf(
  client: L1Client,
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

/** Gas of a mint in a bundle: what a relay gives it. */
const BUNDLED_GAS = 500_000;
/** Mints per bundle: their gas, with some for the calls, is at most a transaction's. */
const MINTS_PER_BUNDLE = 32;
/** Most mints that are tried one by one for their reasons after a bundle refused them. */
const MOST_SINGLE_TRIALS = 256;

/**
 * Takes the minter's place in a bundle, since a token asks who calls. Calldata is the token as a word, then `length:u16
 * call` of each mint; returns a byte for each, 1 when the token took it. Memory holds one call from 0, and the answer
 * from 512:
 *
 * for (i = 0, p = 32; p < calldatasize; i++, p += 2 + length) out[i] = call(500000, token, 0, calldata[p + 2 ..],
 * length)
 */
const BUNDLE_CODE =
  "0x5f60205b368110600f5750610200f35b803560f01c80826002015f375f5f825f5f5f356207a120f1836102000153016002019060010190600356";

/**
 * Why the token refuses each of these mints as of a block, in order; null for those that it takes. Tries them in
 * bundles, one after another. A refused one is tried by itself, with more gas, for its reason.
 */
export async function trialsOf(
  client: L1Client,
  minter: Address,
  token: Address,
  mints: readonly TokenMint[],
  blockNumber: bigint,
): Promise<(string | null)[]> {
  const taken = await askInBulk(mints, MINTS_PER_BUNDLE, (some) => bundleOf(client, minter, token, some, blockNumber));
  const failed = taken.flatMap((isTaken, i) => (isTaken ? [] : [i]));
  const single = failed.slice(0, MOST_SINGLE_TRIALS);
  const reasons = await askInBulk(single, 1, async ([i = 0]) => [
    await trialOf(client, minter, token, mints[i] as TokenMint, blockNumber),
  ]);
  // Either the token takes all of these with more gas, or the node makes no bundles.
  const isRefusing = reasons.some((reason) => reason !== null);
  const rest = isRefusing ? `it fails with ${BUNDLED_GAS} gas, as others of the batch do` : null;
  const found: (string | null)[] = mints.map(() => null);
  for (const [n, i] of failed.entries()) found[i] = n < single.length ? (reasons[n] ?? null) : rest;
  return found;
}

/** Whether the token takes each mint of a bundle; false for all when the node does not answer as it should. */
async function bundleOf(
  client: L1Client,
  minter: Address,
  token: Address,
  mints: readonly TokenMint[],
  blockNumber: bigint,
): Promise<readonly boolean[]> {
  const calls = mints.map(({ quantity, blob }) => {
    const call = encodeFunctionData({ abi: ABI, functionName: "mintFor", args: [NOBODY, quantity, blob] });
    return concatHex([numberToHex(size(call), { size: 2 }), call]);
  });
  const none = mints.map(() => false);
  try {
    const { data = "0x" } = await client.call({
      to: minter,
      data: concatHex([pad(token), ...calls]),
      gas: TRIAL_GAS,
      blockNumber,
      stateOverride: [{ address: minter, code: BUNDLE_CODE }],
    });
    return size(data) === mints.length ? [...hexToBytes(data)].map((taken) => taken === 1) : none;
  } catch {
    // Each is then tried by itself, which shows whether the node answers at all.
    return none;
  }
}

/** Whether `account` holds the token's minter role; null when the token has no such role. */
export async function holdsMinterRole(client: L1Client, token: Address, account: Address): Promise<boolean | null> {
  const read = { abi: ABI, address: token } as const;
  const asked = client
    .readContract({ ...read, functionName: "MINTER_ROLE" })
    .then((role) => client.readContract({ ...read, functionName: "hasRole", args: [role, account] }));
  return orIfSilent(asked, null);
}

/** Owners of ERC-721 tokens as of a block, by id, many in one call; null where there is no such token. */
export function tokenOwners(
  client: L1Client,
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

/** The answer of tokens without a bound where the interface asks for one. */
const UNBOUNDED = (1n << 256n) - 1n;

/** `cap()` */
const CAP = "355274ea";
/** `blobScheme()` */
const BLOB_SCHEME = "1b6f4aac";

/**
 * Most base units of an ERC-20 that can ever exist; null when the token states no bound. A token states none when it
 * answers with anything but one word, or burns its 200,000 gas: a token's fault must not look like a silent chain.
 */
export async function tokenCap(client: L1Client, contract: Address): Promise<bigint | null> {
  const cap = await oneWordOf(client, contract, CAP, 200_000);
  return cap === UNBOUNDED ? null : cap;
}

/** A token's answer to `blobScheme()`; null when it does not answer within the registry's 30,000 gas. */
export function tokenScheme(client: L1Client, contract: Address): Promise<bigint | null> {
  return oneWordOf(client, contract, BLOB_SCHEME, 30_000);
}

/** The answer to a function without arguments, if it is exactly one word. */
async function oneWordOf(client: L1Client, contract: Address, selector: string, gas: number): Promise<bigint | null> {
  const limit = gas.toString(16).padStart(6, "0");
  // mstore(0, selector); if and(staticcall(gas, contract, 28, 4, 0, 32), eq(returndatasize(), 32)) { return(0, 32) }
  // return(0, 0)
  const question = `63${selector}5f5260205f6004601c73${contract.slice(2)}62${limit}fa3d602014166033575f5ff35b60205ff3`;
  const { data } = await client.call({ data: `0x${question}` });
  return data === undefined || data.length !== 66 ? null : BigInt(data);
}

/** An account's base units of a token; for an ERC-721, 1 when it owns the token. */
export async function tokenHolding(
  client: L1Client,
  contract: Address,
  standard: Standard,
  account: Address,
  tokenId: bigint | null,
): Promise<bigint> {
  const read = { abi: ABI, address: contract } as const;
  if (standard === "erc20") return client.readContract({ ...read, functionName: "balanceOf", args: [account] });
  const id = tokenId ?? 0n;
  if (standard === "erc1155") return client.readContract({ ...read, functionName: "balanceOf", args: [account, id] });
  // `ownerOf` reverts for a token that does not exist yet.
  const owner = await orIfSilent(client.readContract({ ...read, functionName: "ownerOf", args: [id] }), null);
  return owner?.toLowerCase() === account.toLowerCase() ? 1n : 0n;
}
