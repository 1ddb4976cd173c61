import { z } from "zod";
import { MintmarkError, MODES, RIGHTS, SCOPES, type Uuid } from "../../core/index.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { requireConsole, setSignIn } from "./api/authentication.ts";
import { type Endpoint, endpoint, json, paged, SIGN_IN, type SignedIn } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import { challenge, challengeBody, originOf, SIGNED_CHALLENGE, signInBody } from "./owner.ts";
import { invitation, person, role } from "./person.ts";
import { apiKey, application } from "./service.ts";

const name = s.textUpTo(100);
const link = z
  .string()
  .regex(/^[0-9a-f]{96}$/, "Give the part of the link after `#link=`.")
  .describe("The part of an invitation's link after `#link=`.");

const personProof = s.requestComponent(
  "PersonSignInProof",
  z.union([z.strictObject({ link }), signInBody.extend({ applicationId: s.uuid.nullish() })]),
);

const personSignIn = s.responseComponent("PersonSignIn", {
  person,
  rights: z.array(z.enum(RIGHTS)),
  expiresAt: s.outTime,
});
const newPersonSignIn = s.responseComponent("NewPersonSignIn", {
  ...personSignIn.shape,
  others: z
    .array(person)
    .describe(
      "These are the same wallet's people of other teams. Sign in again with `applicationId` to choose one.",
    ),
});
const issuedKey = s.responseComponent("IssuedApiKey", {
  key: apiKey,
  secret: z.string().describe("The whole key. It is shown this once."),
});
const expiresAt = s.future.nullish();
const keyBody = s.requestComponent("NewApiKey", {
  name: name.nullish(),
  scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length).optional(),
  expiresAt,
  mintQuota: s.mintQuota.nullish(),
});

const auditEntry = s.responseComponent("AuditEntry", {
  sequence: z.int(),
  time: s.outTime,
  personId: s.outUuid.nullable().describe("null: the operator's command line."),
  personName: z.string().nullable(),
  action: z.string(),
  count: z.int(),
  subject: z.string().nullable(),
  detail: z.string().nullable(),
});
const operations = s.responseComponent("Operations", {
  checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string() })),
  commits: z
    .array(
      z.strictObject({
        batchId: z.string(),
        vaultCount: z.int(),
        mintCount: z.int(),
        settledAt: s.outTime,
        gas: s.outDecimal
          .nullable()
          .describe("The gas of the commit; null while L1 does not answer."),
      }),
    )
    .describe("The newest batches that L1 has committed, newest first; at most 50 of each mode."),
});

const PATH = "/console/v1";
const PERSON = `${PATH}/people/{personId}`;
const ofKeys = { right: "keys" } as const;
const ofPeople = { right: "people" } as const;
const ofOperator = { right: "operate" } as const;
const SUSPENSION = `${PATH}/applications/{applicationId}/suspension`;
const ofApplication = {
  ...ofOperator,
  success: json(200, "The application.", application),
} as const;
const NEWEST = { order: "desc" } as const;

