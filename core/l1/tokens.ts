import type { ContractFunctionReturnType } from "viem";
import {
  concatHex,
  encodeFunctionData,
  hexToBytes,
  numberToHex,
  pad,
  parseAbi,
  size,
  zeroAddress,
} from "viem";
import { call, multicall, readContract, simulateContract } from "viem/actions";
import { BUNDLED_GAS, TRANSACTION_GAS } from "../gas.ts";
import { type Address, MINTING_BLOB_SCHEMES, type MintingBlobScheme } from "../model.ts";
import type { L1Reader, L1Tokens, TokenMint } from "../ports.ts";
import { MAX_UINT256 } from "../protocol/bounds.ts";
import { SCHEME_VALUE } from "./arguments.ts";
import type { L1Client, L1Connection } from "./connection.ts";
import { askInBulk, askL1, orIfSilent, orReason, saysNothing } from "./connection.ts";

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
/** Optional views of a token. Foreign tokens need none of them. */
const OPTIONAL = parseAbi([
  "function name() view returns (string)",
  "function symbol() view returns (string)",
  "function decimals() view returns (uint8)",
  "function minterLocked() view returns (bool)",
]);

/** Receiver of a trial mint: an account that cannot refuse. */
const NOBODY = "0x000000000000000000000000000000000000dead";
/**
 * Questions per call. Where no contract bundles them, the call is a deployment: its code has at
 * most 49,152 bytes (EIP-3860) and its answer 24,576 (EIP-170). A question takes 224 of the first,
 * an answer 160 of the second.
 */
const OWNERS_PER_CALL = 120;

/** Mints per bundle: their gas, with some for the calls, is at most a transaction's. */
const MINTS_PER_BUNDLE = 32;
/** Most mints that are tried one by one for their reasons after a bundle refused them. */
const MOST_SINGLE_TRIALS = 256;

/**
 * Takes the minter's place in a bundle, since a token asks who calls. Calldata is the token as a
 * word, then `length:u16 call` of each mint; returns a byte for each, 1 when the token took it.
 * Memory holds one call from 0, and the answer from 512:
 *
 * for (i = 0, p = 32; p < calldatasize; i++, p += 2 + length) out[i] = call(500000, token, 0,
 * calldata[p + 2 ..], length)
 */
const BUNDLE_CODE =
  "0x5f60205b368110600f5750610200f35b803560f01c80826002015f375f5f825f5f5f356207a120f1836102000153016002019060010190600356";

/** `cap()` */
const CAP = "355274ea";
/** `mintingBlobScheme()` */
const MINTING_BLOB_SCHEME = "58a0993e";

export function schemeOf(value: number | bigint | null): MintingBlobScheme | null {
  return (
    MINTING_BLOB_SCHEMES.find((name) => value !== null && SCHEME_VALUE[name] === Number(value)) ??
    null
  );
}

/** Reads of tokens, by the contract that mints them. */
export interface TokenReads extends L1Tokens, Pick<L1Reader, "token" | "supplyCap" | "holding"> {
  /**
   * The minting blob scheme that a token states to the registry, which gives it 30,000 gas; null
   * when it states none.
   */
  statedScheme(contract: Address): Promise<MintingBlobScheme | null>;
}

