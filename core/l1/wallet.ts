import {
  custom,
  type EIP1193Provider,
  type EIP1193RequestFn,
  type TransactionReceipt,
  toHex,
  type WalletRpcSchema,
} from "viem";
import { toAccount } from "viem/accounts";
import { pause } from "../backoff.ts";
import type { Address } from "../model.ts";
import type { L1SendOptions } from "../ports.ts";
import { connectTo, type L1Options, type OwnerPortal } from "./connect.ts";
import type { L1Connection } from "./connection.ts";
import { type Call, minedReceipt, type Sender, ViemPortal } from "./portal.ts";

/** A wallet (EIP-1193) and one of its accounts. */
export interface WalletOptions extends Omit<L1Options, "rpc"> {
  readonly wallet: Pick<EIP1193Provider, "request">;
  readonly address: Address;
}

/**
 * Connects to the contract that pays a vault through its owner's wallet, which reads the chain, signs and sends. Rejects
 * with `l1_failed`, also when the wallet is on another chain.
 *
 * @example
 * const l1 = await connectWallet({ wallet: window.ethereum, address, contract, chainId: 1n });
 */
export async function connectWallet({ wallet, address, ...options }: WalletOptions): Promise<OwnerPortal> {
  const connection = await connectTo({ ...options, rpc: custom(wallet, { retryCount: 2 }) });
  return new ViemPortal(connection, toAccount(address), new WalletSender(connection, address));
}

/** Leaves nonce, fees and replacement to the wallet. */
class WalletSender implements Sender {
  readonly #connection: L1Connection;
  readonly #address: Address;

  constructor(connection: L1Connection, address: Address) {
    this.#connection = connection;
    this.#address = address;
  }

  async send(prepare: () => Promise<Call>, { onSent, signal }: L1SendOptions = {}): Promise<TransactionReceipt> {
    const { to, data, gas } = await prepare();
    signal?.throwIfAborted();
    const transaction = { from: this.#address, to, data, gas: toHex(gas) } as const;
    const { request } = this.#connection.client as { request: EIP1193RequestFn<WalletRpcSchema> };
    // Never repeated: each repetition would ask the owner again.
    const hash = await request({ method: "eth_sendTransaction", params: [transaction] }, { retryCount: 0 });
    onSent?.(hash);
    for (;;) {
      const receipt = await minedReceipt(this.#connection, hash);
      if (receipt !== null) return receipt;
      await pause(this.#connection.pollingMs, signal);
    }
  }
}
