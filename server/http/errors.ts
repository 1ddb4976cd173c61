import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import {
  ERROR_CODES,
  type ErrorCode,
  type Issue,
  MAX_ISSUES,
  MintmarkError,
} from "../../core/basics.ts";
import { nearestRoute } from "./nearest.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The code of its problem document; null for other answers. */
    problemCode: Code | null;
  }
  interface FastifyContextConfig {
    bodyTypes?: readonly string[];
  }
}

/** Errors of HTTP itself, with stable codes. The core has its own. */
export const SERVER_ERROR_CODES = {
  malformed_request: "The server cannot read the request line, the URL or a header.",
  route_not_found: "No such route. /openapi.json lists all routes.",
  host_unknown:
    "The Host header is not a name of this server. The operator lists its names in MINTMARK_ORIGIN or MINTMARK_HOSTS.",
  method_not_allowed: "The route exists, but not with this method; see the Allow header.",
  request_timeout: "The request did not arrive in time.",
  body_too_large: "The body is larger than the limit; see GET /api/v1/limits.",
  unsupported_media_type:
    "The body has a media type or an encoding that this route does not take; see `detail`.",
  expectation_failed: "The server knows no Expect header but 100-continue.",
  // An import of node:http would make each command start a quarter later.
  get headers_too_large() {
    const { maxHeaderSize } = process.getBuiltinModule("node:http");
    return `The request line and headers are larger than ${maxHeaderSize / 1024} KiB, or have more than 1,000 fields.`;
  },
  rate_limited: "Too many requests; repeat after Retry-After seconds.",
  drops_unavailable:
    "This server accepts no drops. Use the command `mintmark drop`, or another server.",
  owner_relay_off:
    "This operator does not pay for withdrawals of signed-in owners. Withdraw by your own transaction, with the exit kit.",
  new_tokens_off:
    "The operator of this server adds tokens itself. Ask it to add yours, or to set MINTMARK_NEW_TOKENS=admins.",
  too_many_streams: "The key has reached its limit of open event streams; close one.",
  internal:
    "The server failed, and cannot say whether the request changed anything. Quote the requestId.",
  issuer_unreachable:
    "The server could not fetch the keys of the identity provider that signed the bearer token. Repeat the request later, or use an API key.",
  overloaded:
    "The server has reached its memory limit for requests and answers; repeat after Retry-After seconds.",
  not_ready: "The server is not ready to serve; see `errors`.",
  shutting_down: "The server is shutting down. Repeat the request elsewhere or later.",
} as const;

export type ServerErrorCode = keyof typeof SERVER_ERROR_CODES;
export type Code = ErrorCode | ServerErrorCode;

/** The route with the errors of RFC 6749, 5.2. */
export const TOKEN_PATH = "/oauth/token";

/** The HTTP status of every code. A test compares it with OpenAPI and docs/api.md. */
export const STATUS_OF: Readonly<Record<Code, number>> = {
  validation_failed: 400,
  malformed_request: 400,
  malformed_json: 400,
  cursor_invalid: 400,
  credentials_missing: 401,
  credentials_invalid: 401,
  credentials_expired: 401,
  scope_missing: 403,
  role_missing: 403,
  application_suspended: 403,
  owner_relay_off: 403,
  new_tokens_off: 403,
  route_not_found: 404,
  application_not_found: 404,
  key_not_found: 404,
  person_not_found: 404,
  user_not_found: 404,
  asset_not_found: 404,
  vault_not_found: 404,
  transaction_not_found: 404,
  mint_not_found: 404,
  batch_not_found: 404,
  withdrawal_not_found: 404,
  transfer_not_found: 404,
  webhook_not_found: 404,
  metadata_not_found: 404,
  claim_not_found: 404,
  drop_not_found: 404,
  order_not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  token_already_minted: 409,
  token_id_conflict: 409,
  asset_exists: 409,
  asset_minted: 409,
  asset_not_enabled: 409,
  asset_not_whitelisted: 409,
  asset_not_registered: 409,
  user_exists: 409,
  idempotency_in_progress: 409,
  proof_not_ready: 409,
  vault_void: 409,
  batch_committed: 409,
  mint_consented: 409,
  vault_spent: 409,
  withdrawal_pending: 409,
  order_exists: 409,
  order_ended: 409,
  fill_pending: 409,
  metadata_hidden: 409,
  metadata_frozen: 409,
  claim_exists: 409,
  claim_taken: 409,
  claim_expired: 409,
  claim_cancelled: 409,
  asset_shared: 409,
  too_many_keys: 409,
  too_many_people: 409,
  too_many_webhooks: 409,
  too_many_drops: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  expectation_failed: 417,
  host_unknown: 421,
  amount_out_of_range: 422,
  erc721_amount_not_one: 422,
  minting_blob_invalid: 422,
  duplicate_mint: 422,
  duplicate_user: 422,
  batch_too_large: 422,
  standard_not_available: 422,
  rollup_not_available: 422,
  chain_not_supported: 422,
  supply_cap_exceeded: 422,
  quota_exceeded: 422,
  places_exhausted: 507,
  mint_unwithdrawable: 422,
  asset_not_transferable: 422,
  transfer_too_deep: 422,
  insufficient_balance: 422,
  signature_invalid: 422,
  deadline_invalid: 422,
  order_not_allowed: 422,
  idempotency_key_reused: 422,
  drop_invalid: 422,
  rate_limited: 429,
  too_many_streams: 429,
  headers_too_large: 431,
  internal: 500,
  store_corrupt: 500,
  store_missing: 503,
  store_locked: 503,
  store_failed: 503,
  store_mismatch: 503,
  history_diverged: 503,
  l1_not_compared: 503,
  backpressure: 503,
  not_leader: 503,
  journal_unavailable: 503,
  kzg_unavailable: 503,
  engine_closed: 503,
  l1_failed: 503,
  signer_failed: 503,
  issuer_unreachable: 503,
  overloaded: 503,
  drops_unavailable: 503,
  uploads_full: 503,
  not_ready: 503,
  shutting_down: 503,
};

