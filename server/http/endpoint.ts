import type { FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import type { z } from "zod";
import {
  type Address,
  type Issue,
  MAX_ISSUES,
  MintmarkError,
  type Principal,
  SCOPES,
  type Scope,
} from "../../core/index.ts";
import { wording } from "../schemas/wording.ts";
import type { Service } from "../service.ts";
import { type Code, ServerError, STATUS_OF } from "./errors.ts";

/** A scope that a key must carry, `any` for every valid credential of an application, `owner` for an owner's session, `public` for none. */
export type Access = Scope | "any" | "owner" | "public";

interface PublicCall<P, Q, B> {
  readonly service: Service;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** What a handler gets: everything parsed, the service, and who calls: an application, or an owner who has signed in with its wallet. */
export type Call<A extends Access, P, Q, B> = PublicCall<P, Q, B> &
  (A extends "public" ? unknown : A extends "owner" ? { readonly owner: Address } : { readonly principal: Principal });

/** What an endpoint answers with when it succeeds. */
export interface Success {
  readonly status: 200 | 201 | 202;
  readonly description: string;
  /** Schemas of the JSON body, any one of them; absent for binary answers. */
  readonly schemas?: readonly z.ZodType[];
  readonly mediaType?: string;
  /** What the answer is when the client takes it as Server-Sent Events. */
  readonly stream?: string;
  /** The answer when the client takes plain text alone. */
  readonly text?: string;
  /** Header fields of note, name to description. */
  readonly headers?: Readonly<Record<string, string>>;
  /** When the answer is 304 instead, without a body. */
  readonly unchanged?: string;
}

/** Groups of the documentation. */
export type Tag =
  | "Mint"
  | "Drops"
  | "Transactions"
  | "Assets"
  | "Metadata"
  | "Users"
  | "Vaults"
  | "Withdrawals"
  | "Batches"
  | "State"
  | "Events"
  | "Webhooks"
  | "Owners"
  | "Service"
  | "Tokens";

interface Description {
  readonly method: HTTPMethods & ("GET" | "POST" | "PUT" | "DELETE");
  /** With parameters in braces, as OpenAPI writes them. */
  readonly path: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: true;
  readonly success: Success;
  /** Codes beyond those that any such route can answer with. */
  readonly errors?: readonly Code[];
  /** Request header fields of note, name to description. */
  readonly headers?: Readonly<Record<string, string>>;
  /** An example of the body. */
  readonly example?: unknown;
  /** What the body can be besides `application/json`. */
  readonly bodyType?: typeof FORM;
  /** Media types of a body that the handler reads as it comes, in the place of JSON. */
  readonly bodyStream?: readonly string[];
  /** What a request costs its key's rate limit, in units; 1 when absent. `body` is parsed JSON, not yet validated. */
  readonly cost?: (body: unknown) => number;
  /** The engine keeps the idempotency keys of this route, in its store. */
  readonly keysInStore?: true;
  /** Its answers can be large: those of one caller are made one after another, so that one at a time is in memory unfinished. */
  readonly large?: true;
  /** Left out of rate limits: what load balancers ask. */
  readonly unmetered?: true;
}

const JSON_TYPE = "application/json";
/** OAuth's form of a body. */
export const FORM = "application/x-www-form-urlencoded";
/** Rows of a file. */
export const ROWS = ["text/csv", "application/x-ndjson"] as const;

interface Inputs<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Documents a body that the core validates by itself; the handler gets it as it came. */
  readonly coreBody?: z.ZodType;
}

type Given<S> = S extends z.ZodType ? z.output<S> : undefined;

/** One route: what it takes, what it answers, and the function between. OpenAPI is generated from the same object that serves. */
export interface Endpoint extends Description, Inputs<z.ZodType, z.ZodType, z.ZodType> {
  readonly access: Access;
  /** Parses the request and answers it. Throws `validation_failed` that lists every bad parameter and field; or rejects as the handler does. */
  readonly respond: (service: Service, request: FastifyRequest, reply: FastifyReply) => unknown;
}

/** Makes a route of a description and a handler, whose call has the types of the schemas and of the access. */
export function endpoint<
  A extends Access,
  P extends z.ZodType = z.ZodUndefined,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUnknown,
>(
  definition: Description &
    Inputs<P, Q, B> & {
      readonly access: A;
      readonly handle: (call: Call<A, Given<P>, Given<Q>, Given<B>>) => unknown;
    },
): Endpoint {
  const { handle, ...rest } = definition;
  return {
    ...rest,
    respond(service, request, reply) {
      const { principal, owner } = request;
      const caller = rest.access === "owner" ? owner : principal;
      if (rest.access !== "public" && caller === null) throw new MintmarkError("credentials_missing");
      const call: unknown = { service, principal, owner, ...inputs(definition, request), request, reply };
      return handle(call as Call<A, Given<P>, Given<Q>, Given<B>>);
    },
  };
}

/** Media types that an endpoint's body can have. */
export function bodyTypesOf({ bodyType, bodyStream }: Endpoint): readonly string[] {
  return bodyStream ?? (bodyType === undefined ? [JSON_TYPE] : [bodyType, JSON_TYPE]);
}

/** Codes that an endpoint can answer with, in the order of the documentation's table. */
export function errorsOf({ method, access, unmetered, errors = [] }: Endpoint): readonly Code[] {
  const codes = new Set<Code>(ANY_ROUTE);
  for (const code of errors) codes.add(code);
  if (access !== "public") for (const code of access === "owner" ? SESSION : CREDENTIALS) codes.add(code);
  if (isScope(access)) codes.add("scope_missing");
  // A body is read, and refused when it cannot be, before a route that takes none ignores it.
  if (method !== "GET") for (const code of BODY) codes.add(code);
  if (takesIdempotencyKey({ method, access })) for (const code of IDEMPOTENCY) codes.add(code);
  if (!unmetered) for (const code of METERED) codes.add(code);
  return (Object.keys(STATUS_OF) as Code[]).filter((code) => codes.has(code));
}

/** Every route refuses unknown query parameters, and needs the process, the store and the caller's patience. */
const ANY_ROUTE = [
  "validation_failed",
  "malformed_request",
  "request_timeout",
  "expectation_failed",
  "headers_too_large",
  "host_unknown",
  "internal",
  "store_corrupt",
  "store_failed",
  "engine_closed",
  "shutting_down",
] as const satisfies readonly Code[];

/** Whether an access is one that a key's scopes grant. */
export function isScope(access: Endpoint["access"]): access is Scope {
  return SCOPES.some((scope) => scope === access);
}

const SESSION = [
  "credentials_missing",
  "credentials_invalid",
  "credentials_expired",
  "not_leader",
  "journal_unavailable",
] as const satisfies readonly Code[];

const CREDENTIALS = [...SESSION, "application_suspended", "issuer_unreachable"] as const satisfies readonly Code[];

/** Every POST of an application does its work once for an Idempotency-Key. */
export function takesIdempotencyKey({ method, access }: Pick<Endpoint, "method" | "access">): boolean {
  return method === "POST" && access !== "public" && access !== "owner";
}

const IDEMPOTENCY = ["idempotency_in_progress", "idempotency_key_reused"] as const satisfies readonly Code[];

const METERED = ["rate_limited", "overloaded"] as const satisfies readonly Code[];

const BODY = [
  "malformed_json",
  "body_too_large",
  "unsupported_media_type",
  "not_leader",
  "journal_unavailable",
] as const satisfies readonly Code[];

function inputs(schemas: Inputs<z.ZodType, z.ZodType, z.ZodType>, request: FastifyRequest) {
  const issues: Issue[] = [];
  const params = schemas.params && check(schemas.params, request.params, ["path"], issues);
  const query = schemas.query
    ? check(schemas.query, request.query, ["query"], issues)
    : refuseParameters(request.query, issues);
  const wantsBody = schemas.body !== undefined || schemas.coreBody !== undefined;
  if (wantsBody && request.body === undefined) {
    throw new ServerError("malformed_json", "This request needs a JSON body.");
  }
  const body = schemas.body ? check(schemas.body, request.body, [], issues) : request.body;
  if (issues.length > 0) throw new MintmarkError("validation_failed", undefined, { issues });
  return { params, query, body };
}

function check(schema: z.ZodType, value: unknown, prefix: readonly string[], issues: Issue[]): unknown {
  const result = schema.safeParse(value, { error: wording });
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    // One more than is listed tells that there are more.
    if (issues.length > MAX_ISSUES) break;
    issues.push(...explain(issue, prefix));
  }
  return undefined;
}

function refuseParameters(query: unknown, issues: Issue[]): undefined {
  for (const name of Object.keys(query ?? {})) {
    issues.push({ pointer: pointer(["query", name]), code: "validation_failed", detail: "Unknown parameter." });
  }
  return undefined;
}

function explain(issue: z.core.$ZodIssue, prefix: readonly string[]): Issue[] {
  const path = [...prefix, ...issue.path.map(String)];
  if (issue.code !== "unrecognized_keys") {
    return [{ pointer: pointer(path), code: "validation_failed", detail: issue.message }];
  }
  const detail = prefix[0] === "query" ? "Unknown parameter." : "Unknown field.";
  return issue.keys
    .slice(0, MAX_ISSUES + 1)
    .map((key) => ({ pointer: pointer([...path, key]), code: "validation_failed", detail }));
}

/** RFC 6901. */
function pointer(path: readonly string[]): string {
  return path.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
