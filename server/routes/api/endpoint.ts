import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import { z } from "zod";
import * as core from "../../../core/index.ts";
import { type Code, STATUS_OF } from "../../http/errors.ts";
import { adviceFor, inOurSpelling } from "../../http/spellings.ts";
import type { FORM } from "../../http/wire/body.ts";
import type { Service } from "../../service.ts";
import { type ParamsOf, page, pageOf, paramsOf, responseComponent } from "./fields.ts";
import { type Shown, writerOf } from "./writer.ts";

/**
 * The credentials of a route: a scope of a key or a person; `any` for each valid credential of an
 * application; `person` for a person's sign-in; `owner` for an owner's sign-in; `public` for none.
 */
export type Access = core.Scope | "any" | "person" | "owner" | "public";

export interface SignedIn {
  readonly signIn: core.SignIn;
  readonly token: string;
  /** The person's own, or the one that a person of the operator names; null for none. */
  readonly applicationId: core.Uuid | null;
}

interface PublicCall<P, Q, B> {
  readonly service: Service;
  readonly engine: core.Engine;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * The input of a handler: the parsed request, the service, and the caller: an application, a person
 * or an owner.
 */
export type Call<A extends Access, P, Q, B> = PublicCall<P, Q, B> &
  (A extends "public" ? unknown : A extends keyof Callers ? Callers[A] : Callers["application"]);

interface Callers {
  readonly application: { readonly principal: core.Principal; readonly applicationId: core.Uuid };
  readonly owner: { readonly owner: core.Address };
  readonly person: { readonly signedIn: SignedIn };
}

export interface Success<S extends z.ZodType = z.ZodType> {
  readonly status: 200 | 201 | 202;
  readonly description: string;
  /**
   * The JSON body has one of these schemas. Absent for binary answers. A single one also writes the
   * body.
   */
  readonly schemas?: readonly S[];
  readonly mediaType?: string;
  /** Describes the answer as Server-Sent Events. */
  readonly stream?: string;
  /** The answer to a client that accepts only plain text. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Says when the answer is 304, without a body. */
  readonly unchanged?: string;
}

export function json<S extends z.ZodType>(status: 200 | 201 | 202, description: string, schema: S) {
  return { status, description, schemas: [schema] } as const satisfies Success<S>;
}

/** The query and the answer of a list in pages, which the documentation calls `id`. */
export function paged<S extends z.ZodType>(id: string, entry: S, description = "One page.") {
  return {
    query: z.strictObject(page),
    success: json(200, description, responseComponent(id, pageOf(entry))),
  };
}

/** The groups of the documentation, each with its description. */
export const TAGS = {
  Mint: "Ask for tokens: many users, assets and modes in one request.",
  Drops: "Many rows of a file, minted in the background.",
  Transactions: "What became of mints, withdrawals and transfers.",
  Assets: "The token contracts that can be minted.",
  Metadata: "What wallets and marketplaces read of tokens: set, hidden, revealed, frozen, served.",
  Claims: "Links that their holders exchange for a token, once.",
  Users: "The application's users and the L1 addresses that own their tokens.",
  Vaults: "What was minted, and the proofs of it.",
  Deposits: "What came back from L1 to users.",
  Withdrawals: "Bring vaults to L1 with their owner's signature.",
  Transfers:
    "Give vaults away or redeem them with their owner's signature, before a withdrawal and without gas.",
  Orders:
    "Offer a vault for another token with its owner's signature, before a withdrawal and without gas.",
  Batches: "The sealed batches that L1 commits to; their data is public.",
  State: "Roots and commitment over all batches.",
  Events: "What happens to the application, in order.",
  Webhooks: "The same events, sent to the application, signed and until they are taken.",
  Console:
    "What a team's console needs besides the routes above, which take a person's sign-in too.",
  Owners:
    "Sign in with a wallet, take the exit kits of one's own vaults, withdraw and transfer them.",
  Service: "The server itself.",
  Tokens: "Short-lived credentials for a key.",
} as const;

type Method = HTTPMethods & ("GET" | "POST" | "PUT" | "DELETE");

interface Description<S extends z.ZodType = z.ZodType> {
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: true;
  readonly success: Success<S>;
  /** Error codes besides those of {@link errorsOf} for any such route. */
  readonly errors?: readonly Code[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly example?: unknown;
  /** Media type of the body besides `application/json`. */
  readonly bodyType?: typeof FORM;
  /** Media types of a body that the handler reads as a stream, instead of JSON. */
  readonly bodyStream?: readonly string[];
  /**
   * Units of rate that a request costs its key; 1 when absent. `body` is parsed JSON, not yet
   * validated.
   */
  readonly cost?: (body: unknown) => number;
  /** The right that a person's role must have; default `read`. */
  readonly right?: core.Right;
  /** The engine keeps the idempotency keys of this route in its store. */
  readonly keysInStore?: true;
  /**
   * Its answers can be large, or it asks a wallet contract. The server makes those of one caller
   * one after another.
   */
  readonly oneByOne?: true;
  /** It reads long lists, so it waits for a turn of the application, or of the owner. */
  readonly inTurn?: true;
  /** Rate limits do not count it, because load balancers ask for it. */
  readonly unmetered?: true;
}

const JSON_TYPE = "application/json";
export const ROWS = ["text/csv", "application/x-ndjson"] as const;

interface Inputs<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Documents a body that the core validates. The handler gets it unchanged. */
  readonly coreBody?: z.ZodType;
}

/**
 * One route: its input, its answers, and its handler. OpenAPI is generated from the same object.
 */
export interface Endpoint extends Description, Inputs<z.ZodType, z.ZodType, z.ZodType> {
  readonly tag: keyof typeof TAGS;
  /** Names the operation for people and for generated clients, such as `listUsers`. */
  readonly operationId: string;
  readonly method: Method;
  /** The path, with parameters in braces, as OpenAPI writes them. */
  readonly path: string;
  readonly access: Access;
  /**
   * Parses the request and answers it. Throws `validation_failed` with all bad fields, or rejects
   * like the handler.
   */
  readonly respond: (service: Service, request: FastifyRequest, reply: FastifyReply) => unknown;
}

type Given<S> = S extends z.ZodType ? z.output<S> : undefined;
/**
 * A handler returns an object of the core that the answer's schema can show, or something that goes
 * out as it is.
 */
type Answer<S extends z.ZodType> =
  | Shown<z.output<S>>
  | string
  | Uint8Array
  | Readable
  | FastifyReply;

/** The cost of a request: one unit for each entry of a list in the body, and at least one. */
export function entriesOf(field: string): (body: unknown) => number {
  return (body) => {
    const entries = (body as Readonly<Record<string, unknown>> | null)?.[field];
    return Array.isArray(entries) ? Math.max(1, entries.length) : 1;
  };
}

/**
 * Makes a route of a description and a handler. The handler's input has the types of the schemas
 * and the access.
 *
 * @param tag - its group in the documentation
 * @param access - the credentials that it takes
 * @param route - method and path, such as `GET /api/v1/users/{userId}`
 */
export function endpoint<
  A extends Access,
  R extends `${Method} ${string}`,
  S extends z.ZodType,
  P extends z.ZodType = ParamsOf<R>,
  Q extends z.ZodType = typeof NO_QUERY,
  B extends z.ZodType = z.ZodUnknown,
>(
  tag: keyof typeof TAGS,
  access: A,
  route: R,
  operationId: string,
  definition: Description<S> &
    Inputs<P, Q, B> & {
      readonly handle: (
        call: Call<A, Given<P>, Given<Q>, Given<B>>,
      ) => Answer<S> | PromiseLike<Answer<S>>;
    },
): Endpoint {
  const { handle, ...rest } = definition;
  const [method, path = ""] = route.split(" ") as [Method, string];
  const params = definition.params ?? paramsOf(path);
  const query: z.ZodType = definition.query ?? NO_QUERY;
  const described = {
    ...rest,
    ...(params && { params }),
    query,
    tag,
    access,
    operationId,
    method,
    path,
  };
  const [shown, other] = rest.success.schemas ?? [];
  const write = shown !== undefined && other === undefined ? writerOf(shown) : undefined;
  const noQuery = query.safeParse({});
  const answer = async (call: Call<A, Given<P>, Given<Q>, Given<B>>) => {
    const tenant = call.request.principal?.applicationId ?? call.request.owner;
    if (rest.inTurn && tenant) await call.service.turns.turn(tenant, call.reply.raw);
    const made = await handle(call);
    return isObject(made) && made !== call.reply ? write?.(made as never) : made;
  };
  // Parsed once, because most requests have no query.
  const defaults = noQuery.success ? Object.freeze(noQuery.data) : undefined;
  return {
    ...described,
    respond(service, request, reply) {
      const { principal, owner, signedIn } = request;
      const caller = access === "owner" ? owner : access === "person" ? signedIn : principal;
      if (access !== "public" && caller === null)
        throw new core.MintmarkError("credentials_missing");
      const callers = { principal, applicationId: principal?.applicationId, owner, signedIn };
      const parsed = inputs(described, defaults, request);
      const given: unknown = {
        service,
        engine: service.engine,
        ...callers,
        ...parsed,
        request,
        reply,
      };
      const call = given as Call<A, Given<P>, Given<Q>, Given<B>>;
      return write === undefined ? handle(call) : answer(call);
    },
  };
}

const NO_QUERY = z.strictObject({});

/** Whether an answer is yet to be written: not text, bytes or a stream of them. */
function isObject(made: unknown): boolean {
  return typeof made === "object" && !(made instanceof Uint8Array) && !(made instanceof Readable);
}

export function bodyTypesOf({ bodyType, bodyStream }: Endpoint): readonly string[] {
  return bodyStream ?? (bodyType === undefined ? [JSON_TYPE] : [bodyType, JSON_TYPE]);
}

/** Codes that an endpoint can answer with, in the order of the documentation's table. */
export function errorsOf({
  method,
  path,
  access,
  unmetered,
  query,
  errors = [],
}: Endpoint): readonly Code[] {
  const codes = new Set<Code>([...ANY_ROUTE, ...errors]);
  // A thing that an id of the path names may not exist: `{userId}` brings `user_not_found`.
  const absent = [...path.matchAll(/\{(\w+)Id\}/g)].map(([, name]) => `${name}_not_found` as Code);
  for (const code of absent) if (code in STATUS_OF) codes.add(code);
  if (query instanceof z.ZodObject && "cursor" in query.shape) codes.add("cursor_invalid");
  if (access !== "public") for (const code of CODES_OF[access] ?? CREDENTIALS) codes.add(code);
  if (isScope(access)) codes.add("scope_missing");
  // The server reads a body even where the route ignores it.
  if (method !== "GET") for (const code of BODY) codes.add(code);
  if (takesIdempotencyKey({ method, access })) for (const code of IDEMPOTENCY) codes.add(code);
  if (!unmetered) for (const code of METERED) codes.add(code);
  return (Object.keys(STATUS_OF) as Code[]).filter((code) => codes.has(code));
}

/** Codes of every route: it refuses unknown parameters, and needs the process and the store. */
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
  "not_leader",
  "journal_unavailable",
  "shutting_down",
] as const satisfies readonly Code[];

