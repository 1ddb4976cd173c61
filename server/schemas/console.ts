import { z } from "zod";
import { RIGHTS, ROLES, SCOPES } from "../../core/index.ts";
import * as s from "./common.ts";
import { application } from "./service.ts";

const role = z.enum(ROLES, `Give one of ${ROLES.join(", ")}.`);
const name = z.string().min(1, "Give a name.").max(100, "Give at most 100 characters.");
const applicationId = s.outUuid.nullable().describe("null: the operator's.");
const message = z.string().min(1).max(2048);
const signature = s.signature;
const link = z
  .string()
  .regex(/^[0-9a-f]{96}$/, "Give the part of the link after `#link=`.")
  .describe("The part of an invitation's link after `#link=`.");

export const signInBody = s.requestComponent(
  "PersonSignInProof",
  z.union([z.strictObject({ link }), z.strictObject({ message, signature, applicationId: s.uuid.nullish() })]),
);
export const walletBody = s.requestComponent("PersonWallet", { message, signature });

export const person = s.responseComponent("Person", {
  personId: s.outUuid,
  applicationId,
  applicationName: z.string().nullable().describe("null: the operator's."),
  role,
  name: z.string(),
  address: s.outAddress.nullable().describe("The wallet that signs in."),
  keyId: z.string().nullable().describe("Of the person's own mints and withdrawals."),
  linkExpiresAt: s.outTime.nullable().describe("Of the link that was not used yet; null without one."),
  createdAt: s.outTime,
  signedInAt: s.outTime.nullable(),
  removedAt: s.outTime.nullable(),
});
export const personList = s.responseComponent("PersonList", s.pageOf(person));
export const personSignIn = s.responseComponent("PersonSignIn", {
  person,
  rights: z.array(z.enum(RIGHTS)),
  expiresAt: s.outTime,
});
export const newPersonSignIn = s.responseComponent("NewPersonSignIn", {
  ...personSignIn.shape,
  others: z
    .array(person)
    .describe("The same wallet's people of other teams. Sign in again with `applicationId` to choose one."),
});
export const invitation = s.responseComponent("Invitation", {
  person,
  link: z
    .string()
    .nullable()
    .describe("Signs in once: the console's address and `#link=` and this. null for a wallet."),
});
export const personBody = s.requestComponent("NewPerson", { name, role, address: s.address.nullish() });
export const roleBody = s.requestComponent("PersonRole", { role });

export const apiKey = s.responseComponent("ApiKey", {
  keyId: z.string(),
  applicationId: s.outUuid,
  name: z.string().nullable(),
  scopes: z.array(z.enum(SCOPES)),
  mintQuota: s.outDecimal.nullable().describe("Most entries that the key may ever mint; null: no limit."),
  mintsUsed: s.outDecimal,
  createdAt: s.outTime,
  expiresAt: s.outTime.nullable(),
  revokedAt: s.outTime.nullable(),
});
export const keyList = s.responseComponent("ApiKeyList", s.pageOf(apiKey));
export const issuedKey = s.responseComponent("IssuedApiKey", {
  key: apiKey,
  secret: z.string().describe("The whole key. It is shown this once."),
});
const expiresAt = s.instant.refine((time) => time > Date.now(), "Give a time in the future.").nullish();
export const keyBody = s.requestComponent("NewApiKey", {
  name: name.nullish(),
  scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length).optional(),
  expiresAt,
  mintQuota: z
    .string()
    .regex(/^\d{1,19}$/, "Give a whole number of mints.")
    .transform(BigInt)
    .nullish(),
});
export const rotationBody = s.requestComponent("KeyRotation", { expiresAt });

export const auditEntry = s.responseComponent("AuditEntry", {
  sequence: z.int(),
  time: s.outTime,
  personId: s.outUuid.nullable().describe("null: the operator's command line."),
  personName: z.string().nullable(),
  action: z.string(),
  count: z.int(),
  subject: z.string().nullable(),
  detail: z.string().nullable(),
});
export const operations = s.responseComponent("Operations", {
  checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string() })),
  commits: z
    .array(
      z.strictObject({
        batchId: z.string(),
        vaultCount: z.int(),
        mintCount: z.int(),
        settledAt: s.outTime,
        gas: s.outDecimal.nullable().describe("Of the commit; null while L1 does not answer."),
      }),
    )
    .describe("The newest batches that L1 has committed, newest first; at most 50 of each mode."),
});
export const newApplicationBody = s.requestComponent("NewApplication", {
  name: z.string().min(1, "Give a name.").max(200, "Give at most 200 characters."),
});
export const applicationList = s.responseComponent("ApplicationList", s.pageOf(application));

export const auditLog = s.responseComponent("AuditLog", s.pageOf(auditEntry));
export const pageQuery = z.strictObject(s.page);
