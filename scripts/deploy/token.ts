import type { Address, Hash } from "viem";
import { SCHEME_VALUE, STANDARD_VALUE } from "../../core/l1/arguments.ts";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { type OwnToken, TOKEN_CONTRACT, tokenArguments } from "../../core/l1/own-token.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { type Deployer, deployContract, lower, send } from "./deployer.ts";
import { isRecorded, type TokenRecord } from "./record.ts";

export interface TokenConfig extends OwnToken {
  /**
   * Makes the settlement contract the only minter forever; default true, because owners rely on it.
   */
  readonly lockMinter?: boolean;
}

/** OpenZeppelin's `DEFAULT_ADMIN_ROLE`. */
const ADMIN_ROLE = `0x${"00".repeat(32)}`;

/**
 * Deploys a token with the settlement contract or a mirror as minter, registers it there, and locks
 * the minter role.
 */
export async function deployToken(
  by: Deployer,
  settlement: Address,
  config: TokenConfig,
): Promise<TokenRecord> {
  const {
    standard,
    name,
    symbol,
    quantum = 1n,
    mintingBlobScheme = "mintmark",
    lockMinter: minterLocked = true,
  } = config;
  const { contract, args } = tokenCreation(by, settlement, config);
  const deployed = await deployContract(by, contract, args);
  const { address } = deployed;
  await registerToken(by, settlement, {
    standard,
    chainId: BigInt(by.chainId),
    address,
    quantum,
    mintingBlobScheme,
  });
  if (minterLocked) await lockMinter(by, contract, address, lower(config.admin));
  return { standard, name, symbol, quantum, mintingBlobScheme, minterLocked, ...deployed };
}

/** The contract of a token, and its constructor's arguments. */
export function tokenCreation(by: Deployer, settlement: Address, config: TokenConfig) {
  // Only an administrator can lock the minter. The deployer starts as administrator, and transfers
  // the role afterwards.
  const { lockMinter: locks = true } = config;
  const admin = locks ? by.account.address : config.admin;
  return {
    contract: TOKEN_CONTRACT[config.standard],
    args: tokenArguments(settlement, { ...config, admin }),
  };
}

/** Locks the minter and transfers the administration, unless an interrupted run did. */
async function lockMinter(
  by: Deployer,
  contract: ContractName,
  address: Address,
  admin: Address,
): Promise<void> {
  const { abi } = readArtifact(contract);
  const ask = async (functionName: string, args: readonly unknown[] = []) =>
    (await by.client.readContract({ abi, address, functionName, args })) as boolean;
  if (!(await ask("minterLocked"))) await send(by, contract, address, "lockMinter", []);
  const deployer = lower(by.account.address);
  if (admin === deployer) return;
  if (!(await ask("hasRole", [ADMIN_ROLE, admin])))
    await send(by, contract, address, "grantRole", [ADMIN_ROLE, admin]);
  if (!(await ask("hasRole", [ADMIN_ROLE, deployer]))) return;
  await send(by, contract, address, "renounceRole", [ADMIN_ROLE, deployer]);
}

/** A token on its chain, with the scheme that it states. */
export type Registration = Pick<
  TokenRecord,
  "standard" | "address" | "quantum" | "mintingBlobScheme"
> & {
  readonly chainId: bigint;
};

/**
 * Registers a token with a settlement contract or a mirror on this chain, unless it is registered.
 * Resolves with the transaction, if there is one.
 */
export async function registerToken(
  by: Deployer,
  contract: Address,
  token: Registration,
): Promise<Hash | undefined> {
  const { standard, chainId, address, quantum, mintingBlobScheme } = token;
  const { abi } = readArtifact("StateCommitment");
  const args = [chainId, BigInt(assetType(standard, address, quantum))];
  const registered = await by.client.readContract({
    abi,
    address: contract,
    functionName: "asset",
    args,
  });
  if ((registered as readonly [number, Address, bigint])[0] !== 0) return undefined;
  // This project's ERC-20 states `mintmark`. The registry has no scheme for another chain's token.
  const stated = standard === "erc20" ? "mintmark" : mintingBlobScheme;
  const scheme = SCHEME_VALUE[chainId === BigInt(by.chainId) ? stated : "imx"];
  const registration = [STANDARD_VALUE[standard], chainId, address, quantum, scheme];
  return send(by, "StateCommitment", contract, "registerAsset", registration);
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