export function isScope(access: Endpoint["access"]): access is core.Scope {
  return core.SCOPES.some((scope) => scope === access);
}

/** Codes of credentials that anybody shows. */
export const SIGN_IN = [
  "credentials_missing",
  "credentials_invalid",
  "credentials_expired",
] as const;

const PERSON = [
  ...SIGN_IN,
  "application_suspended",
  "application_not_found",
  "role_missing",
] as const;

const CREDENTIALS = [...PERSON, "issuer_unreachable"] as const satisfies readonly Code[];

const CODES_OF: Readonly<Partial<Record<Access, readonly Code[]>>> = {
  owner: SIGN_IN,
  person: PERSON,
};

/** Whether a route takes an Idempotency-Key: each POST of an application does. */
export function takesIdempotencyKey({
  method,
  access,
}: Pick<Endpoint, "method" | "access">): boolean {
  return method === "POST" && (access === "any" || isScope(access));
}

const IDEMPOTENCY = [
  "idempotency_in_progress",
  "idempotency_key_reused",
] as const satisfies readonly Code[];

const METERED = ["rate_limited", "overloaded"] as const satisfies readonly Code[];

const BODY = [
  "malformed_json",
  "body_too_large",
  "unsupported_media_type",
] as const satisfies readonly Code[];

