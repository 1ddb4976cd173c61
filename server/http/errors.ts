import { maxHeaderSize } from "node:http";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { ERROR_CODES, type ErrorCode, type Issue, MAX_ISSUES, MintmarkError } from "../../core/index.ts";
import { oauthErrorOf, TOKEN_PATH } from "../access/oauth-error.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The code of the problem that it was answered with; null otherwise. */
    problemCode: Code | null;
  }
  interface FastifyContextConfig {
    /** Media types of the route's body. */
    bodyTypes?: readonly string[];
  }
}

/** Errors that arise in HTTP itself, before or beside the core. Stable like the core's codes. */
export const SERVER_ERROR_CODES = {
  malformed_request: "The request line, the URL or a header could not be understood.",
  malformed_json: "The body is not the JSON that this API takes; see `errors`.",
  route_not_found: "No such route. See /openapi.json for those that exist.",
  host_unknown:
    "The Host header is not a name of this server. The operator lists its names in MINTMARK_ORIGIN or MINTMARK_HOSTS.",
  method_not_allowed: "The route exists but not with this method; see the Allow header.",
  request_timeout: "The request did not arrive in time.",
  body_too_large: "The body is larger than the limit; see GET /api/v1/limits.",
  unsupported_media_type: "The body has a media type or an encoding that this route does not take; see `detail`.",
  expectation_failed: "The Expect header asks for something other than 100-continue.",
  headers_too_large: `The request line and headers are larger than ${maxHeaderSize / 1024} KiB.`,
  rate_limited: "Too many requests; repeat after Retry-After seconds.",
  drop_not_found: "No such drop in this application.",
  drop_invalid: "Rows of the drop are not of the right form; see `errors`. Nothing was minted.",
  too_many_drops: "The application has as many drops under way as it may; wait for one, or stop one.",
  drops_unavailable: "This server keeps no drops. Use the command `mintmark drop`, or another server.",
  too_many_streams: "The key has as many streams of events open as it may; close one.",
  internal: "The server failed. Nothing is known to have changed; quote the requestId.",
  issuer_unreachable:
    "The keys of the token's issuer could not be fetched. Repeat the request later, or use an API key.",
  overloaded: "The server holds as many bytes of requests and answers as it may; repeat after Retry-After seconds.",
  not_ready: "The server is not ready to serve; see `errors`.",
  shutting_down: "The server is shutting down. Repeat the request elsewhere or later.",
} as const;

export type ServerErrorCode = keyof typeof SERVER_ERROR_CODES;
/** Every code that an answer of this server can carry. */
export type Code = ErrorCode | ServerErrorCode;

/** The HTTP status of every code; the documentation's table is held equal to this one by a test. */
export const STATUS_OF: Readonly<Record<Code, number>> = {
  validation_failed: 400,
  malformed_request: 400,
  malformed_json: 400,
  cursor_invalid: 400,
  credentials_missing: 401,
  credentials_invalid: 401,
  credentials_expired: 401,
  scope_missing: 403,
  application_suspended: 403,
  route_not_found: 404,
  application_not_found: 404,
  key_not_found: 404,
  user_not_found: 404,
  asset_not_found: 404,
  vault_not_found: 404,
  transaction_not_found: 404,
  mint_not_found: 404,
  batch_not_found: 404,
  withdrawal_not_found: 404,
  webhook_not_found: 404,
  metadata_not_found: 404,
  drop_not_found: 404,
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
  withdrawal_pending: 409,
  metadata_frozen: 409,
  asset_shared: 409,
  too_many_webhooks: 409,
  too_many_drops: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  expectation_failed: 417,
  host_unknown: 421,
  amount_out_of_range: 422,
  erc721_amount_not_one: 422,
  blob_invalid: 422,
  duplicate_mint: 422,
  duplicate_user: 422,
  batch_too_large: 422,
  standard_not_available: 422,
  chain_not_supported: 422,
  supply_cap_exceeded: 422,
  quota_exceeded: 422,
  mint_unwithdrawable: 422,
  insufficient_balance: 422,
  signature_invalid: 422,
  deadline_invalid: 422,
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
  issuer_unreachable: 503,
  overloaded: 503,
  drops_unavailable: 503,
  not_ready: 503,
  shutting_down: 503,
};

/** The status of a code on a route. RFC 6749 has the token route answer 400 to what is 403 elsewhere. */
export function statusOf(code: Code, path?: string): number {
  return path === TOKEN_PATH && STATUS_OF[code] === 403 ? 400 : STATUS_OF[code];
}

/** What a code means, in a sentence that is safe to show to anyone. */
export function meaningOf(code: Code): string {
  return code in ERROR_CODES ? ERROR_CODES[code as ErrorCode] : SERVER_ERROR_CODES[code as ServerErrorCode];
}

/** One bad entry as it is sent: core's issues, and those of the server's own codes. */
export type WireIssue = Omit<Issue, "code"> & { readonly code: Code };

