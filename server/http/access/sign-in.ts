import { createHmac, randomBytes } from "node:crypto";
import { errors } from "jose";
import { type Hex, hashMessage } from "viem";
import { createSiweMessage, parseSiweMessage } from "viem/siwe";
import {
  type Address,
  type Engine,
  type L1Reader,
  MintmarkError,
  type SignedOptions,
} from "../../../core/index.ts";
import { isSignedBy, isUndeployed, UNDEPLOYED_REFUSED } from "../../../core/protocol/index.ts";
import { ownTokens } from "./access-token.ts";

const CHALLENGE_SECONDS = 5 * 60;
const SIGN_IN_SECONDS = 15 * 60;
/** Hex digits of a nonce's random part, which the server's authentication code follows. */
const RANDOM_DIGITS = 16;

const TYPE = "owner+jwt";
/** People of teams sign this; the engine keeps their sign-ins. */
export const TO_CONSOLE = "Sign in to the console. This sends no transaction and costs nothing.";
const OWNERS =
  "Sign in to see your vaults and their withdrawals. This sends no transaction and costs nothing.";

/**
 * Sign-In with Ethereum (EIP-4361): the holder of a wallet proves its address. The server writes
 * each challenge; it names this server's origin and chain, says what the sign-in is for, and counts
 * once. Its nonce shows that this process wrote it, so the server keeps only the nonces of accepted
 * signatures. A restart ends open challenges.
 */
export class WalletChallenges {
  readonly #engine: Engine;
  readonly #statement: string;
  readonly #verifySignature: L1Reader["verifySignature"] | undefined;
  readonly #secret = randomBytes(32);
  /** Nonces of accepted signatures, with the time until which they are kept. */
  readonly #used = new Map<string, number>();

  /**
   * `verifySignature` lets wallet contracts (ERC-1271) sign in. Without it only plain accounts can.
   */
  constructor(engine: Engine, statement: string, verifySignature?: L1Reader["verifySignature"]) {
    this.#engine = engine;
    this.#statement = statement;
    this.#verifySignature = verifySignature;
  }

  /**
   * The message for the holder of `address` to sign. `origin` is this server's address in the
   * browser.
   */
  challenge(address: Address, origin: URL) {
    return this.#write(address, origin, new Date(), randomBytes(RANDOM_DIGITS / 2).toString("hex"));
  }

  #write(address: Address, origin: URL, issuedAt: Date, random: string) {
    const expirationTime = new Date(issuedAt.getTime() + CHALLENGE_SECONDS * 1000);
    const withNonce = (nonce: string) =>
      createSiweMessage({
        address,
        chainId: Number(this.#engine.settlement.chainId),
        // viem accepts no IPv6 address here, so loopback uses its name.
        domain: origin.host.replace(/^\[::1\]/, "localhost"),
        expirationTime,
        issuedAt,
        nonce,
        statement: this.#statement,
        uri: origin.origin,
        version: "1",
      });
    const code = createHmac("sha256", this.#secret).update(withNonce(random)).digest("hex");
    return { message: withNonce(random + code), expiresAt: expirationTime.getTime() };
  }

  /**
   * The challenge with these words; undefined for a message that this process did not write for
   * this origin.
   */
  #read(message: string, origin: URL) {
    const { address, issuedAt, nonce = "" } = parseSiweMessage(message);
    try {
      const known = { address: address as Address, nonce: nonce.slice(0, RANDOM_DIGITS) };
      const challenge = this.#write(known.address, origin, issuedAt as Date, known.nonce);
      return challenge.message === message ? { ...challenge, ...known } : undefined;
    } catch {
      return undefined; // The message lacks a field.
    }
  }