/**
 * @param defaults - what the query's schema makes of no parameters; undefined where one is required
 */
function inputs(
  schemas: Inputs<z.ZodType, z.ZodType, z.ZodType> & { readonly query: z.ZodType },
  defaults: unknown,
  request: FastifyRequest,
) {
  const issues: core.Issue[] = [];
  const params = schemas.params && check(schemas.params, request.params, ["path"], issues);
  const query =
    defaults !== undefined && Object.keys(request.query ?? {}).length === 0
      ? defaults
      : check(schemas.query, inOurSpelling(schemas.query, request.query), ["query"], issues);
  const wantsBody = schemas.body !== undefined || schemas.coreBody !== undefined;
  if (wantsBody && request.body === undefined) {
    throw new core.MintmarkError("malformed_json", "This request needs a JSON body.");
  }
  const body = schemas.body ? check(schemas.body, request.body, [], issues) : request.body;
  if (issues.length > 0) throw new core.MintmarkError("validation_failed", undefined, { issues });
  return { params, query, body };
}

/**
 * Parses a value with a schema. Adds each refusal to `issues`, with pointers that begin with
 * `prefix`.
 */
export function check(
  schema: z.ZodType,
  value: unknown,
  prefix: readonly string[],
  issues: core.Issue[],
): unknown {
  const result = schema.safeParse(value, { error: wording });
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    // One more than the answer lists, so the answer can say that there are more.
    if (issues.length > core.MAX_ISSUES) break;
    const known = issue.path.length === 0 && schema instanceof z.ZodObject ? schema.shape : {};
    issues.push(...explain(issue, prefix, Object.keys(known)));
  }
  return undefined;
}

