import { type Problem, pause, request } from "../shared/request.ts";

export interface Listed<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor: string | null };
}

/**
 * The application that a person of the operator looks at, and what follows once the server knows no
 * sign-in.
 */
export const caller = { application: null as string | null, onSignedOut: () => {} };

/** Says "change" after each request that may have changed something. */
export const changes = new EventTarget();

/** Calls a route of this server for the signed-in person. Rejects with a {@link Problem}. */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  type?: string,
): Promise<T> {
  const headers = {
    accept: "application/json",
    "mintmark-console": "1",
    ...(caller.application && { "mintmark-application": caller.application }),
  };
  const isOfSignIn = path.endsWith("/sign-in");
  const response = await request(path, { method, body, type, headers }).catch((error: Problem) => {
    if (error.code.startsWith("credentials_") && !isOfSignIn) caller.onSignedOut();
    throw error;
  });
  if (method !== "GET" && !isOfSignIn) changes.dispatchEvent(new Event("change"));
  const isJson = /\bjson\b/.test(response.headers.get("content-type") ?? "");
  return isJson ? response.json() : ((await response.text()) as T);
}

/** A path with the parameters that have a value. */
export function withQuery(
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] =>
    Boolean(entry[1]),
  );
  return given.length === 0
    ? path
    : `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams(given)}`;
}

/**
 * The first pages of a list, and whether more follow. Reading all waits when the server asks it to.
 */
export async function readPages<T>(path: string, pages: number) {
  const data: T[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; ) {
    const listed = await call<Listed<T>>("GET", withQuery(path, { cursor })).catch(
      async (error: Problem) => {
        if (pages < Number.POSITIVE_INFINITY || !(error.seconds > 0)) throw error;
        await pause(error.seconds * 1_000);
        return null;
      },
    );
    if (listed === null) continue;
    data.push(...listed.data);
    cursor = listed.pagination?.nextCursor ?? undefined;
    if (cursor === undefined) break;
    page++;
  }
  return { data, more: cursor !== undefined };
}

export async function readAll<T>(path: string): Promise<readonly T[]> {
  return (await readPages<T>(path, Number.POSITIVE_INFINITY)).data;
}
