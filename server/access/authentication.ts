import type { FastifyReply, FastifyRequest } from "fastify";
import { type Address, MintmarkError, type Principal } from "../../core/index.ts";
import { STATUS_OF } from "../http/errors.ts";
import type { Service } from "../service.ts";
import { addressGroup, type TokenBuckets } from "./rate-limit.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who is calling; null until authenticated, and on public routes. */
    principal: Principal | null;
    /** Who has signed in with its wallet; null elsewhere. */
    owner: Address | null;
  }
}

/**
 * Establishes who calls, from X-Api-Key, `Authorization: Bearer`, or both when they name one application. Rejects with
 * a `credentials_*` code or `application_suspended`.
 */
export async function authenticate(request: FastifyRequest, { engine, tokens }: Service): Promise<Principal> {
  const key = request.headers["x-api-key"];
  const authorization = request.headers.authorization;
  if (key === undefined && authorization === undefined) throw new MintmarkError("credentials_missing");
  const byKey = key === undefined ? null : await engine.keys.authenticate(String(key));
  const byToken = authorization === undefined ? null : await tokens.verify(bearer(authorization));
  if (byKey !== null && byToken !== null && byKey.applicationId !== byToken.applicationId) {
    throw new MintmarkError("credentials_invalid", "X-Api-Key and Authorization name different applications.");
  }
  if (byKey !== null && byToken !== null) {
    // Whoever sends a narrower token beside a key wants the narrower.
    return { ...byToken, scopes: byToken.scopes.filter((scope) => byKey.scopes.includes(scope)) };
  }
  const principal = byKey ?? byToken;
  if (principal === null) throw new MintmarkError("credentials_missing");
  return principal;
}

/** The owner who bears a session. Rejects with a `credentials_*` code. */
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
 * Runs an attempt to authenticate and counts its failure against the caller's address: past the limit failures become
 * `rate_limited`. Right credentials always pass, so nobody can lock out those who share an address or a proxy with
 * them; guessing stays hopeless, since a key holds far more bits than any number of attempts.
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

/** Counts a failure to authenticate. Throws `rate_limited` past the limit. */
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
