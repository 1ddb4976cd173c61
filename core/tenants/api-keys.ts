import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import type { WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, tablePage } from "../ledger/list.ts";
import {
  type Address,
  type ApiKey,
  type Environment,
  type Principal,
  SCOPES,
  type Scope,
  type Uuid,
} from "../model.ts";
import { requireInteger } from "../protocol/bounds.ts";
import { MAX_TIME } from "../store/layout.ts";
import type { KeyRecord } from "../store/records.ts";

/**
 * A key's token, shown once:
 *
 * ```
 * mm_test_<keyId>_<secret><checksum>      mm_live_… in the live environment
 * ```
 *
 * keyId is 8 bytes in hex: the contract's tag, {@link contractTag}, and 6 random bytes. secret is 32 random bytes in
 * hex. checksum is the CRC-32 of everything before it, in hex, so scanners can recognize a leaked key. Only SHA-256 of
 * the secret is stored; it is random, so no slower hash is needed.
 */
const TOKEN = /^mm_(test|live)_([0-9a-f]{16})_([0-9a-f]{64})([0-9a-f]{8})$/;
const TAG: Readonly<Record<Environment, string>> = { sandbox: "test", live: "live" };
/** Compared with for an unknown key, so that the answer takes as long. */
const NOBODY = randomBytes(32);

function keyView(ledger: Ledger, record: KeyRecord): ApiKey {
  const { keyId, applicationIndex, scopes, mintQuota, mintsUsed, createdAt, expiresAt, revokedAt } = record;
  const application = ledger.applications.latest(applicationIndex);
  if (application === undefined)
    throw new MintmarkError("store_corrupt", `Application ${applicationIndex} is missing.`);
  const { applicationId } = application;
  return { keyId, applicationId, scopes, mintQuota, mintsUsed, createdAt, expiresAt, revokedAt };
}

function requireKeyOptions({ scopes = SCOPES, expiresAt = null, mintQuota = null }: NewKey) {
  if (scopes.length === 0 || scopes.some((scope) => !SCOPES.includes(scope))) {
    throw new MintmarkError("validation_failed", `scopes must be some of ${SCOPES.join(", ")}`);
  }
  if (expiresAt !== null) requireInteger("expiresAt", expiresAt, 0, MAX_TIME);
  if (mintQuota !== null && (typeof mintQuota !== "bigint" || mintQuota < 0n)) {
    throw new MintmarkError("validation_failed", "mintQuota must be a bigint, not negative, or null");
  }
  return { scopes: SCOPES.filter((scope) => scopes.includes(scope)), expiresAt, mintQuota };
}

/**
 * The principal of a token. Takes as long for an unknown key as for a wrong secret. Throws `credentials_invalid`,
 * `credentials_expired`, `application_suspended`.
 */
function authenticate(ledger: Ledger, token: string): Principal {
  const [, tag, keyId = "", secret = "", checksum] = (typeof token === "string" && TOKEN.exec(token)) || [];
  const index = ledger.keyIndices.get(keyId);
  const key = index === undefined ? undefined : ledger.keys.get(index);
  const expected = key === undefined ? NOBODY : Buffer.from(key.secretHash.slice(2), "hex");
  const matches = timingSafeEqual(hashOf(secret), expected);
  const wellFormed = tag === TAG[ledger.environment] && checksum === checksumOf(`mm_${tag}_${keyId}_${secret}`);
  if (key === undefined || !matches || !wellFormed || key.revokedAt !== null) {
    throw new MintmarkError("credentials_invalid");
  }
  if (key.expiresAt !== null && key.expiresAt <= ledger.journalClock.present())
    throw new MintmarkError("credentials_expired");
  const application = ledger.applications.get(key.applicationIndex);
  if (application === undefined) throw new MintmarkError("store_corrupt", "A key's application is missing.");
  if (application.suspended) throw new MintmarkError("application_suspended");
  return { applicationId: application.applicationId, keyId, scopes: key.scopes };
}

/** The current key: it may have been revoked or suspended since the request's authentication. */
export function requireKey(ledger: Ledger, principal: Principal): KeyRecord {
  const index = ledger.keyIndices.get(principal.keyId);
  const key = index === undefined ? undefined : ledger.keys.latest(index);
  const application = ledger.latestApplication(principal.applicationId);
  if (key === undefined || key.applicationIndex !== application.applicationIndex || key.revokedAt !== null) {
    throw new MintmarkError("credentials_invalid");
  }
  if (key.expiresAt !== null && key.expiresAt <= ledger.journalClock.present())
    throw new MintmarkError("credentials_expired");
  if (application.suspended) throw new MintmarkError("application_suspended");
  return key;
}