export const consoleEndpoints: readonly Endpoint[] = [
  endpoint("Console", "public", `POST ${PATH}/challenge`, "createPersonChallenge", {
    summary: "A message (EIP-4361) for a person's wallet to sign",
    body: challengeBody,
    example: { address: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8" },
    success: json(200, "The message; it can be used once, in five minutes.", challenge),
    handle: ({ service, body, request }) =>
      service.people.challenge(body.address, originOf(request, service)),
  }),
  endpoint("Console", "public", `POST ${PATH}/sign-in`, "createPersonSignIn", {
    summary: "Sign a person in by a wallet's signature, or by a link that works once",
    description:
      "Sets a cookie for 12 hours. Needs the header `Mintmark-Console: 1`, as every call with the cookie. A wallet of several teams signs in where it was last, or to `applicationId`; null names the operator.",
    body: personProof,
    example: SIGNED_CHALLENGE,
    oneByOne: true,
    success: json(201, "The sign-in.", newPersonSignIn),
    errors: [...SIGN_IN, "signature_invalid", "application_suspended", "application_not_found"],
    async handle({ service, body, request, reply }) {
      requireConsole(request);
      const byWallet = async ({
        message,
        signature,
        applicationId,
      }: Exclude<typeof body, { link: string }>) => {
        return {
          address: await service.people.prove(
            message,
            signature,
            originOf(request, service),
            paidBy(request),
          ),
          applicationId,
        };
      };
      const opened = await service.engine.people.signIn(
        "link" in body ? body : await byWallet(body),
      );
      setSignIn(reply, service, "console", opened);
      return opened;
    },
  }),
  endpoint("Console", "person", `GET ${PATH}/sign-in`, "getPersonSignIn", {
    summary: "Who is signed in, with the rights of the role",
    success: json(200, "The sign-in.", personSignIn),
    handle: ({ signedIn: { signIn } }) => signIn,
  }),
  endpoint("Console", "person", `DELETE ${PATH}/sign-in`, "deletePersonSignIn", {
    summary: "Sign out",
    success: json(200, "The sign-in that has ended.", personSignIn),
    async handle({ service, signedIn: { signIn, token }, reply }) {
      await service.engine.people.signOut(token);
      setSignIn(reply, service, "console", null);
      return signIn;
    },
  }),
  endpoint("Console", "person", `PUT ${PATH}/sign-in/wallet`, "setPersonWallet", {
    summary: "Set the wallet that signs the person in from now on",
    body: s.requestComponent("PersonWallet", signInBody.shape),
    example: SIGNED_CHALLENGE,
    success: json(200, "The person.", person),
    errors: ["signature_invalid", "person_not_found"],
    async handle({ service, signedIn: { signIn }, body: { message, signature }, request }) {
      const address = await service.people.prove(
        message,
        signature,
        originOf(request, service),
        paidBy(request),
      );
      return await service.engine.people.setAddress(signIn.person.personId, address);
    },
  }),
  endpoint("Console", "person", `GET ${PATH}/keys`, "listConsoleKeys", {
    summary: "The application's API keys, without their secrets",
    ...paged("ApiKeyList", apiKey, "A page, newest first."),
    handle: ({ engine, signedIn, query }) =>
      engine.keys.list(applicationOf(signedIn), { ...query, ...NEWEST }),
  }),
  endpoint("Console", "person", `POST ${PATH}/keys`, "createConsoleKey", {
    ...ofKeys,
    summary: "Issue an API key, with scopes that the person's role has",
    body: keyBody,
    example: { name: "Shop", scopes: ["mint", "read"] },
    success: json(201, "The key, with its secret.", issuedKey),
    errors: ["too_many_keys"],
    handle: async ({ engine, signedIn, body }) => engine.keys.issue(applicationOf(signedIn), body),
  }),
  endpoint("Console", "person", `POST ${PATH}/keys/{keyId}/rotation`, "rotateConsoleKey", {
    ...ofKeys,
    summary: "Issue a key like another one, which stays valid until it is revoked",
    body: s.requestComponent("KeyRotation", { expiresAt }),
    example: {},
    success: json(201, "The new key, with its secret.", issuedKey),
    errors: ["too_many_keys"],
    handle: async ({ engine, params: { keyId }, body }) => engine.keys.rotate(keyId, body),
  }),
  endpoint("Console", "person", `DELETE ${PATH}/keys/{keyId}`, "deleteConsoleKey", {
    ...ofKeys,
    summary: "Revoke an API key and its tokens at once",
    success: json(200, "The revoked key.", apiKey),
    handle: ({ engine, params: { keyId } }) => engine.keys.revoke(keyId),
  }),
  endpoint("Console", "person", `GET ${PATH}/people`, "listConsolePeople", {
    summary: "The people of the application, or of the operator, with removed ones",
    ...paged("PersonList", person, "A page, newest first."),
    handle: ({ engine, signedIn: { applicationId }, query }) =>
      engine.people.list(applicationId, { ...query, ...NEWEST }),
  }),
  endpoint("Console", "person", `POST ${PATH}/people`, "createConsolePerson", {
    ...ofPeople,
    summary: "Invite a person, by a wallet or by a link that works once",
    body: s.requestComponent("NewPerson", { name, role, address: s.address.nullish() }),
    example: { name: "Ada", role: "developer" },
    success: json(201, "The person, with the link.", invitation),
    errors: ["too_many_people"],
    handle: ({ engine, signedIn: { applicationId }, body }) =>
      engine.people.invite({ ...body, applicationId }),
  }),
  endpoint("Console", "person", `PUT ${PERSON}/role`, "setConsolePersonRole", {
    ...ofPeople,
    summary: "Give a person another role, at once",
    body: s.requestComponent("PersonRole", { role }),
    example: { role: "viewer" },
    success: json(200, "The person.", person),
    handle: ({ engine, params: { personId }, body: { role } }) =>
      engine.people.changeRole(personId, role),
  }),
  endpoint("Console", "person", `POST ${PERSON}/links`, "createConsolePersonLink", {
    ...ofPeople,
    summary: "Make a new link that signs a person in once, within a week",
    success: json(201, "The person, with the link.", invitation),
    handle: ({ engine, params: { personId } }) => engine.people.link(personId),
  }),
  endpoint("Console", "person", `DELETE ${PERSON}`, "deleteConsolePerson", {
    ...ofPeople,
    summary: "End a person's sign-ins and rights for ever",
    success: json(200, "The removed person.", person),
    handle: ({ engine, params: { personId } }) => engine.people.remove(personId),
  }),
  endpoint("Console", "person", `GET ${PATH}/audit`, "listAuditEntries", {
    summary: "Who did what in the application, or for the operator",
    ...paged("AuditLog", auditEntry, "A page, newest first; 10,000 acts are kept."),
    handle: ({ engine, signedIn: { applicationId }, query }) =>
      engine.people.audit(applicationId, query),
  }),
  endpoint("Console", "person", `GET ${PATH}/applications`, "listConsoleApplications", {
    ...ofOperator,
    summary: "All applications",
    ...paged("ApplicationList", application, "A page, newest first."),
    handle: ({ engine, query }) => engine.applications.list({ ...query, ...NEWEST }),
  }),
  endpoint("Console", "person", `POST ${PATH}/applications`, "createConsoleApplication", {
    ...ofOperator,
    summary: "Create an application",
    body: s.requestComponent("NewApplication", { name: s.textUpTo(200) }),
    example: { name: "My game" },
    success: json(201, "The application.", application),
    handle: ({ engine, body }) => engine.applications.create(body),
  }),
  endpoint("Console", "person", `PUT ${SUSPENSION}`, "suspendApplication", {
    ...ofApplication,
    summary: "Refuse every request of an application, at once",
    handle: ({ engine, params: { applicationId } }) => engine.applications.suspend(applicationId),
  }),
  endpoint("Console", "person", `DELETE ${SUSPENSION}`, "resumeApplication", {
    ...ofApplication,
    summary: "Accept an application's requests again",
    handle: ({ engine, params: { applicationId } }) => engine.applications.resume(applicationId),
  }),
  endpoint("Console", "person", `GET ${PATH}/operations`, "getOperations", {
    ...ofOperator,
    summary: "Whether the server is ready, part by part, and the gas of the newest commits",
    success: json(200, "The operations.", operations),
    async handle({ engine, service: { findings, gasOf } }) {
      const found = await findings();
      const pages = await Promise.all(
        MODES.map((mode) => engine.batches.list({ mode, limit: 50 })),
      );
      const batches = pages.flatMap(({ data }) => data);
      const commits = await Promise.all(
        batches.map(async (batch) => {
          const gas = batch.l1TxHash && (await gasOf(engine.settlement.chainId, batch.l1TxHash));
          return { batch, settled: batch.timestamps.settled, gas };
        }),
      );
      return {
        checks: found.map(({ name, detail, error }) => ({ name, detail, ok: error === undefined })),
        commits: commits
          .flatMap(({ batch, settled, gas }) =>
            settled === undefined ? [] : [{ ...batch, settledAt: settled, gas }],
          )
          .sort((a, b) => b.settledAt - a.settledAt),
      };
    },
  }),
];

/** The application that a person works for, or looks at. Throws `role_missing` without one. */
export function applicationOf({ applicationId }: SignedIn): Uuid {
  if (applicationId === null)
    throw new MintmarkError("role_missing", "Choose an application first.");
  return applicationId;
}
