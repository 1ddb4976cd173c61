import { z } from "zod";
import { MintmarkError, SCOPES, type Scope } from "../../core/index.ts";
import { TOKEN_SECONDS } from "../http/access/token-terms.ts";
import { ServerError, TOKEN_PATH } from "../http/errors.ts";
import { FORM } from "../http/wire/body.ts";
import { type Endpoint, endpoint, json, SIGN_IN } from "./api/endpoint.ts";
import { requestComponent, responseComponent } from "./api/fields.ts";

const tokenBody = requestComponent(
  "TokenRequest",
  // RFC 6749, 3.2: unknown fields are ignored.
  z.object({
    grant_type: z.literal("client_credentials"),
    client_id: z.string().min(1).max(128).optional().describe("The API key's id."),
    client_secret: z.string().min(1).max(256).optional().describe("The API key."),
    scope: z
      .string()
      .max(256)
      .optional()
      .describe("A subset of the key's scopes, separated by spaces."),
  }),
);

const accessToken = responseComponent("AccessToken", {
  access_token: z.string(),
  token_type: z.literal("Bearer"),
  expires_in: z.int().describe("Seconds."),
  scope: z.string(),
});

export const tokenEndpoints: readonly Endpoint[] = [
  endpoint("Tokens", "public", `POST ${TOKEN_PATH}`, "createAccessToken", {
    summary: "Exchange an API key for a bearer token of 15 minutes (OAuth 2 client credentials)",
    description:
      "The client's id and secret go into the form, into a JSON object of the same fields, or into `Authorization: Basic`. Unknown fields, such as `audience`, are ignored. Errors follow RFC 6749, 5.2, with the members of a problem document added.",
    bodyType: FORM,
    body: tokenBody,
    example: {
      grant_type: "client_credentials",
      client_id: "5e5e01a1fd1bbf5c",
      client_secret: "mm_test_5e5e01a1fd1bbf5c_…",
    },
    success: json(200, "The token.", accessToken),
    errors: [...SIGN_IN, "application_suspended", "scope_missing"],
    async handle({ engine, service: { tokens }, body, request }) {
      const { id, secret } = clientOf(body, request.headers.authorization);
      const principal = await engine.keys.authenticate(secret);
      if (principal.keyId !== id) throw new MintmarkError("credentials_invalid");
      const scopes = scopesOf(body.scope, principal.scopes);
      return {
        access_token: await tokens.issue(principal, scopes),
        token_type: "Bearer" as const,
        expires_in: TOKEN_SECONDS,
        scope: scopes.join(" "),
      };
    },
  }),
];

function clientOf(body: z.output<typeof tokenBody>, authorization: string | undefined) {
  if (authorization !== undefined) {
    if (body.client_secret === undefined) return basic(authorization);
    throw new ServerError(
      "malformed_request",
      "Send the secret in the form or in Authorization, not in both.",
    );
  }
  if (body.client_id === undefined || body.client_secret === undefined) {
    const detail = "Send client_id and client_secret in the form, or as Authorization: Basic.";
    throw new MintmarkError("credentials_missing", detail);
  }
  return { id: body.client_id, secret: body.client_secret };
}

/**
 * RFC 6749 2.3.1: both halves are form-encoded before joining. Ours contain nothing that the
 * encoding changes.
 */
function basic(authorization: string) {
  const encoded = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization)?.[1];
  if (encoded === undefined) throw new MintmarkError("credentials_invalid");
  const text = Buffer.from(encoded, "base64").toString("latin1");
  const colon = text.indexOf(":");
  return { id: text.slice(0, Math.max(0, colon)), secret: text.slice(colon + 1) };
}

function scopesOf(wanted: string | undefined, granted: readonly Scope[]): readonly Scope[] {
  if (wanted === undefined) return granted;
  const names = wanted.split(" ").filter((name) => name !== "");
  const unknown = names.filter((name) => !granted.some((scope) => scope === name));
  if (unknown.length > 0)
    throw new MintmarkError("scope_missing", "The key lacks a requested scope.");
  return SCOPES.filter((scope) => names.includes(scope));
}
