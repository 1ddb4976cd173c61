import type {
  EIP1193Provider,
  EIP1193RequestFn,
  LocalAccount,
  Transport,
  WalletRpcSchema,
} from "viem";
import { createClient, custom, http, toHex } from "viem";
import { toAccount } from "viem/accounts";
import { getChainId } from "viem/actions";
import { pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineOptions } from "../ledger/options.ts";
import type { Address } from "../model.ts";
import type { L1Reader, PortalIdentity } from "../ports.ts";
import { type PayingContract, requireOwnCode } from "../protocol/own-code.ts";
import { stateCommitmentAbi } from "./abi.ts";
import { accountOn, type Sender } from "./account.ts";
import { minedReceipt } from "./chain.ts";
import { type Commits, type CommitterOptions, commitsOf } from "./committer.ts";
import { askL1, codeOn, type Finality, type L1Connection, viewsOf } from "./connection.ts";
import { type MakingCalls, makingsOf } from "./makings.ts";
import { type OperatorPortal, operatorOn } from "./operator.ts";
import { permitsOf } from "./permits.ts";
import { type PayingPortal, portalOf } from "./portal.ts";
import { readsOf, type ViemReader } from "./reader.ts";

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

/** The contract that pays a vault, for its owner. A mirror refuses to make vaults. */
export type OwnerPortal = ViemReader & PayingPortal & MakingCalls;

/** Writing also needs the sending account and its fee bounds. */
export type L1WriteOptions = L1Options & CommitterOptions & { readonly account: LocalAccount };

/** Everything that a settlement contract takes from an operator. */
export type ViemCommitter = OperatorPortal & MakingCalls & ReturnType<typeof permitsOf> & Commits;

/**
 * Connects for reading, after a check of the chain and of all code of the contract. Rejects with
 * `l1_failed`.
 *
 * @example
 * const l1 = await readL1({ rpc: "http://127.0.0.1:8545", contract });
 */
export async function readL1(options: L1Options): Promise<ViemReader> {
  return readsOf(await connect(options));
}

/**
 * Connects for reading and for committing with `account`. Rejects with `l1_failed`.
 *
 * @example
 * const l1 = await connectL1({ rpc: "http://127.0.0.1:8545", contract, account: operator });
 */
export async function connectL1(options: L1WriteOptions): Promise<ViemCommitter> {
  const { by, operator } = operatorOn(await connect(options), options.account, options);
  return {
    ...operator,
    ...makingsOf(by, operator),
    ...permitsOf(by, operator),
    ...commitsOf(by, operator, options.kzg),
  };
}

/**
 * Connects to the contract that pays a vault, settlement contract or mirror, for the owner's own
 * withdrawal. Rejects with `l1_failed`.
 *
 * @example
 * const portal = await connectPortal({ rpc, contract, chainId: 1n, account: owner });
 * await exitWithKit({ kit, l1: portal, account: owner.address });
 */
export async function connectPortal(options: L1WriteOptions): Promise<OwnerPortal> {
  const { by, operator } = operatorOn(await connectTo(options), options.account, options);
  return { ...operator, ...makingsOf(by, operator) };
}

async function connect(options: L1Options): Promise<L1Connection> {
  const connection = await connectTo(options, "StateCommitment");
  const { settlement } = connection;
  const doing = `reading the engine version of ${settlement.contract} on chain ${settlement.chainId}`;
  const engineVersion = await viewsOf(connection, stateCommitmentAbi)(doing, "engineVersion", []);
  return { ...connection, settlement: { ...settlement, engineVersion: Number(engineVersion) } };
}

/**
 * Connects to a paying contract on the expected chain, and checks all of its code. Rejects with
 * `l1_failed`.
 *
 * @param name - default either, a settlement contract or a mirror
 */
export async function connectTo(options: L1Options, name?: PayingContract): Promise<L1Connection> {
  const { rpc, finality = "finalized", pollingMs = 1_000 } = options;
  // Repeats unanswered questions, with back-off, before it gives up.
  const transport =
    typeof rpc === "string" ? http(rpc, { retryCount: 5, retryDelay: 200, timeout: 20_000 }) : rpc;
  // A settler asks for the newest block again and again. A cached answer would hide a
  // reorganisation.
  const client = createClient({ transport, pollingInterval: pollingMs, cacheTime: 0 });
  const chainId = BigInt(await askL1("asking the RPC for its chain id", () => getChainId(client)));
  if (options.chainId !== undefined && options.chainId !== chainId)
    throw new MintmarkError("l1_failed", `the RPC serves chain ${chainId}, not ${options.chainId}`);
  const contract = options.contract.toLowerCase() as Address;
  await requireOwnCode(codeOn(client), { chainId, contract }, name);
  // A mirror states no version. Mirrors exist since this engine's version, which pays all
  // standards.
  return { client, settlement: { chainId, contract, engineVersion: 5 }, finality, pollingMs };
}

/**
 * Checks wallet contracts' signatures for an engine: each chain for its own wallets. Without a
 * chain, no wallet has signed.
 *
 * @example
 * const engine = await openEngine({ ...options, verifySignature: signatureChecks([l1, mirror]) });
 */
export function signatureChecks(
  chains: readonly (Pick<L1Reader, "verifySignature"> & { readonly settlement: PortalIdentity })[],
): NonNullable<EngineOptions["verifySignature"]> {
  const byId = new Map(chains.map((chain) => [chain.settlement.chainId, chain]));
  return async (chainId, ...signed) =>
    (await byId.get(chainId)?.verifySignature(...signed)) ?? false;
}

/** A wallet (EIP-1193) and one of its accounts. */
export interface WalletOptions extends Omit<L1Options, "rpc"> {
  readonly wallet: Pick<EIP1193Provider, "request">;
  readonly address: Address;
}

/**
 * Connects to the contract that pays a vault through its owner's wallet, which reads the chain,
 * signs and sends. Rejects with `l1_failed`, also when the wallet is on another chain.
 *
 * @example
 * const l1 = await connectWallet({ wallet: window.ethereum, address, contract, chainId: 1n });
 */
export async function connectWallet({
  wallet,
  address,
  ...options
}: WalletOptions): Promise<OwnerPortal> {
  const connection = await connectTo({ ...options, rpc: custom(wallet, { retryCount: 2 }) });
  const by = accountOn(connection, toAccount(address), walletSender(connection, address));
  const reads = readsOf(connection);
  return { ...reads, ...portalOf(by, reads), ...makingsOf(by, reads) };
}

/** Leaves nonce, fees and replacement to the wallet. */
function walletSender(connection: L1Connection, from: Address): Sender {
  const { request } = connection.client as { request: EIP1193RequestFn<WalletRpcSchema> };
  return {
    async send(prepare, { onSent, signal } = {}) {
      const { to, data, gas } = await prepare();
      signal?.throwIfAborted();
      const transaction = { from, to, data, gas: toHex(gas) } as const;
      // Never repeated: each repetition would ask the owner again.
      const hash = await request(
        { method: "eth_sendTransaction", params: [transaction] },
        { retryCount: 0 },
      );
      onSent?.(hash);
      for (;;) {
        const receipt = await minedReceipt(connection, hash);
        if (receipt !== null) return receipt;
        await pause(connection.pollingMs, signal);
      }
    },
  };
}
