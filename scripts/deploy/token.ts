import type { Address } from "viem";
import type { BlobScheme, Standard } from "../../core/index.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { type Deployer, deployContract, lower, send } from "./deployer.ts";
import { isRecorded, type TokenRecord } from "./record.ts";

export interface Royalty {
  readonly receiver: Address;
  readonly fraction: bigint;
}

/** A token of this project to deploy and register. */
export interface TokenConfig {
  readonly standard: Standard;
  readonly name: string;
  readonly symbol: string;
  /** ERC-20: most base units; default no limit. */
  readonly cap?: bigint;
  /** ERC-20: base units of one quantized unit; default 1. */
  readonly quantum?: bigint;
  /** ERC-721: prefix of `tokenURI`; ERC-1155: the `{id}` template. Default none. */
  readonly uri?: string;
  /** ERC-721: receiver and ten-thousandths of a sale (ERC-2981); default none. */
  readonly royalty?: Royalty;
  /** ERC-721 and ERC-1155; default `mintmark`. */
  readonly blobScheme?: OwnScheme;
  readonly admin: Address;
  /** The issuer whose consent each batch with its mints needs: a key's account or a wallet contract; default none. */
  readonly issuer?: Address;
  /** Owners can give vaults away before they withdraw, where the settlement contract has transfers; default false. */
  readonly transferable?: boolean;
  /** Makes the settlement contract the only minter forever; default true, because owners rely on it. */
  readonly lockMinter?: boolean;
}

const CONTRACT: Readonly<Record<Standard, ContractName>> = {
  erc20: "MintableERC20",
  erc721: "MintableERC721",
  erc1155: "MintableERC1155",
};
const STANDARD_VALUE: Readonly<Record<Standard, number>> = { erc20: 1, erc721: 2, erc1155: 3 };
const SCHEME_VALUE: Readonly<Record<OwnScheme, number>> = { imx: 0, mintmark: 1 };
/** The schemes of this project's tokens. */
type OwnScheme = Exclude<BlobScheme, "raw32">;
/** OpenZeppelin's `DEFAULT_ADMIN_ROLE`. */
const ADMIN_ROLE = `0x${"00".repeat(32)}`;
const NO_CAP = (1n << 256n) - 1n;
const NOBODY = "0x0000000000000000000000000000000000000000";
const NO_ROYALTY: Royalty = { receiver: NOBODY, fraction: 0n };

/**
 * Deploys a token with the settlement contract or a mirror as minter, registers it there, and locks the minter role.
 */
export async function deployToken(by: Deployer, settlement: Address, config: TokenConfig): Promise<TokenRecord> {
  const { standard, name, symbol, quantum = 1n, blobScheme = "mintmark" } = config;
  const { contract, args } = tokenCreation(by, settlement, config);
  const { address, blockNumber, gasUsed } = await deployContract(by, contract, args);
  await registerToken(by, settlement, { standard, chainId: BigInt(by.chainId), address, quantum, blobScheme });
  const minterLocked = locks(config);
  if (minterLocked) await lockMinter(by, contract, address, lower(config.admin));
  return {
    standard,
    address,
    name,
    symbol,
    quantum,
    blobScheme,
    minterLocked,
    deployedAtBlock: blockNumber,
    gasUsed,
  };
}

/** The contract of a token, and its constructor's arguments. */
export function tokenCreation(by: Deployer, settlement: Address, config: TokenConfig) {
  // Only an administrator can lock the minter. The deployer starts as administrator, and transfers the role afterwards.
  const admin = locks(config) ? by.account.address : config.admin;
  return { contract: CONTRACT[config.standard], args: constructorArgs(settlement, { ...config, admin }) };
}

function locks({ lockMinter = true }: TokenConfig): boolean {
  return lockMinter;
}

/** Locks the minter and transfers the administration, unless an interrupted run did. */
async function lockMinter(by: Deployer, contract: ContractName, address: Address, admin: Address): Promise<void> {
  const { abi } = readArtifact(contract);
  const ask = async (functionName: string, args: readonly unknown[] = []) =>
    (await by.client.readContract({ abi, address, functionName, args })) as boolean;
  if (!(await ask("minterLocked"))) await send(by, contract, address, "lockMinter", []);
  const deployer = lower(by.account.address);
  if (admin === deployer) return;
  if (!(await ask("hasRole", [ADMIN_ROLE, admin]))) await send(by, contract, address, "grantRole", [ADMIN_ROLE, admin]);
  if (!(await ask("hasRole", [ADMIN_ROLE, deployer]))) return;
  await send(by, contract, address, "renounceRole", [ADMIN_ROLE, deployer]);
}

export interface Registration {
  readonly standard: Standard;
  /** The chain of the token. */
  readonly chainId: bigint;
  readonly address: Address;
  readonly quantum: bigint;
  /** The scheme that the token states. */
  readonly blobScheme: OwnScheme;
}

/** Registers a token with a settlement contract or a mirror on this chain, unless it is registered. */
export async function registerToken(by: Deployer, contract: Address, token: Registration): Promise<void> {
  const { standard, chainId, address, quantum, blobScheme } = token;
  const { abi } = readArtifact("StateCommitment");
  const args = [chainId, BigInt(assetType(standard, address, quantum))];
  const registered = await by.client.readContract({ abi, address: contract, functionName: "asset", args });
  if ((registered as readonly [number, Address, bigint])[0] !== 0) return;
  // This project's ERC-20 states `mintmark`. The registry has no scheme for another chain's token.
  const stated = standard === "erc20" ? "mintmark" : blobScheme;
  const scheme = SCHEME_VALUE[chainId === BigInt(by.chainId) ? stated : "imx"];
  const registration = [STANDARD_VALUE[standard], chainId, address, quantum, scheme];
  await send(by, "StateCommitment", contract, "registerAsset", registration);
}

/** Deploys, by `create`, the tokens without a record, and records each before the next. */
export async function deployMissing(
  wanted: readonly TokenConfig[],
  recorded: readonly TokenRecord[],
  create: (token: TokenConfig) => Promise<TokenRecord>,
  record: (tokens: TokenRecord[]) => Promise<void>,
): Promise<void> {
  const tokens = [...recorded];
  for (const token of wanted) {
    if (isRecorded(tokens, token)) continue;
    tokens.push(await create(token));
    await record([...tokens]);
  }
}

function constructorArgs(settlement: Address, config: TokenConfig): readonly unknown[] {
  const { standard, name, symbol, admin, uri = "", cap = NO_CAP, quantum = 1n, blobScheme = "mintmark" } = config;
  const { issuer = NOBODY, transferable = false } = config;
  if (standard === "erc20") return [name, symbol, cap, quantum, admin, settlement, issuer, transferable];
  const scheme = SCHEME_VALUE[blobScheme];
  return standard === "erc721"
    ? [name, symbol, uri, scheme, config.royalty ?? NO_ROYALTY, admin, settlement, issuer, transferable]
    : [name, symbol, uri, scheme, admin, settlement, issuer, transferable];
}
