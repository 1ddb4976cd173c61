import { readFile } from "node:fs/promises";
import * as jose from "jose";
import {
  type ApiKey,
  type Engine,
  MintmarkError,
  type Principal,
  SCOPES,
  type Scope,
} from "../../../core/index.ts";
import { orNull } from "../../../core/internal.ts";
import { ServerError } from "../errors.ts";
import { ISSUER, TOKEN_SECONDS } from "./token-terms.ts";

const ALGORITHM = "HS256";
const TYPE = "at+jwt";

/** Signature algorithms of other issuers: public keys only, so a verifier cannot issue tokens. */
const PUBLIC_KEY_ALGORITHMS = ["EdDSA", "ES256", "ES384", "PS256", "RS256"];

/** A provider whose bearer tokens the server takes besides its own, such as the operator's. */
export interface IdentityProvider {
  readonly keys: jose.JWTVerifyGetKey;
  /** The required `iss`. */
  readonly issuer: string;
  /** The required `aud`. */
  readonly audience: string;
}

/** A JSON Web Key Set from an https address, fetched at first use and refreshed, or from a file. */
export async function readJwks(place: string): Promise<jose.JWTVerifyGetKey> {
  if (/^https:\/\//.test(place)) return remoteKeys(jose.createRemoteJWKSet(new URL(place)));
  return jose.createLocalJWKSet(JSON.parse(await readFile(place, "utf8")) as jose.JSONWebKeySet);
}

/** A bad token is its bearer's fault; unreachable keys are `issuer_unreachable`. */
export function remoteKeys(keys: jose.JWTVerifyGetKey): jose.JWTVerifyGetKey {
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (cause) {
      if (OF_THE_TOKEN.some((type) => cause instanceof type)) throw cause;
      throw new ServerError("issuer_unreachable", undefined, { cause });
    }
  };
}

/** The set lacks the token's key, or cannot hold keys of its algorithm. */
const OF_THE_TOKEN = [
  jose.errors.JWKSNoMatchingKey,
  jose.errors.JWKSMultipleMatchingKeys,
  jose.errors.JOSENotSupported,
];

/** Signs and verifies this server's own tokens: JWTs of one type, for one audience. */
export function ownTokens(secret: Uint8Array, typ: string, audience: string, ...claims: string[]) {
  const requiredClaims = ["sub", "exp", "iat", ...claims];
  const expected = { algorithms: [ALGORITHM], typ, issuer: ISSUER, audience, requiredClaims };
  return {
    expected,
    sign: (payload: jose.JWTPayload & { readonly exp: number }): Promise<string> =>
      new jose.SignJWT({ ...payload, iss: ISSUER, aud: audience })
        .setProtectedHeader({ alg: ALGORITHM, typ })
        .setIssuedAt()
        .sign(secret),
    verify: (token: string): Promise<jose.JWTVerifyResult> =>
      jose.jwtVerify(token, secret, expected),
  };
}

/**
 * Issues and verifies bearer tokens: JWTs (RFC 9068) signed with this server's secret. Tokens of an
 * identity provider have the same claims: `sub` is the application, `client_id` one of its keys,
 * and `scope`.
 */
export class AccessTokens {
  readonly #engine: Engine;
  readonly #trusted: IdentityProvider | undefined;
  readonly #own: ReturnType<typeof ownTokens>;

  /** `secret` has at least 32 bytes. Servers behind one address share it. */
  constructor(engine: Engine, secret: Uint8Array, trusted?: IdentityProvider) {
    if (secret.length < 32) throw new TypeError("The token secret must have at least 32 bytes.");
    if (trusted?.issuer === ISSUER)
      throw new TypeError(
        `The identity provider must not be "${ISSUER}", the name of this server.`,
      );
    const { chainId, contract } = engine.settlement;
    this.#engine = engine;
    this.#trusted = trusted;
    // Tokens of another environment or settlement contract fail even with the same secret.
    const audience = `mintmark:${engine.environment}:${chainId}:${contract}`;
    this.#own = ownTokens(secret, TYPE, audience, "client_id", "scope");
  }

  issue(principal: Principal, scopes: readonly Scope[] = principal.scopes): Promise<string> {
    const { applicationId: sub, keyId: client_id } = principal;
    const exp = Math.floor(Date.now() / 1000) + TOKEN_SECONDS;
    return this.#own.sign({ sub, client_id, scope: scopes.join(" "), exp });
  }

  /**
   * The principal of a token. Reads its key each time, so revoking the key or suspending its
   * application ends it. Rejects with `credentials_invalid`, `credentials_expired`,
   * `application_suspended` or `issuer_unreachable`.
   */
  async verify(token: string): Promise<Principal> {
    const { applicationId, keyId, scopes } = await this.#claims(token);
    const key = await this.#key(applicationId, keyId);
    if (key === null || key.revokedAt !== null) throw new MintmarkError("credentials_invalid");
    if (key.expiresAt !== null && key.expiresAt <= Date.now())
      throw new MintmarkError("credentials_expired");
    const { suspended } = await this.#engine.applications.get(applicationId);
    if (suspended) throw new MintmarkError("application_suspended");
    return { applicationId, keyId, scopes: scopes.filter((scope) => key.scopes.includes(scope)) };
  }

  async #claims(token: string): Promise<Principal> {
    try {
      const trusted =
        jose.decodeJwt(token).iss === this.#trusted?.issuer ? this.#trusted : undefined;
      const expected = { ...this.#own.expected, ...trusted, algorithms: PUBLIC_KEY_ALGORITHMS };
      const { payload } = await (trusted === undefined
        ? this.#own.verify(token)
        : jose.jwtVerify(token, trusted.keys, expected));
      const granted = String(payload.scope).split(" ");
      return {
        applicationId: String(payload.sub),
        keyId: String(payload.client_id),
        scopes: SCOPES.filter((scope) => granted.includes(scope)),
      };
    } catch (cause) {
      if (cause instanceof ServerError) throw cause;
      throw new MintmarkError(
        cause instanceof jose.errors.JWTExpired ? "credentials_expired" : "credentials_invalid",
      );
    }
  }

  /** The key; null for an unknown key or application. */
  #key(applicationId: string, keyId: string): Promise<ApiKey | null> {
    const find = () => this.#engine.keys.get(applicationId, keyId);
    return orNull("application_not_found", () => orNull("key_not_found", find));
  }
}
