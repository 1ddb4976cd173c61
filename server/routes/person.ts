import { z } from "zod";
import { ROLES } from "../../core/index.ts";
import * as s from "./api/fields.ts";

export const role = z.enum(ROLES, `Give one of ${ROLES.join(", ")}.`);
const applicationId = s.outUuid.nullable().describe("null: the operator's.");

export const person = s.responseComponent("Person", {
  personId: s.outUuid,
  applicationId,
  applicationName: z.string().nullable().describe("null: the operator's."),
  role,
  name: z.string(),
  address: s.outAddress.nullable().describe("The wallet that signs in."),
  keyId: z.string().nullable().describe("The key of the person's own mints and withdrawals."),
  linkExpiresAt: s.outTime
    .nullable()
    .describe("The end of the link that was not used yet; null without one."),
  createdAt: s.outTime,
  signedInAt: s.outTime.nullable(),
  removedAt: s.outTime.nullable(),
});

export const invitation = s.responseComponent("Invitation", {
  person,
  link: z
    .string()
    .nullable()
    .describe("Signs in once: the console's address and `#link=` and this. null for a wallet."),
});
