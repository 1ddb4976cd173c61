import { errors, jwtVerify, SignJWT } from "jose";
import { type Hex, hashMessage, recoverMessageAddress } from "viem";
import { createSiweMessage, generateSiweNonce, parseSiweMessage, validateSiweMessage } from "viem/siwe";
import { type Address, type Engine, type L1Reader, MintmarkError } from "../../core/index.ts";

/** Time for an owner to sign, in seconds. */
const CHALLENGE_SECONDS = 5 * 60;
/** Lifetime of an owner's session. */
export const SESSION_SECONDS = 15 * 60;
/** Most open challenges; the oldest is dropped first. */
const MAX_CHALLENGES = 10_000;

const ALGORITHM = "HS256";
const TYPE = "owner+jwt";
const ISSUER = "mintmark";
const STATEMENT = "Sign in to download the exit kits of your vaults. This sends no transaction and costs nothing.";

/** The origin's host for EIP-4361. viem accepts no IPv6 address there, so loopback uses its name. */
function domainOf({ host }: URL): string {
  return host.replace(/^\[::1\]/, "localhost");
}

export interface Challenge {
  /** EIP-4361 text, to be signed unchanged (`personal_sign`). */
  readonly message: string;
  readonly expiresAt: number;
}

export interface Session {
  readonly token: string;
  readonly address: Address;
  readonly expiresAt: number;
}

/**
 * Sign-In with Ethereum (EIP-4361): an owner proves its address with its wallet and gets a short session for it. The
 * server writes each challenge; it names this server's origin and chain, and is valid once.
 */
export class OwnerSignIn {
  readonly #engine: Engine;
  readonly #secret: Uint8Array;
  readonly #audience: string;
  readonly #verifySignature: L1Reader["verifySignature"] | undefined;
  readonly #challenges = new Map<string, string>();

  /** `verifySignature` lets wallet contracts (ERC-1271) sign in. Without it only plain accounts can. */
  constructor(engine: Engine, secret: Uint8Array, verifySignature?: L1Reader["verifySignature"]) {
    const { chainId, contract } = engine.settlement;
    this.#engine = engine;
    this.#secret = secret;
    this.#audience = `mintmark:owner:${engine.environment}:${chainId}:${contract}`;
    this.#verifySignature = verifySignature;
  }

  /** The message for the owner of `address` to sign. `origin` is this server's address in the browser. */
  challenge(address: Address, origin: URL): Challenge {
    const nonce = generateSiweNonce();
    const issuedAt = new Date();
    const expirationTime = new Date(issuedAt.getTime() + CHALLENGE_SECONDS * 1000);
    const message = createSiweMessage({
      address,
      chainId: Number(this.#engine.settlement.chainId),
      domain: domainOf(origin),
      expirationTime,
      issuedAt,
      nonce,
      statement: STATEMENT,
      uri: origin.origin,
      version: "1",
    });
    this.#challenges.set(nonce, message);
    if (this.#challenges.size > MAX_CHALLENGES) {
      const [oldest] = this.#challenges.keys();
      if (oldest !== undefined) this.#challenges.delete(oldest);
    }
    return { message, expiresAt: expirationTime.getTime() };
  }

  /**
   * A session for the signer of a challenge. Rejects with `credentials_invalid` for a message that is not an open
   * challenge of this server and origin, `credentials_expired` for a late signature, or `signature_invalid`.
   */
  async open(message: string, signature: Hex, origin: URL): Promise<Session> {
    const fields = parseSiweMessage(message);
    const { nonce = "", address, expirationTime, chainId, uri } = fields;
    if (address === undefined || this.#challenges.get(nonce) !== message) {
      throw new MintmarkError("credentials_invalid", "This challenge is not open at this server. Ask for a new one.");
    }
    this.#challenges.delete(nonce);
    if (expirationTime !== undefined && expirationTime <= new Date()) {
      throw new MintmarkError("credentials_expired", "This challenge has expired. Ask for a new one.");
    }
    const ours = chainId === Number(this.#engine.settlement.chainId) && uri === origin.origin;
    if (!ours || !validateSiweMessage({ message: fields, domain: domainOf(origin), nonce })) {
      throw new MintmarkError("credentials_invalid", "The message was made for another site or chain.");
    }
    const owner = address.toLowerCase() as Address;
    if (!(await this.#signed(owner, message, signature))) {
      throw new MintmarkError("signature_invalid", `The signature is not by ${owner} over this message.`);
    }
    return this.#session(owner);
  }

  /** The owner of a session token. Rejects with `credentials_invalid` or `credentials_expired`. */
  async owner(token: string): Promise<Address> {
    try {
      const { payload } = await jwtVerify(token, this.#secret, {
        algorithms: [ALGORITHM],
        typ: TYPE,
        issuer: ISSUER,
        audience: this.#audience,
        requiredClaims: ["sub", "exp", "iat"],
      });
      return payload.sub as Address;
    } catch (cause) {
      throw cause instanceof errors.JWTExpired
        ? new MintmarkError("credentials_expired", "The session has expired. Sign in again with the owner's wallet.")
        : new MintmarkError("credentials_invalid", "This is no session. Sign in with the owner's wallet.");
    }
  }

  async #signed(owner: Address, message: string, signature: Hex): Promise<boolean> {
    const signer = await recoverMessageAddress({ message, signature }).catch(() => undefined);
    if (signer?.toLowerCase() === owner) return true;
    return (await this.#verifySignature?.(owner, hashMessage(message), signature)) ?? false;
  }

  async #session(address: Address): Promise<Session> {
    const expiresAt = Math.floor(Date.now() / 1000) + SESSION_SECONDS;
    const token = await new SignJWT()
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
      .setSubject(address)
      .setIssuer(ISSUER)
      .setAudience(this.#audience)
      .setIssuedAt()
      .setExpirationTime(expiresAt)
      .sign(this.#secret);
    return { token, address, expiresAt: expiresAt * 1000 };
  }
}
