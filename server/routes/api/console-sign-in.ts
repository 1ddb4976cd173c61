import type { FastifyReply, FastifyRequest } from "fastify";
import { MintmarkError } from "../../../core/index.ts";
import { readUuid } from "../../../core/internal.ts";
import type { Service } from "../../service.ts";
import type { SignedIn } from "./endpoint.ts";

/**
 * A person's sign-in in a browser: a cookie that no script reads and no other site's request carries (HttpOnly,
 * SameSite=Strict). It counts only with the header `Mintmark-Console`, which a browser sends to another origin only
 * when that origin allows it, and this server never does. So neither another site nor another host of the same site can
 * act in a person's name.
 */
const COOKIE = "mintmark_sign_in";
/** Browsers keep this name only when its own host has set it over TLS, so no other host of the site can plant one. */
const SECURE_COOKIE = `__Host-${COOKIE}`;
const HEADER = "mintmark-console";

/** The person of a request's sign-in; null without one. Rejects as `engine.people.signedIn` does. */
export async function personOf(request: FastifyRequest, { engine, origin }: Service): Promise<SignedIn | null> {
  const token = cookieOf(request, cookieFor(origin));
  if (token === undefined || !isFromConsole(request)) return null;
  const signIn = await engine.people.signedIn(token);
  return { signIn, token, applicationId: signIn.person.applicationId ?? namedApplication(request) };
}

/** The same, for routes that need a person. Rejects with `credentials_missing` without a sign-in. */
export async function authenticatePerson(request: FastifyRequest, service: Service): Promise<SignedIn> {
  const signedIn = await personOf(request, service);
  if (signedIn === null) throw new MintmarkError("credentials_missing", "Sign in to the console.");
  return signedIn;
}

/** Throws `credentials_missing` for a request that no console of this origin made: it could sign a visitor in. */
export function requireConsole(request: FastifyRequest): void {
  if (isFromConsole(request)) return;
  throw new MintmarkError("credentials_missing", "Send the header Mintmark-Console: 1.");
}

/** Gives the browser a sign-in; null takes it away. */
export function setSignIn(
  reply: FastifyReply,
  { origin }: Pick<Service, "origin">,
  signIn: { readonly token: string; readonly expiresAt: number } | null,
): void {
  const seconds = signIn === null ? 0 : Math.max(0, Math.floor((signIn.expiresAt - Date.now()) / 1000));
  const name = cookieFor(origin);
  const secure = name === SECURE_COOKIE ? "; Secure" : "";
  const value = `${name}=${signIn?.token ?? ""}; Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Strict${secure}`;
  reply.header("set-cookie", value);
}

function isFromConsole({ headers }: FastifyRequest): boolean {
  return headers[HEADER] === "1" && (headers["sec-fetch-site"] ?? "same-origin") === "same-origin";
}

/** Over plain HTTP, as in the sandbox, a browser would not keep a secure cookie. */
function cookieFor(origin: Service["origin"]): string {
  return origin?.protocol === "https:" ? SECURE_COOKIE : COOKIE;
}

function cookieOf({ headers: { cookie = "" } }: FastifyRequest, name: string): string | undefined {
  const pairs = cookie.split(";").map((pair) => pair.trim());
  return pairs.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1) || undefined;
}

/** The application that a person of the operator looks at. Throws `application_not_found` for no id. */
function namedApplication({ headers }: FastifyRequest): string | null {
  const name = headers["mintmark-application"];
  if (name === undefined) return null;
  const applicationId = readUuid(name);
  if (applicationId === null) throw new MintmarkError("application_not_found");
  return applicationId;
}
