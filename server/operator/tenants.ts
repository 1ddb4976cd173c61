import { z } from "zod";
import { type ApiKey, type Engine, MintmarkError, SCOPES } from "../../core/index.ts";
import { address, instant, mode, page, reference, uuid } from "../schemas/common.ts";
import { applicationToWire, balanceToWire, decimal, pageToWire, userToWire } from "../wire/wire.ts";
import { operation } from "./operation.ts";

const future = instant.refine((time) => time > Date.now(), "Give a time in the future.");

const name = z.string().min(1, "Give a name.").max(200, "Give at most 200 characters.");
const keyId = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, "Give a key's id, the part after mm_test_ or mm_live_.");
const quota = z
  .string()
  .regex(/^\d{1,19}$/, "Give a whole number of mints.")
  .transform(BigInt);
const ofApplication = z.strictObject({ applicationId: uuid });
const ofUser = z.strictObject({ applicationId: uuid, userId: uuid });
const userFilter = { ownerAddress: address.optional(), reference: reference.optional(), ...page };
const newKey = z.strictObject({
  applicationId: uuid,
  scopes: z
    .array(z.enum(SCOPES, `Give scopes out of ${SCOPES.join(", ")}.`))
    .min(1)
    .optional(),
  expiresAt: future.optional(),
  mintQuota: quota.optional(),
});

/** Applications, their keys and their users. */
export const TENANT_OPERATIONS = {
  "applications.create": operation(
    z.strictObject({ name, applicationId: uuid.optional(), dataAvailabilityMode: mode.optional() }),
    async (engine, input) => applicationToWire(await engine.applications.create(input)),
  ),
  "applications.change": operation(
    ofApplication.extend({ dataAvailabilityMode: mode.nullable() }),
    async (engine, { applicationId, ...changes }) =>
      applicationToWire(await engine.applications.change(applicationId, changes)),
  ),
  "applications.list": operation(z.strictObject({}), (engine) =>
    Array.fromAsync(engine.applications.list(), applicationToWire),
  ),
  "applications.suspend": operation(
    ofApplication.extend({ suspended: z.boolean() }),
    async (engine, { applicationId, suspended }) =>
      applicationToWire(
        await (suspended ? engine.applications.suspend(applicationId) : engine.applications.resume(applicationId)),
      ),
  ),
  "keys.issue": operation(newKey, async (engine, { applicationId, ...options }) =>
    issuedToJson(await engine.keys.issue(applicationId, options)),
  ),
  "keys.list": operation(ofApplication, (engine, { applicationId }) =>
    Array.fromAsync(engine.keys.list(applicationId), keyToJson),
  ),
  "keys.rotate": operation(z.strictObject({ keyId, expiresAt: future.optional() }), async (engine, input) => {
    const { applicationId, scopes, mintQuota, mintsUsed, revokedAt } = await findKey(engine, input.keyId);
    if (revokedAt !== null) throw new MintmarkError("key_not_found", "The key is revoked; issue a new one.");
    // What the old key may still mint, and no more: rotating must not refill a quota.
    const left = mintQuota === null ? null : mintQuota - mintsUsed;
    const expiresAt = input.expiresAt ?? null;
    return issuedToJson(await engine.keys.issue(applicationId, { scopes, mintQuota: left, expiresAt }));
  }),
  "keys.revoke": operation(z.strictObject({ keyId }), async (engine, input) =>
    keyToJson(await engine.keys.revoke(input.keyId)),
  ),
  "users.create": operation(
    z.strictObject({
      applicationId: uuid,
      ownerAddress: address,
      userId: uuid.optional(),
      reference: reference.optional(),
    }),
    async (engine, { applicationId, ...user }) => userToWire(await engine.users.create(applicationId, user)),
  ),
  "users.list": operation(ofApplication.extend(userFilter), async (engine, { applicationId, ...options }) =>
    pageToWire(await engine.users.list(applicationId, options), userToWire),
  ),
  "users.show": operation(ofUser, async (engine, { applicationId, userId }) => ({
    ...userToWire(await engine.users.get(applicationId, userId)),
    balances: pageToWire(await engine.vaults.balances(applicationId, userId, { limit: 100 }), balanceToWire),
  })),
} as const;

async function findKey(engine: Engine, wanted: string): Promise<ApiKey> {
  for await (const { applicationId } of engine.applications.list()) {
    for await (const key of engine.keys.list(applicationId)) if (key.keyId === wanted) return key;
  }
  throw new MintmarkError("key_not_found");
}

function keyToJson({ mintQuota, mintsUsed, createdAt, expiresAt, revokedAt, ...key }: ApiKey) {
  return {
    keyId: key.keyId,
    applicationId: key.applicationId,
    scopes: key.scopes,
    mintQuota: mintQuota === null ? null : decimal(mintQuota),
    mintsUsed: decimal(mintsUsed),
    createdAt: time(createdAt),
    expiresAt: expiresAt === null ? null : time(expiresAt),
    revokedAt: revokedAt === null ? null : time(revokedAt),
  };
}

/** With the whole key, which is stored nowhere: this answer is the only place it is ever seen. */
function issuedToJson({ key, secret }: Awaited<ReturnType<Engine["keys"]["issue"]>>) {
  return { ...keyToJson(key), apiKey: secret };
}

function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
