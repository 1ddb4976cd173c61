import { custom, type EIP1193Provider, type EIP1193RequestFn, toHex, type WalletRpcSchema } from "viem";
import { toAccount } from "viem/accounts";
import { pause } from "../backoff.ts";
import type { Address } from "../model.ts";
import { connectTo, type L1Options, type OwnerPortal } from "./connect.ts";
import type { L1Connection } from "./connection.ts";
import { type Sender, ViemPortal } from "./portal.ts";
import { minedReceipt } from "./reader.ts";

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
  return new ViemPortal(connection, toAccount(address), walletSender(connection, address));
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
      const hash = await request({ method: "eth_sendTransaction", params: [transaction] }, { retryCount: 0 });
      onSent?.(hash);
      for (;;) {
        const receipt = await minedReceipt(connection, hash);
        if (receipt !== null) return receipt;
        await pause(connection.pollingMs, signal);
      }
    },
  };
}
