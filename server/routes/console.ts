import { MintmarkError, MODES, type Uuid } from "../../core/index.ts";
import * as s from "../schemas/console.ts";
import { challenge, challengeBody } from "../schemas/owner.ts";
import { application } from "../schemas/service.ts";

import { requireConsole, setSignIn } from "./api/console-sign-in.ts";
import { type Endpoint, endpoint, json, SIGN_IN, type SignedIn } from "./api/endpoint.ts";
import { originOf } from "./owner.ts";

const PATH = "/console/v1";
const PERSON = `${PATH}/people/{personId}`;
const ofKeys = { right: "keys" } as const;
const ofPeople = { right: "people" } as const;
const ofOperator = { right: "operate" } as const;
const SUSPENSION = `${PATH}/applications/{applicationId}/suspension`;
const ofApplication = { ...ofOperator, success: json(200, "The application.", application) } as const;
const NEWEST = { order: "desc" } as const;

const SIGNED = {
  message: "localhost wants you to sign in with your Ethereum account: …",
  signature: `0x${"00".repeat(65)}`,
};

export const consoleEndpoints: readonly Endpoint[] = [
  endpoint("Console", "public", `POST ${PATH}/challenge`, "createPersonChallenge", {
    summary: "A message (EIP-4361) for a person's wallet to sign",
    body: challengeBody,
    example: { address: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8" },
    success: json(200, "The message; it can be used once, in five minutes.", challenge),
    handle: ({ service, body, request }) => service.people.challenge(body.address, originOf(request, service)),
  }),
  endpoint("Console", "public", `POST ${PATH}/sign-in`, "createPersonSignIn", {
    summary: "Sign a person in by a wallet's signature, or by a link that works once",
    description:
      "Sets a cookie for 12 hours. Needs the header `Mintmark-Console: 1`, as every call with the cookie. A wallet of several teams signs in where it was last, or to `applicationId`; null names the operator.",
    body: s.signInBody,
    example: SIGNED,
    oneByOne: true,
    success: json(201, "The sign-in.", s.newPersonSignIn),
    errors: [...SIGN_IN, "signature_invalid", "application_suspended", "application_not_found"],
    async handle({ service, body, request, reply }) {
      requireConsole(request);
      const byWallet = async ({ message, signature, applicationId }: Exclude<typeof body, { link: string }>) => {
        return { address: await service.people.prove(message, signature, originOf(request, service)), applicationId };
      };
      const opened = await service.engine.people.signIn("link" in body ? body : await byWallet(body));
      setSignIn(reply, service, opened);
      return opened;
    },
  }),
  endpoint("Console", "person", `GET ${PATH}/sign-in`, "getPersonSignIn", {
    summary: "Who is signed in, with the rights of the role",
    success: json(200, "The sign-in.", s.personSignIn),
    handle: ({ signedIn: { signIn } }) => signIn,
  }),
  endpoint("Console", "person", `DELETE ${PATH}/sign-in`, "deletePersonSignIn", {
    summary: "Sign out",
    success: json(200, "The sign-in that has ended.", s.personSignIn),
    async handle({ service, signedIn: { signIn, token }, reply }) {
      await service.engine.people.signOut(token);
      setSignIn(reply, service, null);
      return signIn;
    },
  }),
  endpoint("Console", "person", `PUT ${PATH}/sign-in/wallet`, "setPersonWallet", {
    summary: "Set the wallet that signs the person in from now on",
    body: s.walletBody,
    example: SIGNED,
    success: json(200, "The person.", s.person),
    errors: ["signature_invalid", "person_not_found"],
    async handle({ service, signedIn: { signIn }, body: { message, signature }, request }) {
      const address = await service.people.prove(message, signature, originOf(request, service));
      return await service.engine.people.setAddress(signIn.person.personId, address);
    },
  }),
  endpoint("Console", "person", `GET ${PATH}/keys`, "listConsoleKeys", {
    summary: "The application's API keys, without their secrets",
    query: s.pageQuery,
    success: json(200, "A page, newest first.", s.keyList),
    handle: ({ engine, signedIn, query }) => engine.keys.list(applicationOf(signedIn), { ...query, ...NEWEST }),
  }),
  endpoint("Console", "person", `POST ${PATH}/keys`, "createConsoleKey", {
    ...ofKeys,
    summary: "Issue an API key, with scopes that the person's role has",
    body: s.keyBody,
    example: { name: "Shop", scopes: ["mint", "read"] },
    success: json(201, "The key, with its secret.", s.issuedKey),
    errors: ["too_many_keys"],
    handle: async ({ engine, signedIn, body }) => engine.keys.issue(applicationOf(signedIn), body),
  }),
  endpoint("Console", "person", `POST ${PATH}/keys/{keyId}/rotation`, "rotateConsoleKey", {
    ...ofKeys,
    summary: "Issue a key like another one, which stays valid until it is revoked",
    body: s.rotationBody,
    example: {},
    success: json(201, "The new key, with its secret.", s.issuedKey),
    errors: ["key_not_found", "too_many_keys"],
    handle: async ({ engine, params: { keyId }, body }) => engine.keys.rotate(keyId, body),
  }),
  endpoint("Console", "person", `DELETE ${PATH}/keys/{keyId}`, "deleteConsoleKey", {
    ...ofKeys,
    summary: "Revoke an API key and its tokens at once",
    success: json(200, "The revoked key.", s.apiKey),
    errors: ["key_not_found"],
    handle: ({ engine, params: { keyId } }) => engine.keys.revoke(keyId),
  }),
  endpoint("Console", "person", `GET ${PATH}/people`, "listConsolePeople", {
    summary: "The people of the application, or of the operator, with removed ones",
    query: s.pageQuery,
    success: json(200, "A page, newest first.", s.personList),
    handle: ({ engine, signedIn: { applicationId }, query }) =>
      engine.people.list(applicationId, { ...query, ...NEWEST }),
  }),
  endpoint("Console", "person", `POST ${PATH}/people`, "createConsolePerson", {
    ...ofPeople,
    summary: "Invite a person, by a wallet or by a link that works once",
    body: s.personBody,
    example: { name: "Ada", role: "developer" },
    success: json(201, "The person, with the link.", s.invitation),
    errors: ["too_many_people"],
    handle: ({ engine, signedIn: { applicationId }, body }) => engine.people.invite({ ...body, applicationId }),
  }),
  endpoint("Console", "person", `PUT ${PERSON}/role`, "setConsolePersonRole", {
    ...ofPeople,
    summary: "Give a person another role, at once",
    body: s.roleBody,
    example: { role: "viewer" },
    success: json(200, "The person.", s.person),
    errors: ["person_not_found"],
    handle: ({ engine, params: { personId }, body: { role } }) => engine.people.changeRole(personId, role),
  }),
  endpoint("Console", "person", `POST ${PERSON}/links`, "createConsolePersonLink", {
    ...ofPeople,
    summary: "Make a new link that signs a person in once, within a week",
    success: json(201, "The person, with the link.", s.invitation),
    errors: ["person_not_found"],
    handle: ({ engine, params: { personId } }) => engine.people.link(personId),
  }),
  endpoint("Console", "person", `DELETE ${PERSON}`, "deleteConsolePerson", {
    ...ofPeople,
    summary: "End a person's sign-ins and rights for ever",
    success: json(200, "The removed person.", s.person),
    errors: ["person_not_found"],
    handle: ({ engine, params: { personId } }) => engine.people.remove(personId),
  }),
  endpoint("Console", "person", `GET ${PATH}/audit`, "listAuditEntries", {
    summary: "Who did what in the application, or for the operator",
    query: s.pageQuery,
    success: json(200, "A page, newest first; 10,000 acts are kept.", s.auditLog),
    handle: ({ engine, signedIn: { applicationId }, query }) => engine.people.audit(applicationId, query),
  }),
  endpoint("Console", "person", `GET ${PATH}/applications`, "listConsoleApplications", {
    ...ofOperator,
    summary: "All applications",
    query: s.pageQuery,
    success: json(200, "A page, newest first.", s.applicationList),
    handle: ({ engine, query }) => engine.applications.list({ ...query, ...NEWEST }),
  }),
  endpoint("Console", "person", `POST ${PATH}/applications`, "createConsoleApplication", {
    ...ofOperator,
    summary: "Create an application",
    body: s.newApplicationBody,
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
    success: json(200, "The operations.", s.operations),
    async handle({ engine, service: { readiness, commitGas } }) {
      const findings = await readiness.findings();
      const pages = await Promise.all(MODES.map((mode) => engine.batches.list({ mode, limit: 50 })));
      const batches = pages.flatMap(({ data }) => data);
      const commits = await Promise.all(
        batches.map(async (batch) => ({ batch, settled: batch.timestamps.settled, gas: await commitGas.of(batch) })),
      );
      return {
        checks: findings.map(({ name, detail, error }) => ({ name, detail, ok: error === undefined })),
        commits: commits
          .flatMap(({ batch, settled, gas }) => (settled === undefined ? [] : [{ ...batch, settledAt: settled, gas }]))
          .sort((a, b) => b.settledAt - a.settledAt),
      };
    },
  }),
];

/** The application that a person works for, or looks at. Throws `role_missing` without one. */
export function applicationOf({ applicationId }: SignedIn): Uuid {
  if (applicationId === null) throw new MintmarkError("role_missing", "Choose an application first.");
  return applicationId;
}
