import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import type { WaitOptions } from "../abort.ts";
import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Actor, TenantLedger } from "../ledger/ledger.ts";
import { type List, listOf, type OrderedPage, tablePage } from "../ledger/list.ts";
import type { Services } from "../ledger/services.ts";
import type { ApiKey, Environment, Hash, Principal, Role, Scope, Uuid } from "../model.ts";
import { SCOPES } from "../model.ts";
import { requireInteger } from "../protocol/bounds.ts";
import type { Group } from "../store/group.ts";
import { MAX_TIME } from "../store/layout.ts";
import type { ApplicationRecord, KeyRecord } from "../store/records.ts";
import { requireText } from "../validate.ts";

/** A person may have the scopes of keys, and rights that no key can have. */
export const RIGHTS = [...SCOPES, "keys", "people", "operate"] as const;
/** One right of a person. */
export type Right = (typeof RIGHTS)[number];

/** The scopes of a person's own key. */
export const SCOPES_OF: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: ["read"],
  developer: ["mint", "read", "users", "withdraw", "webhooks", "transfer"],
  admin: SCOPES,
  operator: ["read"],
};

const MORE: Readonly<Record<Role, readonly Right[]>> = {
  viewer: [],
  developer: ["keys"],
  admin: ["keys", "people"],
  operator: ["keys", "people", "operate"],
};

export function rightsOf(role: Role): readonly Right[] {
  return [...SCOPES_OF[role], ...MORE[role]];
}

/** Throws `role_missing`. */
export function requireRight(role: Role, right: Right): void {
  if (rightsOf(role).includes(right)) return;
  throw new MintmarkError("role_missing", `Your role, ${role}, lacks the right "${right}".`);
}

/**
 * A key's token, shown once:
 *
 * ```
 * mm_test_<keyId>_<secret><checksum>      mm_live_… in the live environment
 * ```
 *
 * keyId is 8 bytes in hex: the first two of the contract's address, by which a gateway can route,
 * and 6 random bytes. secret is 32 random bytes in hex. checksum is the CRC-32 of everything before
 * it, in hex, so scanners can recognize a leaked key. Only SHA-256 of the secret is stored; it is
 * random, so no slower hash is needed.
 */
const TOKEN = /^mm_(test|live)_([0-9a-f]{16})_([0-9a-f]{64})([0-9a-f]{8})$/;
const TAG: Readonly<Record<Environment, string>> = { sandbox: "test", live: "live" };
/**
 * Most keys of an application that are neither revoked nor expired, besides those of its people.
 */
const MAX_KEYS = 100;
/** Compared with for an unknown secret, so that the answer takes as long. */
const NOBODY = randomBytes(32);

function keyView(ledger: TenantLedger, record: KeyRecord): ApiKey {
  const {
    keyId,
    applicationIndex,
    name,
    scopes,
    mintQuota,
    mintsUsed,
    createdAt,
    expiresAt,
    revokedAt,
  } = record;
  return {
    keyId,
    applicationId: ledger.tenants.applicationIdAt(applicationIndex),
    name,
    scopes,
    mintQuota,
    mintsUsed,
    createdAt,
    expiresAt,
    revokedAt,
  };
}

function requireKeyOptions({
  scopes = SCOPES,
  expiresAt = null,
  mintQuota = null,
  name = null,
}: NewKey) {
  if (scopes.length === 0 || scopes.some((scope) => !SCOPES.includes(scope)))
    throw argumentError("scopes", `must be some of ${SCOPES.join(", ")}`);
  if (expiresAt !== null) requireInteger("expiresAt", expiresAt, 0, MAX_TIME);
  if (mintQuota !== null && (typeof mintQuota !== "bigint" || mintQuota < 0n))
    throw argumentError("mintQuota", "must be a bigint, not negative, or null");
  const called = name === null ? null : requireText("name", name, 100);
  const ordered = SCOPES.filter((scope) => scopes.includes(scope));
  return { scopes: ordered, expiresAt, mintQuota, name: called, ofPerson: false };
}

/** The current key: it may have been revoked or suspended since the request's authentication. */
export function requireKey(ledger: TenantLedger, group: Group, principal: Principal): KeyRecord {
  const key = ledger.tenants.keys.named(principal.keyId, group);
  const application = ledger.tenants.application(principal.applicationId, group);
  if (key?.applicationIndex !== application.applicationIndex)
    throw new MintmarkError("credentials_invalid");
  requireInForce(ledger, key, application);
  return key;
}