function newKeyId({ settlement, keyIndices }: Pick<Ledger, "settlement" | "keyIndices">): string {
  const keyId = contractTag(settlement.contract) + randomBytes(6).toString("hex");
  return keyIndices.has(keyId) ? newKeyId({ settlement, keyIndices }) : keyId;
}

function tokenOf(environment: Environment, keyId: string, secret: string): string {
  const body = `mm_${TAG[environment]}_${keyId}_${secret}`;
  return body + checksumOf(body);
}

function checksumOf(body: string): string {
  return crc32(body).toString(16).padStart(8, "0");
}

function hashOf(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

/** Input of {@link Keys.issue}. */
export interface NewKey {
  /** Default: all. */
  readonly scopes?: readonly Scope[];
  /** Milliseconds since 1970; default never. */
  readonly expiresAt?: number | null;
  /** Most mint entries that the key may ever make; null, the default: no limit. */
  readonly mintQuota?: bigint | null;
}

/** A new key with its secret. */
export interface IssuedKey {
  readonly key: ApiKey;
  /** The whole token, `mm_test_<keyId>_<secret and checksum>`. Not stored: shown once. */
  readonly secret: string;
}

/** The first four hex digits of a contract's address. Every key id starts with them, so a gateway can route by key. */
export function contractTag(contract: Address): string {
  return contract.slice(2, 6).toLowerCase();
}

/** Throws `scope_missing`. */
export function requireScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.includes(scope)) throw new MintmarkError("scope_missing", `The key lacks the scope ${scope}.`);
}

export function keysOf(context: EngineContext): Keys {
  return {
    async issue(applicationId, options = {}, wait) {
      const { ledger } = context;
      const { scopes, expiresAt, mintQuota } = requireKeyOptions(options);
      const keyId = newKeyId(ledger);
      const secret = randomBytes(32).toString("hex");
      const secretHash = `0x${hashOf(secret).toString("hex")}` as const;
      const key = await ledger.writer.alone(async (group) => {
        const { applicationIndex } = ledger.latestApplication(applicationId);
        const keyIndex = ledger.keys.latestCount;
        const facts = { keyIndex, keyId, applicationIndex, secretHash, scopes, expiresAt, mintQuota };
        const { time } = ledger.record(group, { kind: "keyIssued", ...facts });
        const record: KeyRecord = { ...facts, mintsUsed: 0n, createdAt: time, revokedAt: null };
        ledger.putKey(group, record);
        return keyView(ledger, record);
      }, wait?.signal);
      return { key, secret: tokenOf(ledger.environment, keyId, secret) };
    },
    list: (applicationId, page = {}) =>
      listOf(context, "keys", applicationId, page, (start) => {
        const { ledger } = context;
        const { applicationIndex } = ledger.application(applicationId);
        return tablePage(ledger.keys, start, (key) =>
          key.applicationIndex === applicationIndex ? keyView(ledger, key) : null,
        );
      }),
    async revoke(keyId, wait) {
      const { ledger } = context;
      return ledger.writer.alone(async (group) => {
        const index = ledger.keyIndices.get(keyId);
        const key = index === undefined ? undefined : ledger.keys.latest(index);
        if (key === undefined) throw new MintmarkError("key_not_found");
        if (key.revokedAt !== null) return keyView(ledger, key);
        const { time } = ledger.record(group, { kind: "keyRevoked", keyIndex: key.keyIndex });
        const revoked = { ...key, revokedAt: time };
        ledger.putKey(group, revoked);
        const view = keyView(ledger, revoked);
        group.onDurable(() => ledger.emit("access", { applicationId: view.applicationId }));
        return view;
      }, wait?.signal);
    },
    authenticate: async (token) => authenticate(context.ledger, token),
  };
}

/**
 * The API keys of applications.
 *
 * @example
 * const { secret } = await engine.keys.issue(applicationId, { scopes: ["mint"], mintQuota: 10_000n });
 * const principal = await engine.keys.authenticate(secret);
 */
export interface Keys {
  /** Creates a key. Shows its secret this once. Rejects with `application_not_found`. */
  issue(applicationId: Uuid, key?: NewKey, wait?: WaitOptions): Promise<IssuedKey>;
  /** Oldest first, with revoked keys. */
  list(applicationId: Uuid, page?: PageOptions): List<ApiKey>;
  /** Revokes a key; repeats change nothing. Rejects with `key_not_found`. */
  revoke(keyId: string, wait?: WaitOptions): Promise<ApiKey>;
  /** The principal of a token. Rejects with `credentials_invalid`, `credentials_expired`, `application_suspended`. */
  authenticate(token: string): Promise<Principal>;
}