/** The status of a code on a route. The token route answers 400 instead of 403 (RFC 6749). */
export function statusOf(code: Code, path?: string): number {
  return path === TOKEN_PATH && STATUS_OF[code] === 403 ? 400 : STATUS_OF[code];
}

/** The meaning of a code, in a sentence without private details. */
export function meaningOf(code: Code): string {
  return code in ERROR_CODES
    ? ERROR_CODES[code as ErrorCode]
    : SERVER_ERROR_CODES[code as ServerErrorCode];
}

/** One bad entry of an answer, with a code of the core or of the server. */
export type WireIssue = Omit<Issue, "code"> & { readonly code: Code };

/** An error of HTTP itself, as `MintmarkError` is one of the core. */
export class ServerError extends Error {
  override readonly name = "ServerError";
  readonly code: ServerErrorCode;
  readonly issues: readonly WireIssue[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ServerErrorCode,
    detail: string = SERVER_ERROR_CODES[code],
    options: Partial<Pick<ServerError, "issues" | "headers">> & { readonly cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.issues = options.issues ?? [];
    this.headers = options.headers ?? {};
  }
}

/**
 * The refusal of one part of a request, by its pointer. `message` is about the request as a whole.
 */
export function invalid(pointer: string, detail: string, message?: string): MintmarkError {
  return new MintmarkError("validation_failed", message, {
    issues: [{ pointer, code: "validation_failed", detail }],
  });
}

/** A refusal that says after how many seconds the same can succeed. */
export function later(
  code: "rate_limited" | "overloaded",
  seconds: number,
  detail?: string,
): ServerError {
  return new ServerError(code, detail, { headers: { "retry-after": String(seconds) } });
}

const WWW_AUTHENTICATE = 'ApiKey realm="mintmark", Bearer realm="mintmark"';

/**
 * RFC 9457 problem details: the body of every answer from 400 up. `moreErrors`: whether `errors` is
 * incomplete.
 */
export function problem(
  code: Code,
  requestId: string,
  detail: string = meaningOf(code),
  errors: readonly WireIssue[] = [],
  moreErrors = false,
) {
  const [type, title, status] = [`urn:mintmark:error:${code}`, meaningOf(code), STATUS_OF[code]];
  return { type, title, status, code, detail, requestId, errors, moreErrors };
}

/**
 * The error handler: turns each error into a problem document. The log shows only the server's
 * faults as errors.
 */
export function handleError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  // A caller who has left reads no answer.
  if (request.raw.socket.destroyed) return reply.hijack();
  const known = classify(error, request);
  const path = request.routeOptions.url;
  const status = statusOf(known.code, path);
  const isOAuth = path === TOKEN_PATH;
  request.problemCode = known.code;
  // A caller that fills the memory must not fill the log too.
  if (status >= 500 && known.code !== "overloaded")
    request.log.error({ err: error, code: known.code }, "request failed");
  else request.log.info({ code: known.code }, "request refused");
  if (status === 401)
    reply.header("www-authenticate", isOAuth ? 'Basic realm="mintmark"' : WWW_AUTHENTICATE);
  // Details of the server's faults, such as paths and addresses of nodes, go to the log only.
  const detail =
    status >= 500 ? meaningOf(known.code) : (mediaDetail(known.code, request) ?? known.detail);
  const body = {
    ...problem(known.code, request.id, detail, known.issues, known.moreIssues),
    status,
  };
  return (
    reply
      .code(status)
      .headers({ ...known.headers, "x-request-id": request.id, "cache-control": "no-store" })
      .type(isOAuth ? "application/json" : "application/problem+json")
      // Fastify adds a charset to text, which this media type does not have, so bytes are sent.
      .send(
        Buffer.from(
          JSON.stringify(isOAuth ? { ...oauthErrorOf(body, request.body), ...body } : body),
        ),
      )
  );
}

