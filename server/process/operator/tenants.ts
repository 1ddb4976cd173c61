import { z } from "zod";
import { type Engine, type Invitation, ROLES, SCOPES } from "../../../core/index.ts";
import {
  address,
  eventSequence,
  future,
  mintQuota,
  mode,
  page,
  pageOf,
  reference,
  textUpTo,
  uuid,
} from "../../routes/api/fields.ts";
import { eventType } from "../../routes/events.ts";
import { invitation, person, role } from "../../routes/person.ts";
import { apiKey, application } from "../../routes/service.ts";
import { balance, user } from "../../routes/users.ts";
import { webhook } from "../../routes/webhooks.ts";
import { operation, type Running } from "./operation.ts";

const ID = "01a1fd1b-bf5c-743a-abf0-3c3fec348cab";
export const APPLICATION = `--application ${ID}`;
const USER = "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a10";

const expiresAt = future
  .optional()
  .describe("RFC 3339, such as 2027-01-01T00:00:00Z; default never");
const keyId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}$/, "Give a key's id, the part after mm_test_ or mm_live_.");
const id = uuid.optional().describe("its id; default a fresh one");
const defaultMode = mode.describe("for mints that name no mode; default none, they must name one");
export const ofApplication = z.strictObject({
  applicationId: uuid.describe("the application's id"),
});
const WEBHOOK = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a24";
const ofWebhook = ofApplication.extend({ webhookId: uuid.describe("the webhook's id") });
const oneApplication = {
  input: ofApplication,
  args: ["applicationId"],
  examples: [ID],
  answer: application,
} as const;

const PERSON = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21";
const ofPerson = z.strictObject({ personId: uuid });
const onePerson = { input: ofPerson, args: ["personId"], examples: [PERSON] } as const;

/** An invitation with the whole address to open. */
const opening = invitation.extend({ url: z.string().nullable() });

function opened(invited: Invitation, { origin = "<the server's address>" }: Running) {
  return { ...invited, url: invited.link && `${origin}/console#link=${invited.link}` };
}

/** A key with its secret, which is not stored: it is shown only this once. */
const issued = apiKey.extend({ apiKey: z.string() });

function withSecret({ key, secret }: Awaited<ReturnType<Engine["keys"]["issue"]>>) {
  return { ...key, apiKey: secret };
}

