import type { Address } from "viem";
import type { BlobScheme, Standard } from "../../core/index.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { type ContractName, readArtifact } from "./artifact.ts";
import { type Deployer, deployContract, send } from "./deployer.ts";
import type { TokenRecord } from "./record.ts";

export interface Royalty {
  readonly receiver: Address;
  readonly fraction: bigint;
}

/** A token of this project to deploy and register. */
export interface TokenConfig {
  readonly standard: Standard;
  readonly name: string;
  readonly symbol: string;
  /** ERC-20: most base units; default no bound. */
  readonly cap?: bigint;
  /** ERC-20: base units of one unit at the engine; default 1. */
  readonly quantum?: bigint;
  /** ERC-721: prefix of `tokenURI`; ERC-1155: the `{id}` template. Default none. */
  readonly uri?: string;
  /** ERC-721: who gets how many ten-thousandths of a sale (ERC-2981); default nobody. */
  readonly royalty?: Royalty;
  /** ERC-721 and ERC-1155; default `mintmark`. */
  readonly blobScheme?: BlobScheme;
  readonly admin: Address;
  /** Fixes the settlement contract as the only minter for ever; default true, because owners rely on it. */
  readonly lockMinter?: boolean;
}

const CONTRACT: Readonly<Record<Standard, ContractName>> = {
  erc20: "MintableERC20",
  erc721: "MintableERC721",
  erc1155: "MintableERC1155",
};
const STANDARD_VALUE: Readonly<Record<Standard, number>> = { erc20: 1, erc721: 2, erc1155: 3 };
const SCHEME_VALUE: Readonly<Record<BlobScheme, number>> = { imx: 0, mintmark: 1 };
const NO_CAP = (1n << 256n) - 1n;
const NO_ROYALTY: Royalty = { receiver: "0x0000000000000000000000000000000000000000", fraction: 0n };

/** Deploys a token whose minter is the settlement contract, or a mirror of it, registers it there, and locks the minter role. */
export async function deployToken(by: Deployer, settlement: Address, config: TokenConfig): Promise<TokenRecord> {
  const { standard, name, symbol, quantum = 1n, blobScheme = "mintmark" } = config;
  const contract = CONTRACT[standard];
  const { address, blockNumber, gasUsed } = await deployContract(by, contract, constructorArgs(settlement, config));
  await registerToken(by, settlement, { standard, chainId: BigInt(by.chainId), address, quantum });
  const minterLocked = config.lockMinter ?? true;
  // Locked by the administrator, which is another account where a multisig holds the role.
  const canLock = minterLocked && config.admin.toLowerCase() === by.account.address.toLowerCase();
  const token = await readArtifact(contract);
  const isLocked = (await by.client.readContract({
    abi: token.abi,
    address,
    functionName: "minterLocked",
  })) as boolean;
  if (canLock && !isLocked) await send(by, contract, address, "lockMinter", []);
  return {
    standard,
    address,
    name,
    symbol,
    quantum,
    blobScheme,
    minterLocked: canLock || isLocked,
    deployedAtBlock: blockNumber,
    gasUsed,
  };
}

export interface Registration {
  readonly standard: Standard;
  /** The chain that the token lives on. */
  readonly chainId: bigint;
  readonly address: Address;
  readonly quantum: bigint;
}

/** Registers a token with a settlement contract or a mirror on this chain, unless an interrupted run, or anybody else, has done so. */
export async function registerToken(by: Deployer, contract: Address, token: Registration): Promise<void> {
  const { standard, chainId, address, quantum } = token;
  const { abi } = await readArtifact("StateCommitment");
  const args = [chainId, BigInt(assetType(standard, address, quantum))];
  const registered = await by.client.readContract({ abi, address: contract, functionName: "asset", args });
  if ((registered as readonly [number, Address, bigint])[0] !== 0) return;
  const registration = [STANDARD_VALUE[standard], chainId, address, quantum];
  await send(by, "StateCommitment", contract, "registerAsset", registration);
}

/** Deploys, by `create`, the tokens that have no record with their standard and symbol; each is recorded before the next. */
export async function deployMissing(
  wanted: readonly TokenConfig[],
  recorded: readonly TokenRecord[],
  create: (token: TokenConfig) => Promise<TokenRecord>,
  record: (tokens: TokenRecord[]) => Promise<void>,
): Promise<void> {
  const tokens = [...recorded];
  for (const token of wanted) {
    if (tokens.some(({ standard, symbol }) => standard === token.standard && symbol === token.symbol)) continue;
    tokens.push(await create(token));
    await record([...tokens]);
  }
}

function constructorArgs(settlement: Address, config: TokenConfig): readonly unknown[] {
  const { standard, name, symbol, admin, uri = "", cap = NO_CAP, quantum = 1n, blobScheme = "mintmark" } = config;
  if (standard === "erc20") return [name, symbol, cap, quantum, admin, settlement];
  const scheme = SCHEME_VALUE[blobScheme];
  return standard === "erc721"
    ? [name, symbol, uri, scheme, config.royalty ?? NO_ROYALTY, admin, settlement]
    : [name, symbol, uri, scheme, admin, settlement];
}
