import { setTimeout as sleep } from "node:timers/promises";
import type { Address, Hex, LocalAccount, PublicClient, TransactionReceipt, Transport } from "viem";
import * as viem from "viem";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { askL1 } from "../../core/l1/connection.ts";
import { capsOf, type Fees, higherFees } from "../../core/l1/fees.ts";
import type { PendingCreations } from "./record.ts";

/** An account that sends transactions to one chain and waits for each. */
export interface Deployer {
  readonly account: LocalAccount;
  readonly client: PublicClient;
  readonly transport: Transport;
  readonly chainId: number;
  /** Stores creations before they are sent, so a killed run creates nothing twice. Optional. */
  readonly pending?: PendingCreations;
  /** Milliseconds without a receipt until a transaction offers more; default 60 000. */
  readonly replaceAfterMs?: number;
}

export async function chainOn(rpcUrl: string): Promise<Omit<Deployer, "account">> {
  const transport = viem.http(rpcUrl, { retryCount: 5 });
  const client = viem.createPublicClient({ transport, pollingInterval: POLL_MS });
  const chainId = await askL1(`asking ${new URL(rpcUrl).host} for its chain`, () =>
    client.getChainId(),
  );
  return { client, transport, chainId };
}

/** Deploys a contract and checks that the chain has code there. */
export async function deployContract(by: Deployer, name: ContractName, args: readonly unknown[]) {
  const artifact = readArtifact(name);
  const data = viem.encodeDeployData({ abi: artifact.abi, bytecode: artifact.bytecode, args });
  const receipt = await askL1(`deploying ${name}`, () => mined(by, { data }));
  const {
    transactionHash: hash,
    contractAddress: address,
    blockNumber: deployedAtBlock,
    gasUsed,
  } = receipt;
  if (!address) throw new Error(`deploying ${name}: transaction ${hash} created no contract`);
  if ((await by.client.getCode({ address })) === undefined)
    throw new Error(
      `deploying ${name}: the chain has no code at ${address}; is the RPC's chain the right one?`,
    );
  return { address: lower(address), deployedAtBlock, gasUsed };
}

export async function send(
  by: Deployer,
  name: ContractName,
  address: Address,
  call: string,
  args: readonly unknown[],
) {
  const { abi } = readArtifact(name);
  const request = { abi, address, functionName: call, args, account: by.account } as const;
  return askL1(`${name}.${call}`, async () => {
    // The simulation reports the contract's own error instead of a failed transaction.
    await by.client.simulateContract(request);
    const data = viem.encodeFunctionData({ abi, functionName: call, args });
    return (await mined(by, { to: address, data })).transactionHash;
  });
}

/** A call, or a creation. */
interface Call {
  readonly to?: Address;
  readonly data: Hex;
}

/**
 * Sends a transaction until the chain has it: a reorganisation can drop it from blocks and from
 * nodes, and fees can rise above its offer. All offers have one nonce, so one of them is mined.
 */
async function mined(by: Deployer, call: Call): Promise<TransactionReceipt> {
  const key = viem.keccak256(call.data);
  const pending = call.to === undefined ? by.pending : undefined;
  let offers = await usable(by, (await pending?.get(key)) ?? []);
  for (let left = SENDS; left > 0; left--) {
    const last = offers.at(-1);
    const next = left < SENDS || last === undefined ? await offer(by, call, offers) : last;
    if (next !== last) {
      offers = [...offers, next];
      // A killed run goes on with all of them.
      await pending?.set(key, offers);
    }
    await put(by, offers);
    const receipt = await receiptOf(by, offers, by.replaceAfterMs ?? REPLACE_AFTER_MS);
    if (receipt?.status === "success") return receipt;
    if (receipt !== null) throw new Error(`transaction ${receipt.transactionHash} reverted`);
  }
  const detail = `transaction ${viem.keccak256(offers.at(-1) ?? "0x")} is pending still`;
  throw new Error(`${detail}: its fee is too low, or the chain stands; run this again later`);
}

/**
 * The offers of an earlier run, unless they can no longer create anything: a reverted transaction
 * stays reverted, and another transaction can have used their nonce.
 */
async function usable(by: Deployer, kept: readonly Hex[]): Promise<readonly Hex[]> {
  const [first] = kept;
  if (first === undefined) return [];
  const receipt = await receiptOf(by, kept, 0);
  if (receipt !== null) return receipt.status === "success" ? kept : [];
  const used = await by.client.getTransactionCount({ address: by.account.address });
  return used <= (viem.parseTransaction(first).nonce ?? 0) ? kept : [];
}

/**
 * The next offer: a first one, or more than the last; the last one itself once 64 times the first.
 */
async function offer(by: Deployer, call: Call, offers: readonly Hex[]): Promise<Hex> {
  const [first, last] = [offers[0], offers.at(-1)].map((one) => one && unsigned(one));
  if (first === undefined || last === undefined) {
    const request = { account: by.account, chain: null, ...call };
    return signed(by, await wallet(by).prepareTransactionRequest(request));
  }
  const { maxFeePerGas, maxPriorityFeePerGas } =
    higherFees(feesOf(last), "plain", capsOf(feesOf(first), {})) ?? feesOf(last);
  if (last.gasPrice !== undefined) return signed(by, { ...last, gasPrice: maxFeePerGas });
  return signed(by, { ...last, maxFeePerGas, maxPriorityFeePerGas });
}

function unsigned(offered: Hex): viem.TransactionSerializable {
  const { r, s, v, yParity, ...transaction } = viem.parseTransaction(offered);
  return transaction as viem.TransactionSerializable;
}

function feesOf(offered: viem.TransactionSerializable): Fees {
  const { gasPrice = 0n, maxFeePerGas, maxPriorityFeePerGas } = offered;
  return {
    maxFeePerGas: maxFeePerGas ?? gasPrice,
    maxPriorityFeePerGas: maxPriorityFeePerGas ?? gasPrice,
  };
}

function signed(by: Deployer, request: object): Promise<Hex> {
  return by.account.signTransaction(request as viem.TransactionSerializable);
}

/** Gives the node the last offer, which it may refuse when it has one of them. */
async function put(by: Deployer, offers: readonly Hex[]): Promise<void> {
  const serializedTransaction = offers.at(-1) ?? "0x";
  try {
    await by.client.sendRawTransaction({ serializedTransaction });
  } catch (error) {
    const known = offers.map((one) => by.client.getTransaction({ hash: viem.keccak256(one) }));
    if (!(await Promise.allSettled(known)).some(({ status }) => status === "fulfilled"))
      throw error;
  }
}

/** The receipt of the offer that the chain has; null when none is there in time. */
async function receiptOf(by: Deployer, offers: readonly Hex[], withinMs: number) {
  const end = performance.now() + withinMs;
  for (;;) {
    for (const one of offers) {
      const hash = viem.keccak256(one);
      const receipt = await by.client.getTransactionReceipt({ hash }).catch(absent);
      if (receipt !== null) return receipt;
    }
    if (performance.now() >= end) return null;
    await sleep(by.client.pollingInterval);
  }
}

function absent(error: unknown): null {
  if (error instanceof viem.TransactionReceiptNotFoundError) return null;
  throw error;
}

const POLL_MS = 1_000;
const REPLACE_AFTER_MS = 60_000;
const SENDS = 30;

function wallet(by: Deployer) {
  return viem.createWalletClient({ account: by.account, transport: by.transport });
}

/** Addresses are always in lower case here. */
export function lower(address: Address): Address {
  return address.toLowerCase() as Address;
}