/** @param known - what an object may have in place of a name that it does not know */
function explain(
  issue: z.core.$ZodIssue,
  prefix: readonly string[],
  known: readonly string[],
): core.Issue[] {
  const path = [...prefix, ...issue.path.map(String)];
  if (issue.code !== "unrecognized_keys") {
    return [{ pointer: pointer(path), code: "validation_failed", detail: issue.message }];
  }
  return issue.keys.slice(0, core.MAX_ISSUES + 1).map((key) => {
    const unknown = `Unknown ${prefix[0] === "query" ? "parameter" : "field"}.`;
    const names = known.length === 0 ? "" : ` Give ${known.join(", ")}.`;
    const detail = unknown + ((prefix[0] === "query" && adviceFor(key)) || names);
    return { pointer: pointer([...path, key]), code: "validation_failed", detail };
  });
}

function pointer(path: readonly string[]): string {
  return path.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/**
 * Says what to give, where a schema has no words of its own. For the `error` option of `safeParse`.
 */
function wording(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "This is missing.";
      return Array.isArray(issue.input)
        ? "Give one value, not a list."
        : `Give ${KINDS[issue.expected] ?? issue.expected}.`;
    case "invalid_value":
      return `Give ${issue.values.length > 1 ? "one of " : ""}${issue.values.map(String).join(", ")}.`;
    case "too_big":
      return `Give at most ${issue.maximum}${UNITS[issue.origin] ?? ""}.`;
    case "too_small":
      return `Give at least ${issue.minimum}${UNITS[issue.origin] ?? ""}.`;
    case "invalid_format":
      return issue.format === "guid" ? "Give a UUID." : undefined;
    default:
      return undefined;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
};
const UNITS: Readonly<Record<string, string>> = { string: " characters", array: " entries" };
