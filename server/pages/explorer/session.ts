import { bytesToHex } from "../../../core/protocol/verifier.ts";
import type { OwnerSession, SignInChallenge } from "../../client/index.ts";
import { accountsOf, chooseWallet, type Provider, type Wallet } from "../shared/wallets.ts";
import { Problem, request } from "./api.ts";

/** An owner who has signed in, and its wallet. In memory only: it ends with the page. */
export interface Session extends OwnerSession {
  readonly provider: Provider;
}

/** A session, and its end at the server, which shows the sign-in again. */
export interface SignedIn extends Session {
  end(): void;
}

/** EIP-4361: the server writes the text, the wallet signs it, and the server returns a session for the address. */
export async function signIn(wallet: Wallet): Promise<Session> {
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
  const opened: OwnerSession = await (await request("/owner/v1/session", { message, signature })).json();
  return { ...opened, provider };
}

/** A request of the signed-in owner. A refused session has ended. */
export async function asOwner({ token, end }: SignedIn, path: string, body?: unknown): Promise<Response> {
  return request(path, body, { authorization: `Bearer ${token}` }).catch((error: unknown) => {
    if (error instanceof Problem && error.code.startsWith("credentials_")) end();
    throw error;
  });
}

export async function jsonAsOwner<T>(session: SignedIn, path: string, body?: unknown): Promise<T> {
  return (await asOwner(session, path, body)).json();
}