export const TENANT_OPERATIONS = {
  "applications.create": operation({
    summary: "create an application",
    examples: ['"My game"', `"My game" --id ${ID}`],
    input: z.strictObject({
      name: textUpTo(200),
      applicationId: id,
      dataAvailabilityMode: defaultMode.optional(),
    }),
    args: ["name"],
    answer: application,
    run: (engine, input) => engine.applications.create(input),
  }),
  "applications.change": operation({
    summary: "set the mode of mints that name none",
    examples: [`${ID} --mode validium`, ID],
    input: ofApplication.extend({ dataAvailabilityMode: defaultMode.nullable().default(null) }),
    args: ["applicationId"],
    answer: application,
    run: (engine, { applicationId, ...changes }) =>
      engine.applications.change(applicationId, changes),
  }),
  "applications.list": operation({
    summary: "list applications",
    examples: ["", "--json"],
    input: z.strictObject({}),
    answer: z.array(application),
    run: (engine) => Array.fromAsync(engine.applications.list()),
  }),
  "applications.suspend": operation({
    summary: "refuse every request of an application, at once",
    ...oneApplication,
    run: (engine, { applicationId }) => engine.applications.suspend(applicationId),
  }),
  "applications.resume": operation({
    summary: "accept an application's requests again",
    ...oneApplication,
    run: (engine, { applicationId }) => engine.applications.resume(applicationId),
  }),
  "keys.issue": operation({
    summary: "issue a key; it is shown only this once",
    examples: [APPLICATION, `${APPLICATION} --scopes mint,read --quota 100000`],
    input: ofApplication.extend({
      scopes: z
        .array(z.enum(SCOPES, `Give scopes out of ${SCOPES.join(", ")}.`))
        .min(1)
        .optional()
        .describe(`of ${SCOPES.join(", ")}, with commas between; default all`),
      name: z.string().min(1).max(100).optional().describe("what its holder calls it"),
      expiresAt,
      mintQuota: mintQuota
        .optional()
        .describe("most mint entries that it may ever make; default no limit"),
    }),
    answer: issued,
    run: async (engine, { applicationId, ...options }) =>
      withSecret(await engine.keys.issue(applicationId, options)),
  }),
  "keys.list": operation({
    summary: "list an application's keys, without their secrets",
    examples: [APPLICATION],
    input: ofApplication,
    answer: z.array(apiKey),
    run: (engine, { applicationId }) => Array.fromAsync(engine.keys.list(applicationId)),
  }),
  "keys.rotate": operation({
    summary:
      "issue a key with the scopes and the remaining quota of another, which stays valid until you revoke it",
    examples: ["5e5e01a1fd1bbf5c"],
    input: z.strictObject({ keyId, expiresAt }),
    args: ["keyId"],
    answer: issued,
    run: async (engine, { keyId, ...options }) =>
      withSecret(await engine.keys.rotate(keyId, options)),
  }),
  "keys.revoke": operation({
    summary: "revoke a key and its tokens at once",
    examples: ["5e5e01a1fd1bbf5c"],
    input: z.strictObject({ keyId }),
    args: ["keyId"],
    answer: apiKey,
    run: (engine, input) => engine.keys.revoke(input.keyId),
  }),
  "people.invite": operation({
    summary:
      "add a person to an application's team, or to the operator's; prints a link that signs in once",
    examples: [`"Ada" --role admin ${APPLICATION}`, `"Bob" --role operator --address 0x70997970…`],
    input: z.strictObject({
      name: textUpTo(100),
      role: role.describe(`one of ${ROLES.join(", ")}`),
      applicationId: uuid
        .nullable()
        .default(null)
        .describe("the application's id; default none, the operator's team"),
      address: address
        .optional()
        .describe("the wallet that signs in; default none, and the person gets a link"),
    }),
    args: ["name"],
    answer: opening,
    run: async (engine, person, running) => opened(await engine.people.invite(person), running),
  }),
  "people.list": operation({
    summary: "list an application's people, or the operator's; all their fields with --json",
    examples: [APPLICATION, ""],
    input: z.strictObject({
      applicationId: uuid.nullable().default(null).describe("default: the operator's team"),
    }),
    columns: ["personId", "name", "role", "address", "signedInAt", "removedAt"],
    answer: z.array(person),
    run: (engine, { applicationId }) => Array.fromAsync(engine.people.list(applicationId)),
  }),
  "people.change": operation({
    summary: "give a person another role",
    examples: [`${PERSON} --role developer`],
    input: ofPerson.extend({ role }),
    args: ["personId"],
    answer: person,
    run: (engine, { personId, role }) => engine.people.changeRole(personId, role),
  }),
  "people.link": operation({
    summary: "make a new link that signs a person in once, within a week",
    ...onePerson,
    answer: opening,
    run: async (engine, { personId }, running) =>
      opened(await engine.people.link(personId), running),
  }),
  "people.remove": operation({
    summary: "end a person's sign-ins and rights for ever",
    ...onePerson,
    answer: person,
    run: (engine, { personId }) => engine.people.remove(personId),
  }),
  "webhooks.list": operation({
    summary: "list an application's webhooks, with the event that each has come to",
    examples: [APPLICATION],
    input: ofApplication,
    columns: ["webhookId", "url", "status", "delivered", "failingSince", "failure"],
    answer: z.array(webhook),
    run: (engine, { applicationId }) => Array.fromAsync(engine.webhooks.list(applicationId)),
  }),
  "webhooks.change": operation({
    summary: "deliver events of other types from now on",
    examples: [`${WEBHOOK} ${APPLICATION} --types mint.accepted,batch.settled`],
    input: ofWebhook.extend({
      types: z
        .array(eventType)
        .default([])
        .describe("types of event, with commas between; default all"),
    }),
    args: ["webhookId"],
    answer: webhook,
    run: (engine, { applicationId, webhookId, types }) =>
      engine.webhooks.change(applicationId, webhookId, { types }),
  }),
  "webhooks.skip": operation({
    summary: "never deliver the event that a webhook fails at, and go on with the next",
    examples: [`${WEBHOOK} 17 ${APPLICATION}`],
    input: ofWebhook.extend({ sequence: eventSequence.describe("the event's sequence") }),
    args: ["webhookId", "sequence"],
    answer: webhook,
    run: (engine, { applicationId, webhookId, sequence }) =>
      engine.webhooks.skip(applicationId, webhookId, sequence),
  }),
  "users.create": operation({
    summary: "register a user by its owner's L1 address",
    examples: [`0x70997970c51812dc3a010c7d01b50e0d17dc79c8 ${APPLICATION}`],
    input: ofApplication.extend({
      ownerAddress: address,
      userId: id,
      reference: reference
        .optional()
        .describe("the application's own name for it, at most 64 characters"),
    }),
    args: ["ownerAddress"],
    answer: user,
    run: (engine, { applicationId, ...user }) => engine.users.create(applicationId, user),
  }),
  "users.list": operation({
    summary: "list users, a page at a time",
    examples: [`${APPLICATION} --limit 100`],
    input: ofApplication.extend({
      ownerAddress: address.optional().describe("those of this owner"),
      reference: reference.optional().describe("those with this reference"),
      ...page,
    }),
    answer: pageOf(user),
    run: async (engine, { applicationId, ...options }) => engine.users.list(applicationId, options),
  }),
  "users.show": operation({
    summary: "show a user and its first 100 balances",
    examples: [`${USER} ${APPLICATION}`],
    input: ofApplication.extend({ userId: uuid }),
    args: ["userId"],
    answer: user.extend({ balances: pageOf(balance) }),
    run: async (engine, { applicationId, userId }) => ({
      ...(await engine.users.get(applicationId, userId)),
      balances: await engine.vaults.balances(applicationId, userId, { limit: 100 }),
    }),
  }),
};
