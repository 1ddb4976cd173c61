import { readFile } from "node:fs/promises";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
  jwtVerify,
  SignJWT,
} from "jose";
import { type ApiKey, type Engine, MintmarkError, type Principal, SCOPES, type Scope } from "../../core/index.ts";
import { ServerError } from "../http/errors.ts";

/** Lifetime of an access token. */
export const TOKEN_SECONDS = 15 * 60;

const ALGORITHM = "HS256";
const TYPE = "at+jwt";
/** What `iss` of this server's own tokens is; no other issuer may have the name. */
export const ISSUER = "mintmark";

/** Signatures that another issuer may use: public keys only, so a verifier cannot make tokens. */
const PUBLIC_KEY_ALGORITHMS = ["EdDSA", "ES256", "ES384", "PS256", "RS256"];

/** An issuer besides this server, such as the operator's identity provider. */
export interface TrustedIssuer {
  readonly keys: JWTVerifyGetKey;
  /** What `iss` must be. */
  readonly issuer: string;
  /** What `aud` must name. */
  readonly audience: string;
}

/** A JSON Web Key Set from an https address, fetched when it is first needed and kept fresh, or from a file. */
export async function readJwks(place: string): Promise<JWTVerifyGetKey> {
  if (/^https:\/\//.test(place)) return remoteKeys(createRemoteJWKSet(new URL(place)));
  return createLocalJWKSet(JSON.parse(await readFile(place, "utf8")) as JSONWebKeySet);
}

/** What is wrong with a token is its bearer's fault; that its issuer's keys cannot be had is `issuer_unreachable`. */
export function remoteKeys(keys: JWTVerifyGetKey): JWTVerifyGetKey {
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (cause) {
      if (OF_THE_TOKEN.some((type) => cause instanceof type)) throw cause;
      throw new ServerError("issuer_unreachable", undefined, { cause });
    }
  };
}

/** The key that the token names is not in the set, or its algorithm is of no kind that a set holds. */
const OF_THE_TOKEN = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported];

/**
 * Issues and checks bearer tokens: JWTs (RFC 9068) signed with a secret that only this server knows. Those of a trusted
 * issuer have the same claims: `sub` the application, `client_id` one of its keys, `scope`.
 */
export class AccessTokens {
  readonly #engine: Engine;
  readonly #secret: Uint8Array;
  readonly #trusted: TrustedIssuer | undefined;
  /** Tokens of another environment or settlement contract are foreign even when the secret is shared by mistake. */
  readonly #audience: string;

  /** `secret` has at least 32 bytes; servers behind one address share it. */
  constructor(engine: Engine, secret: Uint8Array, trusted?: TrustedIssuer) {
    if (secret.length < 32) throw new TypeError("The token secret must have at least 32 bytes.");
    if (trusted?.issuer === ISSUER)
      throw new TypeError(`The trusted issuer must not be "${ISSUER}", which is this server.`);
    const { chainId, contract } = engine.settlement;
    this.#engine = engine;
    this.#secret = secret;
    this.#trusted = trusted;
    this.#audience = `mintmark:${engine.environment}:${chainId}:${contract}`;
  }

  /** A token for what the principal may do, or for those `scopes` of it. */
  issue(principal: Principal, scopes: readonly Scope[] = principal.scopes): Promise<string> {
    return new SignJWT({ client_id: principal.keyId, scope: scopes.join(" ") })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
      .setSubject(principal.applicationId)
      .setIssuer(ISSUER)
      .setAudience(this.#audience)
      .setIssuedAt()
      .setExpirationTime(`${TOKEN_SECONDS}s`)
      .sign(this.#secret);
  }

  /**
   * Who bears the token. The key behind it is looked at each time, so revoking a key or suspending its application ends
   * its tokens at once. Rejects with `credentials_invalid`, `credentials_expired`, `application_suspended` or
   * `issuer_unreachable`.
   */
  async verify(token: string): Promise<Principal> {
    const { applicationId, keyId, scopes } = await this.#claims(token);
    const key = await this.#key(applicationId, keyId);
    if (key === undefined || key.revokedAt !== null) throw new MintmarkError("credentials_invalid");
    if (key.expiresAt !== null && key.expiresAt <= Date.now()) throw new MintmarkError("credentials_expired");
    const { suspended } = await this.#engine.applications.get(applicationId);
    if (suspended) throw new MintmarkError("application_suspended");
    return { applicationId, keyId, scopes: scopes.filter((scope) => key.scopes.includes(scope)) };
  }

  async #claims(token: string): Promise<Principal> {
    try {
      const trusted = decodeJwt(token).iss === this.#trusted?.issuer ? this.#trusted : undefined;
      const requiredClaims = ["sub", "exp", "iat", "client_id", "scope"];
      const own = { algorithms: [ALGORITHM], typ: TYPE, issuer: ISSUER, audience: this.#audience, requiredClaims };
      const { payload } =
        trusted === undefined
          ? await jwtVerify(token, this.#secret, own)
          : await jwtVerify(token, trusted.keys, { ...own, ...trusted, algorithms: PUBLIC_KEY_ALGORITHMS });
      const granted = String(payload.scope).split(" ");
      return {
        applicationId: String(payload.sub),
        keyId: String(payload.client_id),
        scopes: SCOPES.filter((scope) => granted.includes(scope)),
      };
    } catch (cause) {
      if (cause instanceof ServerError) throw cause;
      throw new MintmarkError(cause instanceof errors.JWTExpired ? "credentials_expired" : "credentials_invalid");
    }
  }

  /** The key, or undefined when there is none, or no such application. */
  async #key(applicationId: string, keyId: string): Promise<ApiKey | undefined> {
    try {
      for await (const key of this.#engine.keys.list(applicationId)) if (key.keyId === keyId) return key;
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "application_not_found") throw error;
    }
    return undefined;
  }
}