function requireInForce(
  ledger: TenantLedger,
  { revokedAt, expiresAt }: KeyRecord,
  { suspended }: ApplicationRecord,
): void {
  if (revokedAt !== null)
    throw new MintmarkError("credentials_invalid", "The API key has been revoked. Use another.");
  if (expiresAt !== null && expiresAt <= ledger.journal.clock.present())
    throw new MintmarkError("credentials_expired");
  if (suspended) throw new MintmarkError("application_suspended");
}

function newKeyId(ledger: TenantLedger, group: Group): string {
  const { contract } = ledger.services.settlement;
  const keyId = contract.slice(2, 6).toLowerCase() + randomBytes(6).toString("hex");
  const isFree = ledger.tenants.keys.named(keyId, group) === undefined;
  return isFree ? keyId : newKeyId(ledger, group);
}

function tokenOf(environment: Environment, keyId: string, secret: string): string {
  const body = `mm_${TAG[environment]}_${keyId}_${secret}`;
  return body + checksumOf(body);
}

type KeyParts = Readonly<{ keyId: string; secret: string }>;

/** The parts of a token, empty for text that is none. */
function partsOf({ environment }: Services, token: unknown) {
  const [, tag, keyId = "", secret = "", checksum] =
    (typeof token === "string" && TOKEN.exec(token)) || [];
  const isWhole =
    tag === TAG[environment] && checksum === checksumOf(`mm_${tag}_${keyId}_${secret}`);
  return { tag, keyId, secret, isWhole };
}

/** The parts of a token that the caller of {@link Keys.issue} gives. */
function ownParts(services: Services, token: string | undefined): KeyParts | undefined {
  if (token === undefined) return;
  if (services.environment !== "sandbox")
    throw argumentError("token", "is for the sandbox environment only");
  const { isWhole, keyId, secret } = partsOf(services, token);
  if (!isWhole) throw argumentError("token", `must be a whole key, from mm_${TAG.sandbox}_ on`);
  return { keyId, secret };
}

/** @param tag - of the key's environment; undefined for text that is no key */
function malformed({ environment }: Services, tag: string | undefined): string {
  return tag === undefined || tag === TAG[environment]
    ? `The API key is incomplete or mistyped. Copy all of it, from mm_${TAG[environment]}_ on.`
    : `The API key is of another environment. Keys of this server begin with mm_${TAG[environment]}_.`;
}

function checksumOf(body: string): string {
  return crc32(body).toString(16).padStart(8, "0");
}

/** Whether the stored hash is a secret's. Takes as long when none is stored. */
export function isSecret(secret: string, stored: Hash | undefined): boolean {
  const expected = stored === undefined ? NOBODY : Buffer.from(stored.slice(2), "hex");
  return timingSafeEqual(hash("sha256", secret, "buffer"), expected);
}

/** The stored form of a random secret. */
export function hashText(secret: string): Hash {
  return `0x${hash("sha256", secret)}`;
}

export function putNewKey(
  ledger: TenantLedger,
  group: Group,
  applicationIndex: number,
  options: Pick<KeyRecord, "scopes" | "expiresAt" | "mintQuota" | "name" | "ofPerson">,
  secretHash: Hash,
  keyId = newKeyId(ledger, group),
): KeyRecord {
  const keyIndex = ledger.tenants.keys.view(group).size;
  const issued = { keyIndex, keyId, applicationIndex, secretHash, ...options };
  const { time } = ledger.journal.record(group, { kind: "keyIssued", ...issued });
  const record: KeyRecord = { ...issued, mintsUsed: 0n, createdAt: time, revokedAt: null };
  ledger.tenants.keys.set(group, record);
  return record;
}

/** Revokes a key. Whoever uses it is told when that is durable. */
export function putRevoked(ledger: TenantLedger, group: Group, key: KeyRecord): KeyRecord {
  if (key.revokedAt !== null) return key;
  const { time } = ledger.journal.record(group, { kind: "keyRevoked", keyIndex: key.keyIndex });
  const revoked = { ...key, revokedAt: time };
  ledger.tenants.keys.set(group, revoked);
  const applicationId = ledger.tenants.applicationIdAt(key.applicationIndex);
  group.onDurable(() => ledger.services.emit("access", { applicationId }));
  return revoked;
}

/** The current key. Throws `key_not_found`, also for a person's own key. */
function programKey(ledger: TenantLedger, group: Group, keyId: string): KeyRecord {
  const key = ledger.tenants.keys.named(keyId, group);
  if (key === undefined || key.ofPerson) throw new MintmarkError("key_not_found");
  return key;
}

