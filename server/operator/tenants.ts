import { z } from "zod";
import { type ApiKey, type Engine, MintmarkError, SCOPES } from "../../core/index.ts";
import { address, instant, mode, page, reference, uuid } from "../schemas/common.ts";
import { applicationToWire, balanceToWire, decimal, decimalOrNull, pageToWire, userToWire } from "../wire/wire.ts";
import { time } from "../wire/writer.ts";
import { operation } from "./operation.ts";

const ID = "01a1fd1b-bf5c-743a-abf0-3c3fec348cab";
const OF_ID = `--application ${ID}`;
const USER = "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a10";

const future = instant.refine((time) => time > Date.now(), "Give a time in the future.");
const expiresAt = future.optional().describe("RFC 3339, such as 2027-01-01T00:00:00Z; default never");
const keyId = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, "Give a key's id, the part after mm_test_ or mm_live_.");
const id = uuid.optional().describe("its id; default a fresh one");
const defaultMode = mode.describe("for mints that name no mode; default none, they must name one");
export const ofApplication = z.strictObject({ applicationId: uuid.describe("the application's id") });

/** Applications, their keys and their users. */
export const TENANT_OPERATIONS = {
  "applications.create": operation({
    summary: "create an application",
    examples: ['"My game"', `"My game" --id ${ID}`],
    input: z.strictObject({
      name: z.string().min(1, "Give a name.").max(200, "Give at most 200 characters."),
      applicationId: id,
      dataAvailabilityMode: defaultMode.optional(),
    }),
    args: ["name"],
    run: async (engine, input) => applicationToWire(await engine.applications.create(input)),
  }),
  "applications.change": operation({
    summary: "set the mode of mints that name none",
    examples: [`${ID} --mode validium`, ID],
    input: ofApplication.extend({ dataAvailabilityMode: defaultMode.nullable().default(null) }),
    args: ["applicationId"],
    run: async (engine, { applicationId, ...changes }) =>
      applicationToWire(await engine.applications.change(applicationId, changes)),
  }),
  "applications.list": operation({
    summary: "list applications",
    examples: ["", "--json"],
    input: z.strictObject({}),
    run: (engine) => Array.fromAsync(engine.applications.list(), applicationToWire),
  }),
  "applications.suspend": operation({
    summary: "refuse every request of an application, at once",
    examples: [ID],
    input: ofApplication,
    args: ["applicationId"],
    run: async (engine, { applicationId }) => applicationToWire(await engine.applications.suspend(applicationId)),
  }),
  "applications.resume": operation({
    summary: "accept an application's requests again",
    examples: [ID],
    input: ofApplication,
    args: ["applicationId"],
    run: async (engine, { applicationId }) => applicationToWire(await engine.applications.resume(applicationId)),
  }),
  "keys.issue": operation({
    summary: "issue a key; it is shown only this once",
    examples: [OF_ID, `${OF_ID} --scopes mint,read --quota 100000`],
    input: ofApplication.extend({
      scopes: z
        .array(z.enum(SCOPES, `Give scopes out of ${SCOPES.join(", ")}.`))
        .min(1)
        .optional()
        .describe(`of ${SCOPES.join(", ")}, with commas between; default all`),
      expiresAt,
      mintQuota: z
        .string()
        .regex(/^\d{1,19}$/, "Give a whole number of mints.")
        .transform(BigInt)
        .optional()
        .describe("most mint entries that it may ever make; default no limit"),
    }),
    run: async (engine, { applicationId, ...options }) => issuedToJson(await engine.keys.issue(applicationId, options)),
  }),
  "keys.list": operation({
    summary: "list an application's keys, without their secrets",
    examples: [OF_ID],
    input: ofApplication,
    run: (engine, { applicationId }) => Array.fromAsync(engine.keys.list(applicationId), keyToJson),
  }),
  "keys.rotate": operation({
    summary: "issue a key with the scopes and the remaining quota of another, which stays valid until you revoke it",
    examples: ["5e5e01a1fd1bbf5c"],
    input: z.strictObject({ keyId, expiresAt }),
    args: ["keyId"],
    async run(engine, input) {
      const { applicationId, scopes, mintQuota, mintsUsed, revokedAt } = await findKey(engine, input.keyId);
      if (revokedAt !== null) throw new MintmarkError("key_not_found", "The key is revoked; issue a new one.");
      // Only the old key's remaining mints: a rotation must not refill a quota.
      const left = mintQuota === null ? null : mintQuota - mintsUsed;
      const expiresAt = input.expiresAt ?? null;
      return issuedToJson(await engine.keys.issue(applicationId, { scopes, mintQuota: left, expiresAt }));
    },
  }),
  "keys.revoke": operation({
    summary: "revoke a key and its tokens at once",
    examples: ["5e5e01a1fd1bbf5c"],
    input: z.strictObject({ keyId }),
    args: ["keyId"],
    run: async (engine, input) => keyToJson(await engine.keys.revoke(input.keyId)),
  }),
  "users.create": operation({
    summary: "register a user by its owner's L1 address",
    examples: [`0x70997970c51812dc3a010c7d01b50e0d17dc79c8 ${OF_ID}`],
    input: ofApplication.extend({
      ownerAddress: address,
      userId: id,
      reference: reference.optional().describe("the application's own name for it, at most 64 characters"),
    }),
    args: ["ownerAddress"],
    run: async (engine, { applicationId, ...user }) => userToWire(await engine.users.create(applicationId, user)),
  }),
  "users.list": operation({
    summary: "list users, a page at a time",
    examples: [`${OF_ID} --limit 100`],
    input: ofApplication.extend({
      ownerAddress: address.optional().describe("those of this owner"),
      reference: reference.optional().describe("those with this reference"),
      ...page,
    }),
    run: async (engine, { applicationId, ...options }) =>
      pageToWire(await engine.users.list(applicationId, options), userToWire),
  }),
  "users.show": operation({
    summary: "show a user and its first 100 balances",
    examples: [`${USER} ${OF_ID}`],
    input: ofApplication.extend({ userId: uuid }),
    args: ["userId"],
    run: async (engine, { applicationId, userId }) => ({
      ...userToWire(await engine.users.get(applicationId, userId)),
      balances: pageToWire(await engine.vaults.balances(applicationId, userId, { limit: 100 }), balanceToWire),
    }),
  }),
};

async function findKey(engine: Engine, wanted: string): Promise<ApiKey> {
  for await (const { applicationId } of engine.applications.list()) {
    for await (const key of engine.keys.list(applicationId)) if (key.keyId === wanted) return key;
  }
  throw new MintmarkError("key_not_found");
}

function keyToJson({ keyId, applicationId, scopes, mintQuota, mintsUsed, ...times }: ApiKey) {
  return {
    keyId,
    applicationId,
    scopes,
    mintQuota: decimalOrNull(mintQuota),
    mintsUsed: decimal(mintsUsed),
    createdAt: time(times.createdAt),
    expiresAt: times.expiresAt === null ? null : time(times.expiresAt),
    revokedAt: times.revokedAt === null ? null : time(times.revokedAt),
  };
}

/** With the whole key, which is not stored: it is shown only this once. */
function issuedToJson({ key, secret }: Awaited<ReturnType<Engine["keys"]["issue"]>>) {
  return { ...keyToJson(key), apiKey: secret };
}
