import { errors, jwtVerify, SignJWT } from "jose";
import { type Hex, hashMessage, recoverMessageAddress } from "viem";
import { createSiweMessage, generateSiweNonce, parseSiweMessage, validateSiweMessage } from "viem/siwe";
import { type Address, type Engine, type L1Reader, MintmarkError } from "../../core/index.ts";

/** Time for an owner to sign, in seconds. */
const CHALLENGE_SECONDS = 5 * 60;
/** Lifetime of an owner's session. */
const SESSION_SECONDS = 15 * 60;
/** Most open challenges; the oldest is dropped first. */
const MAX_CHALLENGES = 10_000;

const ALGORITHM = "HS256";
const TYPE = "owner+jwt";
const ISSUER = "mintmark";
const OWNERS = "Sign in to see your vaults and their withdrawals. This sends no transaction and costs nothing.";

/** The origin's host for EIP-4361. viem accepts no IPv6 address there, so loopback uses its name. */
function domainOf({ host }: URL): string {
  return host.replace(/^\[::1\]/, "localhost");
}

interface Challenge {
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
 * Sign-In with Ethereum (EIP-4361): the holder of a wallet proves its address. The server writes each challenge; it
 * names this server's origin and chain, says what the sign-in is for, and is valid once.
 */
class WalletSignIn {
  readonly #engine: Engine;
  readonly #statement: string;
  readonly #verifySignature: L1Reader["verifySignature"] | undefined;
  readonly #challenges = new Map<string, string>();

  /** `verifySignature` lets wallet contracts (ERC-1271) sign in. Without it only plain accounts can. */
  constructor(engine: Engine, statement: string, verifySignature?: L1Reader["verifySignature"]) {
    this.#engine = engine;
    this.#statement = statement;
    this.#verifySignature = verifySignature;
  }

  /** The message for the holder of `address` to sign. `origin` is this server's address in the browser. */
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
      statement: this.#statement,
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
   * The signer of a challenge, in lower case. Rejects with `credentials_invalid` for a message that is not an open
   * challenge of this server and origin, `credentials_expired` for a late signature, or `signature_invalid`.
   */
  async prove(message: string, signature: Hex, origin: URL): Promise<Address> {
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
    return owner;
  }

  async #signed(owner: Address, message: string, signature: Hex): Promise<boolean> {
    const signer = await recoverMessageAddress({ message, signature }).catch(() => undefined);
    if (signer?.toLowerCase() === owner) return true;
    return (await this.#verifySignature?.(owner, hashMessage(message), signature)) ?? false;
  }
}

/** Members of teams sign in to the console; the engine keeps their sessions. */
export class MemberSignIn extends WalletSignIn {
  constructor(engine: Engine, verifySignature?: L1Reader["verifySignature"]) {
    super(engine, "Sign in to the console. This sends no transaction and costs nothing.", verifySignature);
  }
}

/** Owners of vaults sign in, and get a short session for their address. */
export class OwnerSignIn extends WalletSignIn {
  readonly #secret: Uint8Array;
  readonly #audience: string;

  constructor(engine: Engine, secret: Uint8Array, verifySignature?: L1Reader["verifySignature"]) {
    super(engine, OWNERS, verifySignature);
    const { chainId, contract } = engine.settlement;
    this.#secret = secret;
    this.#audience = `mintmark:owner:${engine.environment}:${chainId}:${contract}`;
  }

  /** A session for the signer of a challenge. Rejects as {@link prove} does. */
  async open(message: string, signature: Hex, origin: URL): Promise<Session> {
    return this.#session(await this.prove(message, signature, origin));
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
