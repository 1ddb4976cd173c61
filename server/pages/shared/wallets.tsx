import type { ComponentProps } from "preact";
import { useEffect, useReducer } from "preact/hooks";
import { bytesToHex } from "../../../core/protocol/verifier.ts";
import type { SignInChallenge } from "../../client/index.ts";
import { Button } from "./parts.tsx";
import { request } from "./request.ts";

/** An EIP-1193 provider: a wallet, or an Ethereum node behind `fetch`. */
export interface Provider {
  request(call: {
    readonly method: string;
    readonly params?: readonly unknown[];
  }): Promise<unknown>;
}

export interface Wallet {
  /** The wallet's own name, which it chooses. */
  readonly name: string;
  readonly provider: Provider;
}

const announced = new Map<string, Wallet>();
let chosen: Wallet | null = null;

/** EIP-6963: each wallet announces itself at its start, and again when it is asked. */
const ANNOUNCED = "eip6963:announceProvider";
addEventListener(ANNOUNCED, (event) => {
  const { info, provider } = (
    event as CustomEvent<{ info: { uuid: string; name: string }; provider: Provider }>
  ).detail;
  if (typeof info?.uuid !== "string" || typeof info.name !== "string" || announced.has(info.uuid))
    return;
  announced.set(info.uuid, { name: info.name.slice(0, 40), provider });
});
dispatchEvent(new Event("eip6963:requestProvider"));

/**
 * The wallets that have announced themselves; else the one of `window.ethereum`, if there is one.
 */
export function wallets(): readonly Wallet[] {
  if (announced.size > 0) return [...announced.values()];
  const { ethereum } = globalThis as { readonly ethereum?: Provider };
  return ethereum === undefined ? [] : [{ name: "your wallet", provider: ethereum }];
}

/** The {@link wallets}; the component is drawn again when another one announces itself. */
export function useWallets(): readonly Wallet[] {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    addEventListener(ANNOUNCED, redraw);
    redraw(null);
    return () => removeEventListener(ANNOUNCED, redraw);
  }, []);
  return wallets();
}

/** The wallet that the visitor has chosen, or the first; null without one. */
export function wallet(): Provider | null {
  return (chosen ?? wallets()[0])?.provider ?? null;
}

export function chooseWallet(one: Wallet): void {
  chosen = one;
}

const NONE: Provider = {
  request: async () => {
    throw new Error("Open this page in a browser with your wallet.");
  },
};

/** The wallet that already shows an account to this page, without asking; else any. */
export async function walletOf(account: string): Promise<Provider> {
  for (const one of wallets()) {
    const shown = await one.provider.request({ method: "eth_accounts" }).catch(() => []);
    const accounts = (shown ?? []) as readonly string[];
    if (!accounts.some((each) => each.toLowerCase() === account)) continue;
    chooseWallet(one);
    return one.provider;
  }
  return wallet() ?? NONE;
}

/**
 * The accounts that the wallet shows to this page, in lower case; the wallet asks its user at
 * first.
 */
export async function accountsOf(provider: Provider): Promise<readonly `0x${string}`[]> {
  const accounts = (await provider.request({ method: "eth_requestAccounts" })) as
    | readonly string[]
    | undefined;
  return (accounts ?? []).map((account) => account.toLowerCase() as `0x${string}`);
}

/** EIP-4361: this server writes the text, and the wallet signs it. */
export async function signChallenge(provider: Provider, part: "owner" | "console") {
  const [address] = await accountsOf(provider);
  if (address === undefined) throw new Error("The wallet shows no account.");
  const { message }: SignInChallenge = await (
    await request(`/${part}/v1/challenge`, { body: { address } })
  ).json();
  if (!message.startsWith(`${location.host} wants you to sign in`))
    throw new Error("The text to sign names another site. Do not sign it.");
  const params = [bytesToHex(new TextEncoder().encode(message)), address];
  return { message, signature: await provider.request({ method: "personal_sign", params }) };
}

/** Brings the wallet to a chain, with its user's consent. */
export async function switchChain(provider: Provider, chainId: bigint): Promise<void> {
  const now = BigInt(String(await provider.request({ method: "eth_chainId" })));
  if (now === chainId) return;
  try {
    const params = [{ chainId: `0x${chainId.toString(16)}` }];
    await provider.request({ method: "wallet_switchEthereumChain", params });
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== 4902) throw error;
    throw new Error(
      `Your wallet does not know chain ${chainId}. Add that network to the wallet, then try again.`,
    );
  }
}

type WalletButtonsProps = Omit<ComponentProps<typeof Button>, "text"> & {
  /** A verb before the wallet's name, such as `Use`. */
  verb: string;
  onChoose: (wallet: Wallet) => unknown;
};

export function WalletButtons({ verb, onChoose, ...rest }: WalletButtonsProps) {
  return (
    <div class="choices">
      {useWallets().map((wallet) => (
        <Button
          key={wallet.name}
          onClick={() => onChoose(wallet)}
          text={`${verb} ${wallet.name}`}
          {...rest}
        />
      ))}
    </div>
  );
}
