import { type Account, type Address, createWalletClient, type Hex, type PublicClient, type Transport } from "viem";
import type { Hash } from "../../core/index.ts";
import { type ContractName, isCodeOf, readArtifact } from "./artifact.ts";

/** An account that sends transactions to one chain and waits for each. */
export interface Deployer {
  readonly account: Account;
  readonly client: PublicClient;
  readonly transport: Transport;
  readonly chainId: number;
}

export interface Deployed {
  readonly address: Address;
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  readonly gasUsed: bigint;
}

/** Deploys a contract and makes sure that the chain now holds its code. */
export async function deployContract(by: Deployer, name: ContractName, args: readonly unknown[]): Promise<Deployed> {
  const artifact = await readArtifact(name);
  const hash = await wallet(by).deployContract({
    abi: artifact.abi,
    bytecode: artifact.bytecode,
    args,
    account: by.account,
    chain: null,
  });
  const receipt = await succeeded(by, hash, `deploying ${name}`);
  const address = receipt.contractAddress;
  if (!address) throw new Error(`deploying ${name}: transaction ${hash} created no contract`);
  if (!isCodeOf(artifact, await by.client.getCode({ address }))) {
    throw new Error(
      `deploying ${name}: the code at ${address} is not what was sent; is the RPC's chain the right one?`,
    );
  }
  return { address: lower(address), txHash: hash, blockNumber: receipt.blockNumber, gasUsed: receipt.gasUsed };
}

/** Calls a contract's function in a transaction and waits for it. */
export async function send(
  by: Deployer,
  name: ContractName,
  address: Address,
  functionName: string,
  args: readonly unknown[],
): Promise<Hash> {
  const { abi } = await readArtifact(name);
  const request = { abi, address, functionName, args, account: by.account } as const;
  // Simulated first: a refusal then comes with the contract's own error instead of a failed transaction.
  await by.client.simulateContract(request);
  const hash = await wallet(by).writeContract({ ...request, chain: null });
  await succeeded(by, hash, `${name}.${functionName}`);
  return hash;
}

async function succeeded(by: Deployer, hash: Hex, what: string) {
  const receipt = await by.client.waitForTransactionReceipt({ hash });
  if (receipt.status !== "success") throw new Error(`${what}: transaction ${hash} reverted`);
  return receipt;
}

function wallet(by: Deployer) {
  return createWalletClient({ account: by.account, transport: by.transport });
}

/** Addresses are kept in lower case throughout. */
export function lower(address: Address): Address {
  return address.toLowerCase() as Address;
}