export function tokenReads(connection: L1Connection): TokenReads {
  const { client, settlement } = connection;
  const tryMint: L1Tokens["tryMint"] = (token, { quantity, mintingBlob }, blockNumber) => {
    const mint = {
      abi: ABI,
      address: token,
      functionName: "mintFor",
      args: [NOBODY, quantity, mintingBlob],
    } as const;
    const as = { account: settlement.contract, gas: TRANSACTION_GAS, blockNumber };
    return askL1(`trying a mint of ${token}`, () =>
      orReason(simulateContract(client, { ...mint, ...as }).then(() => null)),
    );
  };

  return {
    async token(contract, standard) {
      const [name, symbol, decimals, minterLocked] = await Promise.all([
        says(client, contract, "name", ""),
        says(client, contract, "symbol", ""),
        standard === "erc20" ? says(client, contract, "decimals", 0) : 0,
        says(client, contract, "minterLocked", null),
      ]);
      return { name, symbol, decimals, minterLocked };
    },

    async statedScheme(contract) {
      return schemeOf(
        await oneWordOf(client, contract, "minting blob scheme", MINTING_BLOB_SCHEME, 30_000),
      );
    },

    /**
     * A token states no bound when it answers with anything but one word, or burns its 200,000 gas:
     * a token's fault must not look like a silent chain. The greatest word says that there is no
     * bound.
     */
    async supplyCap(contract) {
      const cap = await oneWordOf(client, contract, "cap", CAP, 200_000);
      return cap === MAX_UINT256 ? null : cap;
    },

    holding(contract, standard, account, tokenId) {
      const read = { abi: ABI, address: contract } as const;
      const id = tokenId ?? 0n;
      return askL1(`asking ${contract} what ${account} holds`, async () => {
        if (standard === "erc20")
          return readContract(client, { ...read, functionName: "balanceOf", args: [account] });
        if (standard === "erc1155")
          return readContract(client, { ...read, functionName: "balanceOf", args: [account, id] });
        // `ownerOf` reverts for a token that does not exist yet.
        const owner = await orIfSilent(
          readContract(client, { ...read, functionName: "ownerOf", args: [id] }),
          null,
        );
        return owner?.toLowerCase() === account.toLowerCase() ? 1n : 0n;
      });
    },

    isMinter(token) {
      const read = { abi: ABI, address: token } as const;
      const { contract } = settlement;
      return askL1(`asking ${token} for its minter`, () => {
        const asked = readContract(client, { ...read, functionName: "MINTER_ROLE" }).then((role) =>
          readContract(client, { ...read, functionName: "hasRole", args: [role, contract] }),
        );
        return orIfSilent(asked, null);
      });
    },

    tokenOwners(token, tokenIds, at) {
      return askInBulk(`asking ${token} for owners`, tokenIds, OWNERS_PER_CALL, async (some) => {
        const contracts = some.map(
          (id) => ({ abi: ABI, address: token, functionName: "ownerOf", args: [id] }) as const,
        );
        const many = { contracts, deployless: true, batchSize: 0, blockNumber: at };
        const answers = await multicall(client, many);
        return answers.map((answer) => {
          if (answer.status === "failure" && !saysNothing(answer.error)) throw answer.error;
          const owner = answer.status === "success" ? answer.result : zeroAddress;
          return BigInt(owner) === 0n ? null : (owner.toLowerCase() as Address);
        });
      });
    },

    tryMint,

    /** Tries them in bundles. A refused one is tried by itself, with more gas, for its reason. */
    async tryMints(token, mints, at) {
      const doing = `trying mints of ${token}`;
      const taken = await askInBulk(doing, mints, MINTS_PER_BUNDLE, (some) =>
        bundleOf(connection, token, some, at),
      );
      const failed = taken.flatMap((isTaken, i) => (isTaken ? [] : [i]));
      const single = failed.slice(0, MOST_SINGLE_TRIALS);
      const reasons = await askInBulk(doing, single, 1, async ([i = 0]) => [
        await tryMint(token, mints[i]!, at),
      ]);
      // Either the token takes all of these with more gas, or the node makes no bundles.
      const isRefusing = reasons.some((reason) => reason !== null);
      const rest = isRefusing
        ? `it fails with ${BUNDLED_GAS} gas, as others of the batch do`
        : null;
      const found: (string | null)[] = mints.map(() => null);
      for (const [n, i] of failed.entries())
        found[i] = n < single.length ? (reasons[n] ?? null) : rest;
      return found;
    },
  };
}

/** `otherwise` when the token lacks the view. A silent chain is still an error. */
async function says<K extends (typeof OPTIONAL)[number]["name"], D>(
  client: L1Client,
  address: Address,
  functionName: K,
  otherwise: D,
) {
  return askL1(`asking ${address} for its ${functionName}`, () =>
    orIfSilent<unknown, D>(
      readContract(client, { abi: OPTIONAL, address, functionName }),
      otherwise,
    ),
  ) as Promise<ContractFunctionReturnType<typeof OPTIONAL, "view", K> | D>;
}

/** The answer to a function without arguments; null unless it is exactly one word. */
function oneWordOf(
  client: L1Client,
  contract: Address,
  what: string,
  selector: string,
  gas: number,
): Promise<bigint | null> {
  const limit = gas.toString(16).padStart(6, "0");
  // mstore(0, selector); if and(staticcall(gas, contract, 28, 4, 0, 32), eq(returndatasize(),
  // 32)) { return(0, 32) } return(0, 0)
  const question = `63${selector}5f5260205f6004601c73${contract.slice(2)}62${limit}fa3d602014166033575f5ff35b60205ff3`;
  return askL1(`asking ${contract} for its ${what}`, async () => {
    const { data } = await call(client, { data: `0x${question}` });
    return data === undefined || data.length !== 66 ? null : BigInt(data);
  });
}

/**
 * Whether the token takes each mint of a bundle; false for all when the node does not answer as it
 * should.
 */
async function bundleOf(
  { client, settlement: { contract: minter } }: L1Connection,
  token: Address,
  mints: readonly TokenMint[],
  blockNumber: bigint,
): Promise<boolean[]> {
  const calls = mints.map(({ quantity, mintingBlob }) => {
    const data = encodeFunctionData({
      abi: ABI,
      functionName: "mintFor",
      args: [NOBODY, quantity, mintingBlob],
    });
    return concatHex([numberToHex(size(data), { size: 2 }), data]);
  });
  const none = mints.map(() => false);
  try {
    const { data = "0x" } = await call(client, {
      to: minter,
      data: concatHex([pad(token), ...calls]),
      gas: TRANSACTION_GAS,
      blockNumber,
      stateOverride: [{ address: minter, code: BUNDLE_CODE }],
    });
    return size(data) === mints.length ? [...hexToBytes(data)].map((taken) => taken === 1) : none;
  } catch {
    // Each is then tried by itself, which shows whether the node answers at all.
    return none;
  }
}
