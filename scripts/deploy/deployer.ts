import type { Address, Hex, LocalAccount, PublicClient, Transport } from "viem";
import * as viem from "viem";
import type { Hash } from "../../core/index.ts";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { askL1 } from "../../core/l1/connection.ts";
import type { PendingCreations } from "./record.ts";

/** An account that sends transactions to one chain and waits for each. */
export interface Deployer {
  readonly account: LocalAccount;
  readonly client: PublicClient;
  readonly transport: Transport;
  readonly chainId: number;
  /** Stores creations before they are sent, so a killed run creates nothing twice. Optional. */
  readonly pending?: PendingCreations;
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
  const receipt = await askL1(`deploying ${name}`, () => created(by, data));
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
    const hash = await wallet(by).writeContract({ ...request, chain: null });
    await succeeded(by, hash);
    return hash;
  });
}

/**
 * Sends a creation until the chain has it: a reorganisation can drop it from blocks and from nodes.
 */
async function created(by: Deployer, data: Hex) {
  for (let left = RESENDS; ; left--) {
    const hash = await sendOnce(by, data);
    try {
      return await succeeded(by, hash, RESEND_MS);
    } catch (error) {
      // Without a kept creation, sending again would create a second contract.
      const isLate =
        error instanceof viem.WaitForTransactionReceiptTimeoutError && by.pending !== undefined;
      if (!isLate || left === 0) throw error;
    }
  }
}

/**
 * Sends the creation that an earlier run signed, or signs a new one: by EIP-1559 if the chain has a
 * base fee.
 */
async function sendOnce(by: Deployer, data: Hex): Promise<Hash> {
  const key = viem.keccak256(data);
  const kept = await by.pending?.get(key);
  if (kept !== undefined) {
    const hash = viem.keccak256(kept);
    const [isKnown, hasReverted] = await Promise.all([
      by.client.getTransaction({ hash }).then(yes, no),
      by.client.getTransactionReceipt({ hash }).then(({ status }) => status === "reverted", no),
    ]);
    // A reverted transaction, such as out of gas, stays reverted.
    if (isKnown && !hasReverted) return hash;
    const { nonce = 0 } = viem.parseTransaction(kept);
    const used = await by.client.getTransactionCount({ address: by.account.address });
    // Another transaction used its nonce, so it can never be mined.
    if (used <= nonce) return by.client.sendRawTransaction({ serializedTransaction: kept });
  }
  const request = await wallet(by).prepareTransactionRequest({
    account: by.account,
    chain: null,
    data,
  });
  const signed = await by.account.signTransaction(
    request as Parameters<LocalAccount["signTransaction"]>[0],
  );
  await by.pending?.set(key, signed);
  return by.client.sendRawTransaction({ serializedTransaction: signed });
}

const POLL_MS = 1_000;
const RESEND_MS = 60_000;
const RESENDS = 30;

const yes = () => true;
const no = () => false;

async function succeeded(by: Deployer, hash: Hex, timeout?: number) {
  const receipt = await by.client.waitForTransactionReceipt({ hash, ...(timeout && { timeout }) });
  if (receipt.status !== "success") throw new Error(`transaction ${hash} reverted`);
  return receipt;
}

function wallet(by: Deployer) {
  return viem.createWalletClient({ account: by.account, transport: by.transport });
}

/** Addresses are always in lower case here. */
export function lower(address: Address): Address {
  return address.toLowerCase() as Address;
}