  /**
   * The signer of a challenge, in lower case. Rejects with `credentials_invalid` for a message that
   * is not an open challenge of this server and origin, `credentials_expired` for a late signature,
   * or `signature_invalid`.
   */
  async prove(
    message: string,
    signature: Hex,
    origin: URL,
    options?: SignedOptions,
  ): Promise<Address> {
    const challenge = this.#read(message, origin);
    if (challenge === undefined || this.#used.has(challenge.nonce)) {
      throw new MintmarkError(
        "credentials_invalid",
        "This challenge is not open at this server. Ask for a new one.",
      );
    }
    const { address, nonce, expiresAt } = challenge;
    if (expiresAt <= Date.now()) {
      throw new MintmarkError(
        "credentials_expired",
        "This challenge has expired. Ask for a new one.",
      );
    }
    const owner = address.toLowerCase() as Address;
    if (!(await this.#signed(owner, message, signature, options))) {
      throw new MintmarkError(
        "signature_invalid",
        isUndeployed(signature)
          ? UNDEPLOYED_REFUSED
          : `The signature is not by ${owner} over this message.`,
      );
    }
    this.#use(nonce, expiresAt);
    return owner;
  }

  /**
   * Throws `credentials_invalid` at the second use, also when both were checked at the same time.
   */
  #use(nonce: string, expiresAt: number): void {
    if (this.#used.has(nonce)) {
      throw new MintmarkError(
        "credentials_invalid",
        "This challenge has been used. Ask for a new one.",
      );
    }
    this.#used.set(nonce, expiresAt);
    forgetPast(this.#used);
  }

  async #signed(
    owner: Address,
    message: string,
    signature: Hex,
    options?: SignedOptions,
  ): Promise<boolean> {
    const digest = hashMessage(message);
    if (await isSignedBy(owner, digest, signature)) return true;
    if (this.#verifySignature === undefined) return false;
    options?.onWalletCheck?.();
    return await this.#verifySignature(owner, digest, signature);
  }
}

/** Owners of vaults sign in for a short time, and get a token for their address. */
export class OwnerChallenges extends WalletChallenges {
  readonly #tokens: ReturnType<typeof ownTokens>;
  /** Tokens whose owners have signed out at this server, with the time of their end. */
  readonly #ended = new Map<string, number>();

  constructor(engine: Engine, secret: Uint8Array, verifySignature?: L1Reader["verifySignature"]) {
    super(engine, OWNERS, verifySignature);
    const { chainId, contract } = engine.settlement;
    this.#tokens = ownTokens(
      secret,
      TYPE,
      `mintmark:owner:${engine.environment}:${chainId}:${contract}`,
    );
  }

  /** A sign-in for the signer of a challenge. Rejects as {@link prove} does. */
  async open(message: string, signature: Hex, origin: URL, options?: SignedOptions) {
    const address = await this.prove(message, signature, origin, options);
    const exp = Math.floor(Date.now() / 1000) + SIGN_IN_SECONDS;
    return {
      token: await this.#tokens.sign({ sub: address, exp }),
      address,
      expiresAt: exp * 1000,
    };
  }

  /**
   * The owner of a sign-in's token, and when it ends. Rejects with `credentials_invalid` or
   * `credentials_expired`.
   */
  async signedIn(
    token: string,
  ): Promise<{ readonly address: Address; readonly expiresAt: number }> {
    try {
      const { sub, exp = 0 } = (await this.#tokens.verify(token)).payload;
      if (this.#ended.has(token)) throw new Error("The owner has signed out.");
      return { address: sub as Address, expiresAt: exp * 1000 };
    } catch (cause) {
      throw cause instanceof errors.JWTExpired
        ? new MintmarkError(
            "credentials_expired",
            "The sign-in has expired. Sign in again with the owner's wallet.",
          )
        : new MintmarkError(
            "credentials_invalid",
            "This token is not valid. Sign in with the owner's wallet.",
          );
    }
  }

  /** Ends a sign-in before its time. Rejects as {@link signedIn} does. */
  async end(token: string): Promise<{ readonly address: Address; readonly expiresAt: number }> {
    const signIn = await this.signedIn(token);
    forgetPast(this.#ended);
    this.#ended.set(token, signIn.expiresAt);
    return signIn;
  }
}

/**
 * Drops the oldest entries whose times have passed. One that was added out of order goes a little
 * later.
 */
function forgetPast(until: Map<string, number>): void {
  for (const [oldest, time] of until) {
    if (time > Date.now()) break;
    until.delete(oldest);
  }
}
