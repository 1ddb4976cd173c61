import * as viem from "viem";
import type { Address, MintingBlobScheme, Standard, Uuid } from "../model.ts";
import { MAX_UINT256 } from "../protocol/bounds.ts";
import { uuidText } from "../store/binary.ts";
import { stateCommitmentAbi } from "./abi.ts";
import { SCHEME_VALUE, STANDARD_VALUE } from "./arguments.ts";
import { type ContractName, readArtifact } from "./artifact.ts";

export interface Royalty {
  /** The zero address for none. */
  readonly receiver: Address;
  /** Ten-thousandths of a sale. */
  readonly fraction: bigint;
}

/** The schemes of this project's tokens. */
export type OwnScheme = Exclude<MintingBlobScheme, "raw32">;

/** A token of this project. */
export interface OwnToken {
  readonly standard: Standard;
  readonly name: string;
  readonly symbol: string;
  /** ERC-20: most base units; default no limit. */
  readonly cap?: bigint;
  /** ERC-20: base units of one quantized unit; default 1. */
  readonly quantum?: bigint;
  /** ERC-721: prefix of `tokenURI`; ERC-1155: the `{id}` template. Default none. */
  readonly uri?: string;
  /** ERC-721 and ERC-1155: receiver and ten-thousandths of a sale (ERC-2981); default none. */
  readonly royalty?: Royalty;
  /** ERC-721 and ERC-1155; default `mintmark`. */
  readonly mintingBlobScheme?: OwnScheme;
  readonly admin: Address;
  /**
   * The issuer whose consent each batch with its mints needs: a key's account or a wallet contract;
   * default none.
   */
  readonly issuer?: Address;
  /**
   * Owners can give vaults away before they withdraw, where the settlement contract has transfers;
   * default false.
   */
  readonly transferable?: boolean;
}

export const TOKEN_CONTRACT: Readonly<Record<Standard, ContractName>> = {
  erc20: "MintableERC20",
  erc721: "MintableERC721",
  erc1155: "MintableERC1155",
};
export const NO_CAP = MAX_UINT256;
const NO_ROYALTY: Royalty = { receiver: viem.zeroAddress, fraction: 0n };

/** The constructor's arguments of a token whose minter is a settlement contract or a mirror. */
export function tokenArguments(minter: Address, token: OwnToken): readonly unknown[] {
  const {
    standard,
    name,
    symbol,
    admin,
    uri = "",
    cap = NO_CAP,
    quantum = 1n,
    mintingBlobScheme = "mintmark",
  } = token;
  const { issuer = viem.zeroAddress, transferable = false, royalty = NO_ROYALTY } = token;
  if (standard === "erc20")
    return [name, symbol, cap, quantum, admin, minter, issuer, transferable];
  return [
    name,
    symbol,
    uri,
    SCHEME_VALUE[mintingBlobScheme],
    royalty,
    admin,
    minter,
    issuer,
    transferable,
  ];
}

/** The application that a new token is for. */
export interface Destination {
  readonly applicationId: Uuid;
  /** Tells its tokens apart. */
  readonly salt: Uuid;
}

/**
 * The id of a new token's asset. It is another one for each application, so nobody can take that of
 * another.
 */
export function assetIdOf({ applicationId, salt }: Destination): Uuid {
  const hash = viem.keccak256(bytesOf(applicationId, salt));
  // A UUID of version 8.
  return uuidText(
    viem.hexToBytes(`${viem.slice(hash, 0, 6)}8${hash.slice(15, 18)}8${hash.slice(19, 34)}`),
  );
}

/**
 * The input of the transaction that creates a token: the creation code, the constructor's
 * arguments, and 32 bytes that the constructor does not read. They name the token's destination, so
 * whoever signs the transaction says whose it is.
 */
export function tokenCreationInput(
  minter: Address,
  token: OwnToken,
  { applicationId, salt }: Destination,
): viem.Hex {
  const { bytecode, inputs } = constructorOf(token.standard);
  const values = viem.encodeAbiParameters(inputs, tokenArguments(minter, token));
  return viem.concatHex([bytecode, values, bytesOf(applicationId, salt)]);
}

/**
 * Reads a transaction's input; null unless {@link tokenCreationInput} makes the same for this
 * minter.
 */
export function readTokenCreation(
  minter: Address,
  input: viem.Hex,
): (OwnToken & Destination) | null {
  for (const standard of ["erc20", "erc721", "erc1155"] as const) {
    const { bytecode, inputs } = constructorOf(standard);
    if (!input.startsWith(bytecode) || viem.size(input) < viem.size(bytecode) + 32) continue;
    try {
      const values = viem.decodeAbiParameters(
        inputs,
        viem.slice(input, viem.size(bytecode)),
      ) as readonly unknown[];
      const given = Object.fromEntries(inputs.map((input, i) => [nameOf(input), values[i]]));
      const mintingBlobScheme = given.scheme === SCHEME_VALUE.imx ? "imx" : "mintmark";
      const token = { ...given, standard, mintingBlobScheme } as OwnToken;
      const { admin } = token;
      const named = viem.hexToBytes(viem.slice(input, -32));
      const destination = {
        applicationId: uuidText(named.subarray(0, 16)),
        salt: uuidText(named.subarray(16)),
      };
      if (tokenCreationInput(minter, token, destination) === input)
        return { ...token, ...destination, admin: admin.toLowerCase() as Address };
    } catch {
      // Arguments that are none.
    }
  }
  return null;
}

function nameOf({ name = "" }: viem.AbiParameter): string {
  return name === "baseUri" ? "uri" : name.replace(/_$/, "");
}

function constructorOf(standard: Standard): {
  readonly bytecode: viem.Hex;
  readonly inputs: readonly viem.AbiParameter[];
} {
  const { bytecode, abi } = readArtifact(TOKEN_CONTRACT[standard]);
  const made = abi.find((each) => each.type === "constructor");
  return { bytecode, inputs: made?.inputs ?? [] };
}

function bytesOf(applicationId: Uuid, salt: Uuid): viem.Hex {
  return `0x${(applicationId + salt).replaceAll("-", "")}`;
}

/** Calldata of `lockMinter`, for the token's admin. */
export const LOCK_MINTER: viem.Hex = viem.encodeFunctionData({
  abi: viem.parseAbi(["function lockMinter()"]),
});

/**
 * Calldata that registers a token of this project with the settlement contract of its chain.
 * Anybody may send it.
 */
export function registrationCalldata(
  chainId: bigint,
  contract: Address,
  token: OwnToken,
): viem.Hex {
  const { standard, quantum = 1n, mintingBlobScheme = "mintmark" } = token;
  const args = [
    STANDARD_VALUE[standard],
    chainId,
    contract,
    quantum,
    SCHEME_VALUE[mintingBlobScheme],
  ] as const;
  return viem.encodeFunctionData({ abi: stateCommitmentAbi, functionName: "registerAsset", args });
}