/** Throws `too_many_keys` when the application has as many keys in force as it may. */
function requireFewKeys(ledger: TenantLedger, group: Group, applicationIndex: number): void {
  const now = ledger.journal.clock.present();
  for (const { keyIndex, expiresAt } of ledger.tenants.keysInForce.records(applicationIndex, group))
    if (expiresAt !== null && expiresAt <= now)
      ledger.tenants.keysInForce.drop(applicationIndex, keyIndex);
  if (ledger.tenants.keysInForce.numbers(applicationIndex).length >= MAX_KEYS)
    throw new MintmarkError("too_many_keys");
}

/**
 * Throws `role_missing` when a person acts who lacks one of the key's scopes, or belongs to another
 * application.
 */
function requireWithinRole(
  ledger: TenantLedger,
  group: Group,
  actor: Actor | null,
  { applicationIndex, scopes }: Pick<KeyRecord, "applicationIndex" | "scopes">,
) {
  const person =
    actor === null || actor.personIndex === null
      ? null
      : ledger.tenants.people.view(group).get(actor.personIndex);
  if (!person || person.role === "operator") return;
  if (person.applicationIndex !== applicationIndex) throw new MintmarkError("role_missing");
  for (const right of ["keys", ...scopes] as const) requireRight(person.role, right);
}

/** Input of {@link Keys.issue}. */
export interface NewKey {
  /** Default: all. */
  readonly scopes?: readonly Scope[];
  /** Milliseconds since 1970; default never. */
  readonly expiresAt?: number | null;
  /** Most mint entries that the key may ever make; null, the default: no limit. */
  readonly mintQuota?: bigint | null;
  /** The name that its holder gives it, 1 to 100 characters; null, the default: none. */
  readonly name?: string | null;
  /**
   * In the sandbox environment: the whole token that the key shall have, so that a store which
   * begins anew takes what its callers still hold. Default: a random one.
   */
  readonly token?: string;
}

/** A new key with its secret. */
export interface IssuedKey {
  readonly key: ApiKey;
  /** The whole token, `mm_test_<keyId>_<secret and checksum>`. Not stored: shown once. */
  readonly secret: string;
}

/** No secret has this hash. */
const NO_SECRET: Hash = `0x${"00".repeat(32)}`;

/**
 * The principal of the program that runs the engine. An application's first call makes the key
 * that its changes are recorded under; the key has no secret, every scope and no end.
 */
export async function ownPrincipal(
  context: EngineContext,
  applicationId: Uuid,
  wait?: WaitOptions,
): Promise<Principal> {
  const found = (ledger: TenantLedger, group: Group | null) => {
    const application = ledger.tenants.application(applicationId, group);
    if (application.suspended) throw new MintmarkError("application_suspended");
    const { applicationIndex } = application;
    const keys = ledger.tenants.keysOf.records(applicationIndex, group);
    return { applicationIndex, key: keys.find(({ secretHash }) => secretHash === NO_SECRET) };
  };
  const { key } = found(context.ledger, null);
  const { keyId, scopes } =
    key ??
    (await context.change((ledger, group) => {
      const { applicationIndex, key: known } = found(ledger, group);
      const options = {
        scopes: SCOPES,
        expiresAt: null,
        mintQuota: null,
        name: null,
        ofPerson: true,
      };
      return known ?? putNewKey(ledger, group, applicationIndex, options, NO_SECRET);
    }, wait));
  return { applicationId, keyId, scopes };
}

/** Throws `scope_missing`, and `validation_failed` for what is no principal. */
export function requireScope(principal: Principal, scope: Scope): void {
  if (!Array.isArray(principal?.scopes))
    throw argumentError("principal", "must be what engine.as or engine.keys.authenticate gives");
  if (!principal.scopes.includes(scope))
    throw new MintmarkError("scope_missing", `The key lacks the scope ${scope}.`);
}

