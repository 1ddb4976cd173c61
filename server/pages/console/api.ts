import { bytesToHex } from "../../../core/protocol/verifier.ts";
import type { MemberSession } from "../../client/index.ts";
import { Problem } from "../explorer/api.ts";
import { accountsOf, type Provider } from "../shared/wallets.ts";

/** A page of a list. */
export interface Listed<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor: string | null };
}

/** The application that a member of the operator looks at. */
let chosen: string | null = null;

export function chooseApplication(applicationId: string | null): void {
  chosen = applicationId;
}

/** Called when the server no longer knows the session. */
let onSignedOut: () => void = () => {};

export function whenSignedOut(call: () => void): void {
  onSignedOut = call;
}

/** Calls a route of this server as the signed-in member. Rejects with a {@link Problem} that is a sentence. */
export async function call<T>(method: string, path: string, body?: unknown, type = "application/json"): Promise<T> {
  const response = await fetch(path, {
    method,
    credentials: "same-origin",
    headers: {
      accept: "application/json",
      "mintmark-console": "1",
      ...(chosen !== null && { "mintmark-application": chosen }),
      ...(body !== undefined && { "content-type": type }),
    },
    ...(body !== undefined && { body: body instanceof Blob ? body : JSON.stringify(body) }),
  }).catch(() => {
    throw new Problem("unreachable", "The server cannot be reached. Check your connection.");
  });
  const text = await response.text();
  if (response.ok) return (isJson(response) ? JSON.parse(text) : text) as T;
  const problem = isJson(response) ? JSON.parse(text) : {};
  const { code = "internal", detail = `The server answered ${response.status}.`, errors = [] } = problem;
  if (response.status === 401 && !path.endsWith("/session")) onSignedOut();
  const first = errors[0] === undefined ? "" : ` ${nameOf(errors[0].pointer)}${errors[0].detail}`;
  const wait = response.headers.get("retry-after");
  throw new Problem(code, `${detail}${first}${wait === null ? "" : ` Try again in ${wait} s.`}`);
}

function isJson(response: Response): boolean {
  return /\bjson\b/.test(response.headers.get("content-type") ?? "");
}

function nameOf(pointer: string): string {
  const name = pointer.split("/").at(-1) ?? "";
  return name === "" ? "" : `${name}: `;
}

export const readSession = () => call<MemberSession>("GET", "/console/v1/session");

/** Has a wallet sign this server's challenge. */
export async function signChallenge(
  wallet: Provider,
): Promise<{ readonly message: string; readonly signature: string }> {
  const [address] = await accountsOf(wallet);
  const { message } = await call<{ message: string }>("POST", "/console/v1/challenge", { address });
  const params = [bytesToHex(new TextEncoder().encode(message)), address];
  return { message, signature: (await wallet.request({ method: "personal_sign", params })) as string };
}
