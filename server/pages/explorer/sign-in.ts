import { bytesToHex } from "../../../core/protocol/verifier.ts";
import type { OwnerSignIn, SignInChallenge } from "../../client/index.ts";
import { accountsOf, chooseWallet, type Provider, type Wallet } from "../shared/wallets.ts";
import { Problem, request } from "./api.ts";

/** An owner who has signed in, and its wallet. In memory only: it ends with the page. */
export interface OwnSignIn extends OwnerSignIn {
  readonly provider: Provider;
}

/** A sign-in, and its end at the server, which shows the sign-in again. */
export interface SignedIn extends OwnSignIn {
  end(): void;
}

/** EIP-4361: the server writes the text, the wallet signs it, and the server returns a sign-in for the address. */
export async function signIn(wallet: Wallet): Promise<OwnSignIn> {
  const { provider } = wallet;
  const [address] = await accountsOf(provider);
  if (address === undefined) throw new Error("The wallet shows no account.");
  const { message }: SignInChallenge = await (await request("/owner/v1/challenge", { address })).json();
  if (!message.startsWith(`${location.host} wants you to sign in`)) {
    throw new Error("The text to sign names another site. Do not sign it.");
  }
  const text = bytesToHex(new TextEncoder().encode(message));
  const signature = await provider.request({ method: "personal_sign", params: [text, address] });
  chooseWallet(wallet);
  const opened: OwnerSignIn = await (await request("/owner/v1/sign-in", { message, signature })).json();
  return { ...opened, provider };
}

/** A request of the signed-in owner. A refused sign-in has ended. */
export async function asOwner({ token, end }: SignedIn, path: string, body?: unknown): Promise<Response> {
  return request(path, body, { authorization: `Bearer ${token}` }).catch((error: unknown) => {
    if (error instanceof Problem && error.code.startsWith("credentials_")) end();
    throw error;
  });
}

export async function jsonAsOwner<T>(signedIn: SignedIn, path: string, body?: unknown): Promise<T> {
  return (await asOwner(signedIn, path, body)).json();
}
