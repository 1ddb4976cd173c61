import type { FastifyReply, FastifyRequest } from "fastify";
import { type Address, MintmarkError, type Principal } from "../../../core/index.ts";
import { addressGroup, type TokenBuckets } from "../../http/access/rate-limit.ts";
import { STATUS_OF } from "../../http/errors.ts";
import type { Service } from "../../service.ts";
import { personOf } from "./console-sign-in.ts";
import type { SignedIn } from "./endpoint.ts";

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
 * Identifies the caller by X-Api-Key, a bearer token, or both; without either by a person's sign-in of the console.
 * Rejects with `credentials_*`, `application_suspended` or `role_missing`.
 */
export async function authenticate(request: FastifyRequest, service: Service): Promise<Principal> {
  const { engine, tokens } = service;
  const key = request.headers["x-api-key"];
  const authorization = request.headers.authorization;
  if (key === undefined && authorization === undefined) {
    request.signedIn = await personOf(request, service);
    if (request.signedIn === null) throw new MintmarkError("credentials_missing");
    const { signIn, applicationId } = request.signedIn;
    return engine.people.principal(signIn, applicationId ?? undefined);
  }
  const byKey = key === undefined ? null : await engine.keys.authenticate(String(key));
  const byToken = authorization === undefined ? null : await tokens.verify(bearer(authorization));
  if (byKey !== null && byToken !== null && byKey.applicationId !== byToken.applicationId) {
    throw new MintmarkError("credentials_invalid", "X-Api-Key and Authorization name different applications.");
  }
  if (byKey !== null && byToken !== null) {
    // A token with a key limits the key's scopes.
    return { ...byToken, scopes: byToken.scopes.filter((scope) => byKey.scopes.includes(scope)) };
  }
  const principal = byKey ?? byToken;
  if (principal === null) throw new MintmarkError("credentials_missing");
  return principal;
}

/** The owner of a sign-in. Rejects with a `credentials_*` code. */
export async function authenticateOwner(request: FastifyRequest, { owners }: Service): Promise<Address> {
  const { authorization } = request.headers;
  if (authorization === undefined) {
    throw new MintmarkError(
      "credentials_missing",
      "Sign in with the owner's wallet, and send: Authorization: Bearer <token>.",
    );
  }
  return owners.owner(bearer(authorization));
}

function bearer(authorization: string): string {
  const token = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization)?.[1];
  if (token === undefined) throw new MintmarkError("credentials_invalid", "Authorization must be: Bearer <token>.");
  if (/^mm_(?:test|live)_/.test(token)) {
    const detail = "This is an API key, not a token. Send it as X-Api-Key, or exchange it at POST /oauth/token.";
    throw new MintmarkError("credentials_invalid", detail);
  }
  return token;
}

/**
 * Runs an authentication and counts its failures by the caller's address. Past the limit, failures become
 * `rate_limited`. Right credentials always pass, so nobody can lock out others behind the same address or proxy.
 * Guessing stays hopeless, because a key has far more bits than any number of attempts.
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
    countFailure(error, failures, request, reply);
    throw error;
  }
}

/** Counts a failed authentication. Throws `rate_limited` past the limit. */
export function countFailure(
  error: unknown,
  failures: TokenBuckets,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (error instanceof MintmarkError && STATUS_OF[error.code] === 401) {
    failures.spend(addressGroup(request.ip), 1, reply);
  }
}
