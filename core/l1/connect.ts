import { createClient, http, type LocalAccount, type Transport } from "viem";
import { getChainId, readContract } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { EngineOptions } from "../ledger/options.ts";
import type { Address } from "../model.ts";
import type { L1Committer, L1Owner, L1Reader, PortalIdentity } from "../ports.ts";
import { type PayingContract, requireOwnCode } from "../protocol/own-code.ts";
import { stateCommitmentAbi } from "./abi.ts";
import { type CommitterOptions, ViemCommitter } from "./committer.ts";
import { codeOn, type Finality, type L1Client, type L1Connection } from "./connection.ts";
import { askL1 } from "./failure.ts";
import { ViemReader } from "./reader.ts";

/** Chain and contract to connect to. */
export interface L1Options {
  /** An RPC address, or any viem transport. */
  readonly rpc: string | Transport;
  readonly contract: Address;
  /** The expected chain id. Another one is refused. */
  readonly chainId?: bigint;
  /** Default: the chain's own `finalized` block. */
  readonly finality?: Finality;
  /** Pause between questions for a receipt, in ms; default 1000. */
  readonly pollingMs?: number;
}

/** The functions that settlement contract and mirror share. */
export type OwnerPortal = L1Owner &
  Pick<L1Reader, "settlement" | "verifyVault" | "verifyTransferred" | "withdrawn" | "holding" | "block"> &
  Pick<L1Reader, "blockNumber" | "events" | "rollupData"> &
  Pick<L1Committer, "withdraw" | "mostWithdrawals">;

/** The same with the sending account and its fee bounds. */
export type L1WriteOptions = L1Options & CommitterOptions & { readonly account: LocalAccount };

/**
 * Connects for reading, after a check of the chain and of all code of the contract. Rejects with `l1_failed`.
 *
 * @example
 * const l1 = await readL1({ rpc: "http://127.0.0.1:8545", contract });
 */
export async function readL1(options: L1Options): Promise<ViemReader> {
  return new ViemReader(await connect(options));
}

/**
 * Connects for reading and for committing with `account`. Rejects with `l1_failed`.
 *
 * @example
 * const l1 = await connectL1({ rpc: "http://127.0.0.1:8545", contract, account: operator });
 */
export async function connectL1(options: L1WriteOptions): Promise<ViemCommitter> {
  return new ViemCommitter(await connect(options), options.account, options);
}

/**
 * Connects to the contract that pays a vault, settlement contract or mirror, for the owner's own withdrawal. Rejects
 * with `l1_failed`.
 *
 * @example
 * const portal = await connectPortal({ rpc, contract, chainId: 1n, account: owner });
 * await exitWithKit({ kit, l1: portal, account: owner.address });
 */
export async function connectPortal(options: L1WriteOptions): Promise<OwnerPortal> {
  return new ViemCommitter(await connectTo(options), options.account, options);
}

/** A viem client that repeats unanswered questions, with back-off, before it gives up. */
function l1Client(rpc: string | Transport, pollingMs = 1_000): L1Client {
  const transport = typeof rpc === "string" ? http(rpc, { retryCount: 5, retryDelay: 200, timeout: 20_000 }) : rpc;
  // A settler asks for the newest block again and again. A cached answer would hide a reorganisation.
  return createClient({ transport, pollingInterval: pollingMs, cacheTime: 0 });
}

async function connect(options: L1Options): Promise<L1Connection> {
  const connection = await connectTo(options, "StateCommitment");
  const { client, settlement } = connection;
  const { chainId, contract } = settlement;
  const engineVersion = await askL1(`reading the engine version of ${contract} on chain ${chainId}`, () =>
    readContract(client, { abi: stateCommitmentAbi, address: contract, functionName: "engineVersion" }),
  );
  return { ...connection, settlement: { ...settlement, engineVersion: Number(engineVersion) } };
}

/**
 * Connects to a paying contract on the expected chain, and checks all of its code. Rejects with `l1_failed`.
 *
 * @param name - default either, a settlement contract or a mirror
 */
export async function connectTo(options: L1Options, name?: PayingContract): Promise<L1Connection> {
  const { finality = "finalized", pollingMs = 1_000 } = options;
  const client = l1Client(options.rpc, pollingMs);
  const chainId = BigInt(await askL1("asking the RPC for its chain id", () => getChainId(client)));
  if (options.chainId !== undefined && options.chainId !== chainId)
    throw new MintmarkError("l1_failed", `the RPC serves chain ${chainId}, not ${options.chainId}`);
  const contract = options.contract.toLowerCase() as Address;
  await requireOwnCode(codeOn(client), { chainId, contract }, name);
  // A mirror states no version. Mirrors exist since this engine's version, which pays all standards.
  return { client, settlement: { chainId, contract, engineVersion: 5 }, finality, pollingMs };
}

/**
 * Checks wallet contracts' signatures for an engine: each chain for its own wallets. Without a chain, no wallet has
 * signed.
 *
 * @example
 * const engine = await openEngine({ ...options, verifySignature: signatureChecks([l1, mirror]) });
 */
export function signatureChecks(
  chains: readonly (Pick<L1Reader, "verifySignature"> & { readonly settlement: PortalIdentity })[],
): NonNullable<EngineOptions["verifySignature"]> {
  const byId = new Map(chains.map((chain) => [chain.settlement.chainId, chain]));
  return async (chainId, ...signed) => (await byId.get(chainId)?.verifySignature(...signed)) ?? false;
}
