import type { Address, Client, Hex, PublicActions, Transport } from "viem";
import {
  call,
  estimateContractGas,
  estimateFeesPerGas,
  getBalance,
  getBlobBaseFee,
  getBlock,
  getBlockNumber,
  getChainId,
  getCode,
  getLogs,
  getTransaction,
  getTransactionCount,
  getTransactionReceipt,
  multicall,
  readContract,
  sendRawTransaction,
  simulateContract,
} from "viem/actions";
import { askL1 } from "./failure.ts";

/** viem's actions that this room uses, by viem's own names. */
const ACTIONS = {
  call,
  estimateContractGas,
  estimateFeesPerGas,
  getBalance,
  getBlobBaseFee,
  getBlock,
  getBlockNumber,
  getChainId,
  getCode,
  getLogs,
  getTransaction,
  getTransactionCount,
  getTransactionReceipt,
  multicall,
  readContract,
  sendRawTransaction,
  simulateContract,
};

type L1Actions = Pick<PublicActions<Transport, undefined, undefined>, keyof typeof ACTIONS>;

/** A viem client with those actions alone. A `PublicClient` would bring all of viem's to the pages' scripts. */
export type L1Client = Client<Transport, undefined, undefined> & L1Actions;

/** For `createClient(…).extend`. */
export function l1Actions(client: Client<Transport, undefined, undefined>): L1Actions {
  const bound = Object.entries(ACTIONS).map(([name, action]) => [
    name,
    (...args: unknown[]) => (action as (client: Client, ...args: unknown[]) => unknown)(client, ...args),
  ]);
  return Object.fromEntries(bound) as L1Actions;
}

/** Reads the runtime code of accounts; `0x` for none. */
export function codeOn(client: Pick<L1Client, "getCode">): (address: Address) => Promise<Hex> {
  return async (address) => (await askL1(`reading the code of ${address}`, () => client.getCode({ address }))) ?? "0x";
}