/** The errors of RFC 6749, 5.2, for codes of the token route. */
const OAUTH_ERRORS: Readonly<Partial<Record<Code, string>>> = {
  credentials_missing: "invalid_client",
  credentials_invalid: "invalid_client",
  credentials_expired: "invalid_client",
  application_suspended: "unauthorized_client",
  scope_missing: "invalid_scope",
  rate_limited: "temporarily_unavailable",
  internal: "server_error",
};

/** The members that RFC 6749 adds to a problem. `form` is the body, if one was read. */
function oauthErrorOf({ code, status, detail, errors }: ReturnType<typeof problem>, form: unknown) {
  const [field] = errors;
  const sentence = field === undefined ? detail : sentenceOf(field);
  // RFC 6749 allows printable ASCII without quotes and backslashes.
  const error_description = sentence.replaceAll('"', "'").replaceAll(/[^ !#-[\]-~]/g, "?");
  const asksForGrant = Boolean((form as { grant_type?: unknown } | undefined)?.grant_type);
  const isOtherGrant =
    code === "validation_failed" && field?.pointer === "/grant_type" && asksForGrant;
  const usual = status >= 500 ? "temporarily_unavailable" : "invalid_request";
  return {
    error: isOtherGrant ? "unsupported_grant_type" : (OAUTH_ERRORS[code] ?? usual),
    error_description,
  };
}

function mediaDetail(code: Code, { routeOptions: { config } }: FastifyRequest): string | undefined {
  if (code !== "unsupported_media_type" || config.bodyTypes === undefined) return undefined;
  return `Send the body as ${config.bodyTypes.join(" or ")}, in UTF-8, without a Content-Encoding.`;
}

/** Answers a request without route: 405 when the path has a route of another method, else 404. */
export function notFoundHandler(
  allowedMethods: (path: string) => readonly string[],
  routes: readonly string[],
) {
  const nearest = nearestRoute(routes);
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const [path = ""] = request.url.split("?", 1);
    const allowed = allowedMethods(path);
    const error =
      allowed.length === 0
        ? routeNotFound(nearest(request.method, path))
        : new ServerError("method_not_allowed", undefined, {
            headers: { allow: allowed.join(", ") },
          });
    return handleError(error, request, reply);
  };
}

function routeNotFound(nearest: string | null): ServerError {
  const meaning = meaningOf("route_not_found");
  return new ServerError(
    "route_not_found",
    nearest === null ? meaning : `${meaning} The nearest is ${nearest}.`,
  );
}

/**
 * Seconds until the cause may be gone. The settler reads L1 every few seconds, and a block takes
 * about twelve.
 */
const RETRY_SECONDS: Partial<Record<ErrorCode, number>> = {
  l1_not_compared: 5,
  backpressure: 10,
  not_leader: 1,
  journal_unavailable: 1,
  uploads_full: 10,
};

/**
 * Where the caller finds the place of an issue. The core knows names of arguments, which a request
 * has in its path, or without a body in its query.
 */
function placeOf(pointer: string, { method, params }: FastifyRequest): string {
  const [, name = ""] = pointer.split("/");
  if (["query", "path", "headers"].includes(name)) return pointer;
  if (Object.hasOwn(params ?? {}, name)) return `/path${pointer}`;
  return method === "GET" ? `/query${pointer}` : pointer;
}

function classify(error: unknown, request: FastifyRequest) {
  const isCore = error instanceof MintmarkError;
  const isKnown = isCore || error instanceof ServerError;
  const known = isKnown ? error : new ServerError(fastifyCode(error));
  const { code, message, issues } = known;
  const seconds = known instanceof MintmarkError ? RETRY_SECONDS[known.code] : undefined;
  const retry: Readonly<Record<string, string>> =
    seconds === undefined ? {} : { "retry-after": `${seconds}` };
  const placed = isCore
    ? issues.map((issue) => ({ ...issue, pointer: placeOf(issue.pointer, request) }))
    : issues;
  const [first] = placed;
  const isGeneral = first !== undefined && message === meaningOf(code);
  return {
    code,
    detail: shorten(isGeneral ? sentenceOf(first) : message, 4 * MAX_POINTER),
    issues: placed
      .slice(0, MAX_ISSUES)
      .map((issue) => ({ ...issue, pointer: shorten(issue.pointer) })),
    moreIssues: issues.length > MAX_ISSUES || (known instanceof MintmarkError && known.moreIssues),
    headers: known instanceof ServerError ? known.headers : retry,
  };
}

function sentenceOf({ pointer, detail }: WireIssue): string {
  return pointer === "" ? detail : `${shorten(pointer.slice(1))}: ${detail}`;
}

/** Longest pointer in an answer, in characters. It can contain the caller's own text. */
const MAX_POINTER = 256;

function shorten(text: string, most = MAX_POINTER): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

/** The code of an error of Fastify. Unknown ones with a status of 4xx are the caller's fault. */
function fastifyCode(error: unknown): ServerErrorCode {
  const { code, statusCode } = (error ?? {}) as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return "unsupported_media_type";
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return "body_too_large";
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500
    ? "malformed_request"
    : "internal";
}
