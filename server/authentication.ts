import type { FastifyReply, FastifyRequest } from "fastify";
import { MintmarkError, type Principal } from "../core/index.ts";
import type { AccessTokens } from "./access-token.ts";
import { STATUS_OF } from "./errors.ts";
import { addressGroup, type TokenBuckets } from "./rate-limit.ts";
import type { Service } from "./service.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who is calling; null until authenticated, and on public routes. */
    principal: Principal | null;
  }
}

/**
 * Establishes who calls, from X-Api-Key, `Authorization: Bearer`, or both when they name one application. Rejects with a `credentials_*`
 * code or `application_suspended`.
 */
export async function authenticate(request: FastifyRequest, { engine, tokens }: Service): Promise<Principal> {
  const key = request.headers["x-api-key"];
  const authorization = request.headers.authorization;
  if (key === undefined && authorization === undefined) throw new MintmarkError("credentials_missing");
  const byKey = key === undefined ? null : await engine.authenticate(String(key));
  const byToken = authorization === undefined ? null : await bearer(authorization, tokens);
  if (byKey !== null && byToken !== null && byKey.applicationId !== byToken.applicationId) {
    throw new MintmarkError("credentials_invalid", "X-Api-Key and Authorization name different applications.");
  }
  const principal = byKey ?? byToken;
  if (principal === null) throw new MintmarkError("credentials_missing");
  return principal;
}

function bearer(authorization: string, tokens: AccessTokens): Promise<Principal> {
  const token = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization)?.[1];
  if (token === undefined) throw new MintmarkError("credentials_invalid", "Authorization must be: Bearer <token>.");
  return tokens.verify(token);
}

/**
 * Runs an attempt to authenticate and counts its failure against the caller's address: past the limit failures become `rate_limited`.
 * Right credentials always pass, so nobody can lock out those who share an address or a proxy with them; guessing stays hopeless,
 * since a key holds far more bits than any number of attempts.
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
    if (error instanceof MintmarkError && STATUS_OF[error.code] === 401) {
      failures.spend(addressGroup(request.ip), 1, reply);
    }
    throw error;
  }
}
