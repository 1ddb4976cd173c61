import type { BrowserContext } from "playwright-core";
import type { Address, Hex, LocalAccount } from "viem";
import { createWalletClient, encodeFunctionData, http, parseAbi, zeroAddress } from "viem";

const EXECUTE = parseAbi(["function execute(address target, bytes payload) returns (bytes)"]);

/**
 * A wallet extension of the browser: EIP-1193, announced by EIP-6963. Its keys stay outside of the
 * page.
 */
export interface StubWallet {
  readonly name: string;
  readonly account: LocalAccount;
  readonly rpc: string;
  /** A wallet contract that the account's key acts for, which is then the wallet's account. */
  readonly contract?: Address;
  /** Methods that the wallet's user declines. */
  readonly declines?: ReadonlySet<string>;
  /** Every method that was asked for. */
  readonly asked?: string[];
}

type Answer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string } };

async function answerOf(
  wallet: StubWallet,
  method: string,
  params: readonly unknown[],
): Promise<Answer> {
  const { account, rpc, contract, declines, asked } = wallet;
  asked?.push(method);
  if (declines?.has(method))
    return { error: { code: 4001, message: "User rejected the request." } };
  switch (method) {
    case "eth_accounts":
    case "eth_requestAccounts":
      return { result: [contract ?? account.address] };
    case "personal_sign":
      return { result: await account.signMessage({ message: { raw: params[0] as Hex } }) };
    case "eth_signTypedData_v4":
      return { result: await account.signTypedData(JSON.parse(String(params[1]))) };
    case "eth_sendTransaction": {
      const [{ to, data, gas }] = params as [{ to?: Address; data: Hex; gas?: Hex }];
      const client = createWalletClient({ account, transport: http(rpc) });
      const asContract = {
        abi: EXECUTE,
        functionName: "execute",
        args: [to ?? zeroAddress, data],
      } as const;
      const call =
        contract === undefined
          ? { to, data }
          : { to: contract, data: encodeFunctionData(asContract) };
      // A wallet estimates the gas of a call that names none.
      const limit = gas === undefined ? {} : { gas: BigInt(gas) + 100_000n };
      return { result: await client.sendTransaction({ ...call, ...limit, chain: null }) };
    }
    case "wallet_switchEthereumChain":
      return { error: { code: 4902, message: "Unrecognized chain ID." } };
    default: {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const response = await fetch(rpc, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      return (await response.json()) as Answer;
    }
  }
}

/** Puts wallets into every page of the context. */
export async function addWallets(
  context: BrowserContext,
  wallets: readonly StubWallet[],
): Promise<void> {
  await context.exposeFunction(
    "stubWallet",
    async (index: number, method: string, params: readonly unknown[]) => {
      const wallet = wallets[index];
      if (wallet === undefined) throw new Error(`there is no wallet ${index}`);
      return answerOf(wallet, method, params).catch((error: Error) => ({
        error: { code: -32603, message: error.message },
      }));
    },
  );
  await context.addInitScript(
    (names) => {
      const page = globalThis as unknown as EventTarget & {
        stubWallet(
          index: number,
          method: string,
          params: readonly unknown[],
        ): Promise<{ readonly result?: unknown; readonly error?: object }>;
      };
      for (const [index, name] of names.entries()) {
        const provider = {
          on() {},
          removeListener() {},
          async request({ method, params = [] }: { method: string; params?: readonly unknown[] }) {
            const { result, error } = await page.stubWallet(index, method, params);
            if (error !== undefined) throw error;
            return result;
          },
        };
        const info = {
          uuid: `00000000-0000-4000-8000-00000000000${index}`,
          name,
          icon: "data:,",
          rdns: `test.${index}`,
        };
        const detail = Object.freeze({ info, provider });
        const announce = () =>
          page.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
        page.addEventListener("eip6963:requestProvider", announce);
        announce();
      }
    },
    wallets.map(({ name }) => name),
  );
}