/** An error of HTTP itself; the server's counterpart of `MintmarkError`. */
export class ServerError extends Error {
  override readonly name = "ServerError";
  readonly code: ServerErrorCode;
  readonly issues: readonly WireIssue[];
  /** Whether the issues leave some out. */
  readonly moreIssues: boolean;
  /** Header fields that the answer carries, such as Allow. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ServerErrorCode,
    detail: string = SERVER_ERROR_CODES[code],
    options: {
      issues?: readonly WireIssue[];
      moreIssues?: boolean;
      headers?: Readonly<Record<string, string>>;
      cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.issues = options.issues ?? [];
    this.moreIssues = options.moreIssues ?? false;
    this.headers = options.headers ?? {};
  }
}

/** RFC 9457 problem details, as every answer from 400 up carries them. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: Code;
  readonly detail: string;
  readonly requestId: string;
  readonly errors: readonly WireIssue[];
  /** Whether `errors` leaves some out. */
  readonly moreErrors: boolean;
}

const WWW_AUTHENTICATE = 'ApiKey realm="mintmark", Bearer realm="mintmark"';

/** Builds the problem document of a code. */
export function problem(
  code: Code,
  requestId: string,
  detail: string = meaningOf(code),
  errors: readonly WireIssue[] = [],
  moreErrors = false,
): Problem {
  return {
    type: `urn:mintmark:error:${code}`,
    title: meaningOf(code),
    status: STATUS_OF[code],
    code,
    detail,
    requestId,
    errors,
    moreErrors,
  };
}

/** The one error handler: whatever was thrown becomes a problem document, and only what is our fault is logged as an error. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = classify(error);
  const path = request.routeOptions.url;
  const status = statusOf(known.code, path);
  const isOAuth = path === TOKEN_PATH;
  request.problemCode = known.code;
  if (status >= 500) request.log.error({ err: error, code: known.code }, "request failed");
  else request.log.info({ code: known.code }, "request refused");
  if (status === 401) reply.header("www-authenticate", isOAuth ? 'Basic realm="mintmark"' : WWW_AUTHENTICATE);
  // Details of our own faults (paths, addresses of nodes) are for the log; the caller gets the code's own sentence.
  const detail = status >= 500 ? meaningOf(known.code) : (mediaDetail(known.code, request) ?? known.detail);
  const body = { ...problem(known.code, request.id, detail, known.issues, known.moreIssues), status };
  return (
    reply
      .code(status)
      .headers({ ...known.headers, "x-request-id": request.id, "cache-control": "no-store" })
      .type(isOAuth ? "application/json" : "application/problem+json")
      // As bytes: to text Fastify would add a charset that the media type does not have.
      .send(Buffer.from(JSON.stringify(isOAuth ? { ...oauthErrorOf(body, request.body), ...body } : body)))
  );
}

/** The media types that the route takes. */
function mediaDetail(code: Code, { routeOptions: { config } }: FastifyRequest): string | undefined {
  if (code !== "unsupported_media_type" || config.bodyTypes === undefined) return undefined;
  return `Send the body as ${config.bodyTypes.join(" or ")}, in UTF-8, without a Content-Encoding.`;
}

/** Answers what no route took: 405 when another method would have been taken, else 404. */
export function notFoundHandler(allowedMethods: (path: string) => readonly string[]) {
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const allowed = allowedMethods(request.url.split("?", 1)[0] ?? "");
    const error =
      allowed.length === 0
        ? new ServerError("route_not_found")
        : new ServerError("method_not_allowed", undefined, { headers: { allow: allowed.join(", ") } });
    return handleError(error, request, reply);
  };
}

interface Classified {
  readonly code: Code;
  readonly detail: string;
  readonly issues: readonly WireIssue[];
  readonly moreIssues: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** When the cause may be gone: the settler looks at L1 every few seconds, and a block takes about twelve. */
const RETRY_SECONDS: Partial<Record<ErrorCode, number>> = {
  l1_not_compared: 5,
  backpressure: 10,
  not_leader: 1,
  journal_unavailable: 1,
};

function classify(error: unknown): Classified {
  if (error instanceof MintmarkError) {
    const seconds = RETRY_SECONDS[error.code];
    return { ...pick(error, error.moreIssues), headers: seconds === undefined ? {} : { "retry-after": `${seconds}` } };
  }
  if (error instanceof ServerError) return { ...pick(error, error.moreIssues), headers: error.headers };
  const code = fastifyCode(error);
  return { code, detail: meaningOf(code), issues: [], moreIssues: false, headers: {} };
}

/** Longest pointer that an answer repeats, in characters. It holds what a caller wrote. */
const MAX_POINTER = 256;

function pick({ code, message, issues }: MintmarkError | ServerError, more = false) {
  const listed = issues.slice(0, MAX_ISSUES).map((issue) => ({ ...issue, pointer: shorten(issue.pointer) }));
  const moreIssues = more || issues.length > MAX_ISSUES;
  return { code, detail: shorten(message, 4 * MAX_POINTER), issues: listed, moreIssues };
}

function shorten(text: string, most = MAX_POINTER): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

/** Fastify's own errors. A new one of the 4xx class is still the caller's fault, never a 500. */
function fastifyCode(error: unknown): ServerErrorCode {
  const { code, statusCode } = (error ?? {}) as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return "unsupported_media_type";
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return "body_too_large";
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500 ? "malformed_request" : "internal";
}
