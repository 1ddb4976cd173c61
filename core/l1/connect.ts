import { createPublicClient, http, type LocalAccount, type PublicClient, type Transport } from "viem";
import { MintmarkError } from "../errors.ts";
import type { Address } from "../model.ts";
import type { L1Committer, L1Owner, L1Reader } from "../ports.ts";
import { stateCommitmentAbi } from "./abi.ts";
import { ViemCommitter } from "./committer.ts";
import type { FeeOptions, Finality, L1Connection } from "./connection.ts";
import { askL1 } from "./failure.ts";
import { ViemReader } from "./reader.ts";

/** Which chain and contract to connect to. */
export interface L1Options {
  /** An RPC address, or any viem transport. */
  readonly rpc: string | Transport;
  /** The settlement contract. */
  readonly contract: Address;
  /** Refuses to connect to a chain of another id. */
  readonly chainId?: bigint;
  /** Default: the chain's own `finalized` block. */
  readonly finality?: Finality;
  /** Milliseconds between questions for a receipt; default 1000. */
  readonly pollingMs?: number;
}

/** The exit of the settlement contract and of a mirror: the same functions in both. */
export type OwnerPortal = L1Owner &
  Pick<L1Reader, "settlement" | "verifyVault" | "holding" | "block"> &
  Pick<L1Committer, "withdraw" | "mostWithdrawals">;

/** The same with the account that sends transactions, and what they may cost. */
export type L1WriteOptions = L1Options & FeeOptions & { readonly account: LocalAccount };

/**
 * Connects for reading, after making sure that the chain and the contract are the ones meant. Rejects with
 * `l1_failed`.
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

/** Connects to what pays a vault, for its owner's own withdrawal with `account`: the settlement contract, or a mirror of it. Rejects with `l1_failed`. */
export async function connectPortal(options: L1WriteOptions): Promise<OwnerPortal> {
  return new ViemCommitter(await connectTo(options), options.account, options);
}

/** A viem client that repeats what a busy or absent node did not answer, with back-off, before it gives up. */
export function l1Client(rpc: string | Transport, pollingMs = 1_000): PublicClient {
  const transport = typeof rpc === "string" ? http(rpc, { retryCount: 5, retryDelay: 200, timeout: 20_000 }) : rpc;
  // A settler asks for the newest block again and again: an answer from a cache would hide a reorganisation.
  return createPublicClient({ transport, pollingInterval: pollingMs, cacheTime: 0 });
}

async function connect(options: L1Options): Promise<L1Connection> {
  const connection = await connectTo(options);
  const { client, settlement } = connection;
  const { chainId, contract } = settlement;
  const engineVersion = await askL1(`reading the engine version of ${contract} on chain ${chainId}`, () =>
    client.readContract({ abi: stateCommitmentAbi, address: contract, functionName: "engineVersion" }),
  );
  return { ...connection, settlement: { ...settlement, engineVersion: Number(engineVersion) } };
}

/** One connection to a contract that pays withdrawals, a settlement contract or a mirror, on the chain that is meant. Rejects with `l1_failed`. */
export async function connectTo(options: L1Options): Promise<L1Connection> {
  const { finality = "finalized", pollingMs = 1_000 } = options;
  const client = l1Client(options.rpc, pollingMs);
  const chainId = BigInt(await askL1("asking for the chain id", () => client.getChainId()));
  if (options.chainId !== undefined && options.chainId !== chainId) {
    throw new MintmarkError("l1_failed", `the RPC serves chain ${chainId}, not ${options.chainId}`);
  }
  const contract = options.contract.toLowerCase() as Address;
  // A mirror does not state a version: this engine's, which pays all standards, is the first that has mirrors.
  return { client, settlement: { chainId, contract, engineVersion: 5 }, finality, pollingMs };
}