export function keysOf(context: EngineContext): Keys {
  /** Issues the key that `askedOf` tells. Who acts is checked before what is asked for. */
  const issued = async (
    wait: WaitOptions | undefined,
    askedOf: (
      ledger: TenantLedger,
      group: Group,
    ) => NewKey & Pick<KeyRecord, "applicationIndex" | "scopes">,
    own?: KeyParts,
  ): Promise<IssuedKey> => {
    const secret = own?.secret ?? randomBytes(32).toString("hex");
    const key = await context.change((ledger, group) => {
      const asked = askedOf(ledger, group);
      const { applicationIndex } = asked;
      requireWithinRole(ledger, group, context.actor, asked);
      requireFewKeys(ledger, group, applicationIndex);
      if (own !== undefined && ledger.tenants.keys.named(own.keyId, group) !== undefined)
        throw argumentError("token", "has the id of a key that exists");
      const options = requireKeyOptions(asked);
      const secretHash = hashText(secret);
      return keyView(
        ledger,
        putNewKey(ledger, group, applicationIndex, options, secretHash, own?.keyId),
      );
    }, wait);
    return { key, secret: tokenOf(context.ledger.services.environment, key.keyId, secret) };
  };
  return {
    async issue(applicationId, options = {}, wait) {
      const asked = requireKeyOptions(options);
      const own = ownParts(context.ledger.services, options.token);
      const askedOf = (ledger: TenantLedger, group: Group) => ({
        applicationIndex: ledger.tenants.application(applicationId, group).applicationIndex,
        ...asked,
      });
      return issued(wait, askedOf, own);
    },
    rotate: async (keyId, { expiresAt = null } = {}, wait) =>
      issued(wait, (ledger, group) => {
        const { applicationIndex, scopes, mintQuota, mintsUsed, name, revokedAt } = programKey(
          ledger,
          group,
          keyId,
        );
        if (revokedAt !== null)
          throw new MintmarkError("key_not_found", "The key is revoked; issue a new one.");
        // The new key gets the old one's remaining mints: a rotation must not refill a quota.
        const left = mintQuota === null ? null : mintQuota - mintsUsed;
        return { applicationIndex, scopes, expiresAt, mintQuota: left, name };
      }),
    list: (applicationId, page = {}) =>
      listOf(context, "keys", applicationId, page, (start, ledger) => {
        const { applicationIndex: index } = ledger.tenants.application(applicationId, null);
        const view = (key: KeyRecord) => (key.ofPerson ? null : keyView(ledger, key));
        return tablePage(
          ledger.tenants.keys.durable,
          start,
          view,
          page.order,
          ledger.tenants.keysOf.numbers(index),
        );
      }),
    async get(applicationId, keyId) {
      const { ledger } = context;
      const key = ledger.tenants.keys.named(keyId, null);
      const isOwn =
        key?.applicationIndex === ledger.tenants.application(applicationId, null).applicationIndex;
      if (key === undefined || key.ofPerson || !isOwn) throw new MintmarkError("key_not_found");
      return keyView(ledger, key);
    },
    revoke: (keyId, wait) =>
      context.change((ledger, group) => {
        const key = programKey(ledger, group, keyId);
        requireWithinRole(ledger, group, context.actor, key);
        return keyView(ledger, putRevoked(ledger, group, key));
      }, wait),
    // Takes as long for an unknown key as for a wrong secret.
    async authenticate(token) {
      const { ledger } = context;
      const { tag, keyId, secret, isWhole } = partsOf(ledger.services, token);
      const key = ledger.tenants.keys.named(keyId, null);
      const matches = isSecret(secret, key?.secretHash);
      if (!isWhole) throw new MintmarkError("credentials_invalid", malformed(ledger.services, tag));
      if (key === undefined || !matches)
        throw new MintmarkError("credentials_invalid", "This server knows no such API key.");
      const application = ledger.tenants.applications.durable.get(key.applicationIndex);
      if (application === undefined)
        throw new MintmarkError("store_corrupt", "A key's application is missing.");
      requireInForce(ledger, key, application);
      return { applicationId: application.applicationId, keyId, scopes: key.scopes };
    },
  };
}

/**
 * The API keys of applications.
 *
 * @example
 * const { secret } = await engine.keys.issue(applicationId, { scopes: ["mint"], mintQuota: 10_000n
 * }); const principal = await engine.keys.authenticate(secret);
 */
export interface Keys {
  /**
   * Creates a key. Shows its secret this once. Rejects with `application_not_found`,
   * `too_many_keys`, and `validation_failed` for a `token` that the store cannot take.
   */
  issue(applicationId: Uuid, key?: NewKey, wait?: WaitOptions): Promise<IssuedKey>;
  /**
   * Creates a key with the name, the scopes and the remaining quota of another, which stays valid
   * until it is revoked. Rejects with `key_not_found`, also for a revoked key, and with
   * `too_many_keys`.
   */
  rotate(keyId: string, key?: Pick<NewKey, "expiresAt">, wait?: WaitOptions): Promise<IssuedKey>;
  /** Oldest first, with revoked keys. */
  list(applicationId: Uuid, page?: OrderedPage): List<ApiKey>;
  /** Rejects with `application_not_found`, or with `key_not_found` also for another's key. */
  get(applicationId: Uuid, keyId: string): Promise<ApiKey>;
  /** Revokes a key; repeats change nothing. Rejects with `key_not_found`. */
  revoke(keyId: string, wait?: WaitOptions): Promise<ApiKey>;
  /**
   * The principal of a token. Rejects with `credentials_invalid`, `credentials_expired`,
   * `application_suspended`.
   */
  authenticate(token: string): Promise<Principal>;
}
