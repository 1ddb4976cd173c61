/** The route with the errors of RFC 6749, 5.2. */
export const TOKEN_PATH = "/oauth/token";

/** The error body of the token route by RFC 6749. */
export interface OAuthError {
  readonly error: string;
  readonly error_description: string;
}

const ERRORS: Readonly<Record<string, string>> = {
  credentials_missing: "invalid_client",
  credentials_invalid: "invalid_client",
  credentials_expired: "invalid_client",
  application_suspended: "unauthorized_client",
  scope_missing: "invalid_scope",
  rate_limited: "temporarily_unavailable",
  internal: "server_error",
};

/** The parts of a problem document that it needs. */
interface Refusal {
  readonly code: string;
  readonly status: number;
  readonly detail: string;
  readonly errors: readonly { readonly pointer: string; readonly detail: string }[];
}

/** Converts a problem to an error of RFC 6749. `form` is the body, if one was read. */
export function oauthErrorOf({ code, status, detail, errors }: Refusal, form: unknown): OAuthError {
  const field = errors[0];
  const sentence = field === undefined ? detail : `${field.pointer.slice(1)}: ${field.detail}`;
  // RFC 6749 allows printable ASCII without quotes and backslashes.
  const error_description = sentence.replaceAll('"', "'").replaceAll(/[^ !#-[\]-~]/g, "?");
  const asksForGrant = Boolean((form as { grant_type?: unknown } | undefined)?.grant_type);
  if (code === "validation_failed" && field?.pointer === "/grant_type" && asksForGrant) {
    return { error: "unsupported_grant_type", error_description };
  }
  return { error: ERRORS[code] ?? (status >= 500 ? "temporarily_unavailable" : "invalid_request"), error_description };
}
