import { bytesToHex } from "../../../core/protocol/verifier.ts";
import type { PersonSignIn } from "../../client/index.ts";
import { Problem } from "../explorer/api.ts";
import { accountsOf, type Provider } from "../shared/wallets.ts";

/** A page of a list. */
export interface Listed<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor: string | null };
}

/** The application that a person of the operator looks at. */
let chosen: string | null = null;

export function chooseApplication(applicationId: string | null): void {
  chosen = applicationId;
}

/** Called when the server no longer knows the sign-in. */
let onSignedOut: () => void = () => {};

export function whenSignedOut(call: () => void): void {
  onSignedOut = call;
}

/** Says "change" after each request that may have changed something. */
export const changes = new EventTarget();

/** A {@link Problem} of a caller who asks too fast. */
class TooFast extends Problem {
  readonly seconds: number;

  constructor(code: string, detail: string, seconds: number) {
    super(code, `${detail} Try again in ${seconds} s.`);
    this.seconds = seconds;
  }
}

/** Calls a route of this server for the signed-in person. Rejects with a {@link Problem} that is a sentence. */
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
  const isOfSignIn = path.endsWith("/sign-in");
  if (response.ok && method !== "GET" && !isOfSignIn) changes.dispatchEvent(new Event("change"));
  if (response.ok) return (isJson(response) ? JSON.parse(text) : text) as T;
  const problem = isJson(response) ? JSON.parse(text) : {};
  const { code = "internal", detail = `The server answered ${response.status}.`, errors = [] } = problem;
  if (response.status === 401 && !isOfSignIn) onSignedOut();
  const [first] = errors;
  const said = first === undefined ? detail : `${nameOf(first.pointer)}${first.detail}`;
  const wait = response.headers.get("retry-after");
  throw wait === null ? new Problem(code, said) : new TooFast(code, said, Number(wait));
}

function isJson(response: Response): boolean {
  return /\bjson\b/.test(response.headers.get("content-type") ?? "");
}

function nameOf(pointer: string): string {
  const name = pointer.split("/").at(-1) ?? "";
  return name === "" ? "" : `${name}: `;
}

/** The same, with null for what does not exist or is no such id. */
export const callOrNull = <T>(path: string): Promise<T | null> => orNull(call<T>("GET", path));

export async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Problem && /_not_found$|^validation_failed$/.test(error.code)) return null;
    throw error;
  }
}

/** A path with the parameters that have a value. */
export function withQuery(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

export function readPage<T>(path: string, cursor: string | null): Promise<Listed<T>> {
  const next = cursor === null ? "" : `${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`;
  return call("GET", path + next);
}

/** The first pages of a list, and whether more follow. */
export async function readPages<T>(path: string, pages: number) {
  const data: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < pages; page++) {
    const listed: Listed<T> = await readPage(path, cursor);
    data.push(...listed.data);
    cursor = listed.pagination?.nextCursor ?? null;
    if (cursor === null) break;
  }
  return { data, more: cursor !== null };
}

/** Every entry of a list, a page at a time. Waits when the server asks it to. */
export async function* readAll<T>(path: string): AsyncGenerator<readonly T[]> {
  let cursor: string | null = null;
  do {
    const page: Listed<T> | null = await readPage<T>(path, cursor).catch(async (error: unknown) => {
      if (!(error instanceof TooFast)) throw error;
      await new Promise((done) => setTimeout(done, error.seconds * 1_000));
      return null;
    });
    if (page === null) continue;
    yield page.data;
    cursor = page.pagination.nextCursor;
    if (cursor === null) return;
  } while (true);
}

/** Hands the person a file. */
export function download(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export const readSignIn = () => call<PersonSignIn>("GET", "/console/v1/sign-in");

/** Has a wallet sign this server's challenge. */
export async function signChallenge(
  wallet: Provider,
): Promise<{ readonly message: string; readonly signature: string }> {
  const [address] = await accountsOf(wallet);
  const { message } = await call<{ message: string }>("POST", "/console/v1/challenge", { address });
  const params = [bytesToHex(new TextEncoder().encode(message)), address];
  return { message, signature: (await wallet.request({ method: "personal_sign", params })) as string };
}
