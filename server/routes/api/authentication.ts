import type { FastifyReply, FastifyRequest } from "fastify";
import { type Address, MintmarkError, type Principal } from "../../../core/index.ts";
import { readUuid } from "../../../core/internal.ts";
import type { TokenBuckets } from "../../http/access/rate-limit.ts";
import { addressGroup } from "../../http/address.ts";
import { STATUS_OF } from "../../http/errors.ts";
import type { Service } from "../../service.ts";
import type { Access, SignedIn } from "./endpoint.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The caller; null before authentication, and on public routes. */
    principal: Principal | null;
    /** The signed-in wallet owner; null elsewhere. */
    owner: Address | null;
    /** The person whose browser calls; null for a program. */
    signedIn: SignedIn | null;
  }
}

/**
 * Identifies the caller as a route asks, and notes it at the request: an owner, a person of the
 * console, or a program by X-Api-Key, a bearer token, or both; without either by a person's
 * sign-in. Rejects with `credentials_*`, `application_suspended` or `role_missing`.
 */
export async function identify(
  access: Access,
  request: FastifyRequest,
  service: Service,
): Promise<void> {
  const { engine, tokens, owners } = service;
  const { "x-api-key": key, authorization } = request.headers;
  if (access === "owner") {
    request.owner = (await owners.signedIn(ownerTokenOf(request, service))).address;
  } else if (access === "person" || (key === undefined && authorization === undefined)) {
    const signedIn = await personOf(request, service);
    if (signedIn === null)
      throw new MintmarkError(
        "credentials_missing",
        access === "person" ? "Sign in to the console." : undefined,
      );
    request.signedIn = signedIn;
    if (access !== "person")
      request.principal = await engine.people.principal(
        signedIn.signIn,
        signedIn.applicationId ?? undefined,
      );
  } else {
    const byKey = key === undefined ? null : await engine.keys.authenticate(String(key));
    const byToken = authorization === undefined ? null : await tokens.verify(bearer(authorization));
    if (byKey !== null && byToken !== null && byKey.applicationId !== byToken.applicationId)
      throw new MintmarkError(
        "credentials_invalid",
        "X-Api-Key and Authorization name different applications.",
      );
    // A token with a key limits the key's scopes.
    const scopes = byToken?.scopes.filter((scope) => byKey?.scopes.includes(scope) ?? true);
    request.principal = byToken && scopes ? { ...byToken, scopes } : byKey;
  }
}

const NO_OWNER = "Sign in with the owner's wallet, and send: Authorization: Bearer <token>.";

/** The token of an owner's sign-in, from a program or a page. Throws `credentials_missing`. */
export function ownerTokenOf(request: FastifyRequest, service: Pick<Service, "origin">): string {
  const { authorization } = request.headers;
  const token =
    authorization === undefined ? pageToken(request, service, "owner") : bearer(authorization);
  if (token === undefined) throw new MintmarkError("credentials_missing", NO_OWNER);
  return token;
}

function bearer(authorization: string): string {
  const token = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization)?.[1];
  if (token === undefined)
    throw new MintmarkError("credentials_invalid", "Authorization must be: Bearer <token>.");
  if (/^mm_(?:test|live)_/.test(token)) {
    const detail =
      "This is an API key, not a token. Send it as X-Api-Key, or exchange it at POST /oauth/token.";
    throw new MintmarkError("credentials_invalid", detail);
  }
  return token;
}

/**
 * Runs an authentication and counts its failures by the caller's address. Past the limit, failures
 * become `rate_limited`. Right credentials always pass, so nobody can lock out others behind the
 * same address or proxy. Guessing stays hopeless, because a key has far more bits than any number
 * of attempts.
 */
export async function countFailures<T>(
  attempt: Promise<T>,
  failures: TokenBuckets,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    const isFailure = error instanceof MintmarkError && STATUS_OF[error.code] === 401;
    if (isFailure) failures.spend(addressGroup(request.ip), 1, reply);
    throw error;
  }
}

/**
 * A sign-in in a browser: a cookie that no script reads and no other site's request carries
 * (HttpOnly, SameSite=Strict). It counts only with the header of its page, which a browser sends to
 * another origin only when that origin allows it, and this server never does. So neither another
 * site nor another host of the same site can act in a visitor's name.
 */
const PAGES = {
  console: { cookie: "mintmark_sign_in", header: "Mintmark-Console" },
  owner: { cookie: "mintmark_owner", header: "Mintmark-Owner" },
} as const;
type PageName = keyof typeof PAGES;
/**
 * Browsers keep a name with this prefix only when its own host has set it over TLS, so no other
 * host of the site can plant one.
 */
const SECURE = "__Host-";

/**
 * The person of a request's sign-in; null without one. Rejects as `engine.people.signedIn` does.
 */
async function personOf(request: FastifyRequest, service: Service): Promise<SignedIn | null> {
  const token = pageToken(request, service, "console");
  if (token === undefined) return null;
  const signIn = await service.engine.people.signedIn(token);
  return { signIn, token, applicationId: signIn.person.applicationId ?? namedApplication(request) };
}

/**
 * Throws `credentials_missing` for a request that no console of this origin made: it could sign a
 * visitor in.
 */
export function requireConsole(request: FastifyRequest): void {
  if (isFrom(request, "console")) return;
  throw new MintmarkError("credentials_missing", "Send the header Mintmark-Console: 1.");
}

/** Gives the browser a sign-in; null takes it away. */
export function setSignIn(
  reply: FastifyReply,
  { origin }: Pick<Service, "origin">,
  page: PageName,
  signIn: { readonly token: string; readonly expiresAt: number } | null,
): void {
  const seconds =
    signIn === null ? 0 : Math.max(0, Math.floor((signIn.expiresAt - Date.now()) / 1000));
  const name = cookieFor(page, origin);
  const secure = name.startsWith(SECURE) ? "; Secure" : "";
  const value = `${name}=${signIn?.token ?? ""}; Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Strict${secure}`;
  reply.header("set-cookie", value);
}

/** Whether a page of this origin sent the request. */
export function isFrom({ headers }: FastifyRequest, page: PageName): boolean {
  return (
    headers[PAGES[page].header.toLowerCase()] === "1" &&
    (headers["sec-fetch-site"] ?? "same-origin") === "same-origin"
  );
}

/** The token in the cookie of a page's own request; undefined without one. */
function pageToken(
  request: FastifyRequest,
  { origin }: Pick<Service, "origin">,
  page: PageName,
): string | undefined {
  return isFrom(request, page) ? cookieOf(request, cookieFor(page, origin)) : undefined;
}

/** A browser would not keep a secure cookie over plain HTTP, as in the sandbox. */
function cookieFor(page: PageName, origin: Service["origin"]): string {
  const { cookie } = PAGES[page];
  return origin?.protocol === "https:" ? `${SECURE}${cookie}` : cookie;
}

function cookieOf({ headers: { cookie = "" } }: FastifyRequest, name: string): string | undefined {
  const pairs = cookie.split(";").map((pair) => pair.trim());
  return pairs.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1) || undefined;
}

/**
 * The application that a person of the operator looks at. Throws `application_not_found` for no id.
 */
function namedApplication({ headers }: FastifyRequest): string | null {
  const name = headers["mintmark-application"];
  if (name === undefined) return null;
  const applicationId = readUuid(name);
  if (applicationId === null) throw new MintmarkError("application_not_found");
  return applicationId;
}
