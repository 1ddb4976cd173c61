import { z } from "zod";
import packageJson from "../../../package.json" with { type: "json" };
import { type Code, meaningOf, statusOf, TOKEN_PATH } from "../../http/errors.ts";
import { event, eventType } from "../events.ts";
import {
  bodyTypesOf,
  type Endpoint,
  errorsOf,
  isScope,
  TAGS,
  takesIdempotencyKey,
} from "./endpoint.ts";
import { requestComponents, responseComponent, responseComponents } from "./fields.ts";

/** RFC 9457, with this API's extension members. */
export const problemDocument = responseComponent("Problem", {
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.string().describe("Stable; never renamed."),
  detail: z.string(),
  requestId: z.string(),
  errors: z
    .array(z.strictObject({ pointer: z.string(), code: z.string(), detail: z.string() }))
    .describe(
      "The bad entries, at most 100. `pointer` is a JSON pointer into the body; for a query parameter, path parameter or header it starts with /query, /path or /headers.",
    ),
  moreErrors: z.boolean().describe("Whether `errors` is incomplete."),
});

/** The problem document of the token route. RFC 6749 adds two members and another media type. */
export const oauthError = responseComponent(
  "OAuthError",
  problemDocument.extend({
    error: z.string().describe("The RFC 6749 error, such as `invalid_client`."),
    error_description: z.string(),
  }),
);

const EVENT_TYPES = eventType.options;

type Json = Record<string, unknown>;

const SCHEMAS = "#/components/schemas/";

/** The OpenAPI 3.1 document of these endpoints. `limits` is the answer of `GET /api/v1/limits`. */
export function openApiDocument(endpoints: readonly Endpoint[], limits: unknown): Json {
  const schemas = components();
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] = {
      ...paths[endpoint.path],
      [endpoint.method.toLowerCase()]: operation(endpoint, schemas),
    };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Mintmark",
      version: packageJson.version,
      description:
        "Layer-2 minting of ERC-20, ERC-721 and ERC-1155 tokens. Every error is an RFC 9457 problem document with a stable `code`.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(endpoints.map(({ tag }) => tag))].map((name) => ({
      name,
      description: TAGS[name],
    })),
    paths,
    webhooks: webhooks(),
    components: {
      schemas,
      securitySchemes: {
        apiKey: { type: "apiKey", in: "header", name: "X-Api-Key" },
        bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
        personSignIn: {
          type: "apiKey",
          in: "cookie",
          name: "mintmark_sign_in",
          description:
            "The cookie of POST /console/v1/sign-in; with the header `Mintmark-Console: 1`.",
        },
        ownerSignIn: {
          type: "http",
          scheme: "bearer",
          bearerFormat: "JWT",
          description: "The token of POST /owner/v1/sign-in.",
        },
        ownerPage: {
          type: "apiKey",
          in: "cookie",
          name: "mintmark_owner",
          description: "The cookie of POST /owner/v1/sign-in; with the header `Mintmark-Owner: 1`.",
        },
      },
    },
    "x-limits": limits,
  };
}

/** The requests to an application's webhooks, one operation for each type of event. */
function webhooks(): Json {
  return Object.fromEntries(
    EVENT_TYPES.map((type) => {
      const post = {
        operationId: `receive${type
          .split(/[._]/)
          .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
          .join("")}`,
        tags: ["Webhooks"],
        summary: `An event of the type \`${type}\``,
        description:
          "The signature follows Standard Webhooks: it covers `webhook-id`, `webhook-timestamp` and the body. New types and fields can come at any time: ignore those that you do not know.",
        security: [],
        parameters: ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
          return { name, in: "header", required: true, schema: { type: "string" } };
        }),
        requestBody: {
          required: true,
          content: {
            "application/json": {
              schema: { allOf: [reference(event), { properties: { type: { const: type } } }] },
            },
          },
        },
        responses: {
          "2XX": { description: "Taken." },
          default: { description: "Anything else: the server delivers the event again later." },
        },
      };
      return [type, { post }];
    }),
  );
}

function operation(endpoint: Endpoint, schemas: Json): Json {
  const { operationId, tag, summary, description, deprecated, access } = endpoint;
  const byStatus = Map.groupBy(errorsOf(endpoint), (code) => statusOf(code, endpoint.path));
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description && { description }),
    ...(deprecated && { deprecated }),
    security: security(access),
    ...(isScope(access) && { "x-scope": access }),
    parameters: parameters(endpoint),
    ...requestBody(endpoint),
    responses: {
      [endpoint.success.status]: success(endpoint, schemas),
      ...unchanged(endpoint.success),
      ...Object.fromEntries(
        [...byStatus].map(([status, codes]) => [
          status,
          failure(status, codes, endpoint.path === TOKEN_PATH),
        ]),
      ),
    },
  };
}

function security(access: Endpoint["access"]): Json[] {
  if (access === "public") return [];
  if (access === "owner") return [{ ownerSignIn: [] }, { ownerPage: [] }];
  return access === "person"
    ? [{ personSignIn: [] }]
    : [{ apiKey: [] }, { bearer: [] }, { personSignIn: [] }];
}

function parameters(endpoint: Endpoint): Json[] {
  const { params, query } = endpoint;
  const headers = { ...(takesIdempotencyKey(endpoint) && IDEMPOTENCY_KEY), ...endpoint.headers };
  return [
    ...fields(params).map(({ name, schema }) => ({ name, in: "path", required: true, schema })),
    ...fields(query).map(({ name, required, schema: { description, ...schema } }) => {
      return {
        name,
        in: "query",
        required,
        ...(description ? { description } : {}),
        schema: repeatable(schema),
      };
    }),
    ...Object.entries(headers).map(([name, description]) => {
      return { name, in: "header", required: false, description, schema: { type: "string" } };
    }),
  ];
}

function fields(
  schema: z.ZodType | undefined,
): { name: string; required: boolean; schema: Json }[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = strip(
    z.toJSONSchema(schema, { io: "input", override }),
  ) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, field]) => {
    return { name, required: required.includes(name), schema: field };
  });
}

/** A repeatable parameter is an array in OpenAPI. */
function repeatable(schema: Json): Json {
  const forms = schema.anyOf as Json[] | undefined;
  return forms?.find(({ type }) => type === "array") ?? schema;
}

function requestBody(endpoint: Endpoint): Json {
  const { body, coreBody, bodyStream, example } = endpoint;
  const types = bodyTypesOf(endpoint);
  if (bodyStream !== undefined) {
    const media = types.map((type, i) => [
      type,
      { schema: { type: "string" }, ...(i === 0 && { example }) },
    ]);
    return { requestBody: { required: true, content: Object.fromEntries(media) } };
  }
  const schema = body ?? coreBody;
  if (schema === undefined) return {};
  const media = { schema: reference(schema), ...(example !== undefined && { example }) };
  return {
    requestBody: {
      required: true,
      content: Object.fromEntries(types.map((type) => [type, media])),
    },
  };
}

function success(endpoint: Endpoint, components: Json): Json {
  const { success } = endpoint;
  const { description, schemas, mediaType = "application/json", stream, text } = success;
  const headers = { ...(takesIdempotencyKey(endpoint) && REPLAYED), ...success.headers };
  const [only, ...others] = (schemas ?? []).map(reference);
  const schema =
    others.length > 0
      ? { anyOf: [only, ...others] }
      : (only ?? { type: "string", format: "binary" });
  return {
    description,
    headers: headerFields({ ...COMMON_HEADERS, ...headers }),
    content: {
      [mediaType]: { schema, ...(only && { example: exampleOf(only, components) }) },
      ...(text && { "text/plain": { schema: { type: "string", const: text } } }),
      ...(stream && { "text/event-stream": { schema: { type: "string", description: stream } } }),
    },
  };
}

function unchanged({ unchanged: description, headers = {} }: Endpoint["success"]): Json {
  if (description === undefined) return {};
  return {
    304: { description, headers: headerFields({ ...COMMON_HEADERS, ...headers }), content: {} },
  };
}

function failure(status: number, codes: readonly Code[], isOAuth: boolean): Json {
  const schema = {
    allOf: [
      reference(isOAuth ? oauthError : problemDocument),
      { properties: { code: { enum: codes } } },
    ],
  };
  return {
    description: codes.map((code) => `\`${code}\`: ${meaningOf(code)}`).join("\n\n"),
    headers: headerFields({ ...COMMON_HEADERS, ...RETRY_HEADERS[status] }),
    content: { [isOAuth ? "application/json" : "application/problem+json"]: { schema } },
  };
}

const IDEMPOTENCY_KEY = {
  "Idempotency-Key":
    "At most 255 printable ASCII characters. The first answer is kept for 24 hours and given again to the same request.",
};
const REPLAYED = {
  "Idempotency-Replayed": "`true` when an earlier request of the same key gave this answer.",
};

const COMMON_HEADERS = {
  "X-Request-Id": "The request's id: yours when it was safe, else a UUIDv7.",
};

const RETRY_HEADERS: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  429: { "Retry-After": "Seconds." },
  503: { "Retry-After": "Seconds; absent where nobody knows when the cause ends." },
};

function headerFields(names: Readonly<Record<string, string>>): Json {
  return Object.fromEntries(
    Object.entries(names).map(([name, description]) => [
      name,
      { description, schema: { type: "string" } },
    ]),
  );
}

function reference(schema: z.ZodType): Json {
  const id = (requestComponents.get(schema) ?? responseComponents.get(schema))?.id;
  if (id === undefined) throw new TypeError("A body's schema must be a named component.");
  return { $ref: SCHEMAS + id };
}

/** An event of a type unknown to this version. */
const OTHER_EVENT: Json = {
  type: "object",
  properties: {
    sequence: { type: "integer" },
    type: { type: "string", not: { enum: EVENT_TYPES } },
    createdAt: { type: "string", format: "date-time" },
    data: { type: "object", additionalProperties: true },
  },
  required: ["sequence", "type", "createdAt", "data"],
};

// `anyOf`, because linters reject `oneOf` with an open form. Its `not` keeps the forms apart.
function components(): Json {
  const uri = (id: string) => SCHEMAS + id;
  const requests = z.toJSONSchema(requestComponents, { io: "input", uri, override }).schemas;
  const responses = z.toJSONSchema(responseComponents, { io: "output", uri, override }).schemas;
  const all = { ...requests, ...(open(responses) as Record<string, Json>) };
  const known = all.Event?.oneOf as Json[];
  const sorted = Object.entries({ ...all, Event: { anyOf: [...known, OTHER_EVENT] } }).sort(
    ([a], [b]) => (a < b ? -1 : 1),
  );
  return Object.fromEntries(sorted.map(([id, schema]) => [id, strip(schema)]));
}

/**
 * Opens the schema of an answer, because later versions add fields and types of event. Requests
 * stay strict.
 */
function open(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(open);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).filter(
    ([name, value]) => name !== "additionalProperties" || value !== false,
  );
  return Object.fromEntries(entries.map(([name, value]) => [name, open(value)]));
}

/**
 * Replaces zod's long patterns by formats, and the text of numbers and booleans in a query by their
 * types.
 */
function override({ jsonSchema }: { jsonSchema: Json }): void {
  if (jsonSchema.format !== undefined || jsonSchema.type === "integer") delete jsonSchema.pattern;
  if (jsonSchema.type === "boolean") delete jsonSchema.enum;
}

function strip({ $schema: _schema, $id: _id, ...schema }: Json): Json {
  return schema;
}

const ID = "01a1fd1b-bfbe-7246-add7-f4566c613096";
const TOKEN = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9…";

/** Values by field, as of a new mint of a mintable asset. */
const BY_NAME: Readonly<Record<string, unknown>> = {
  transactionId: `${ID}.0`,
  mintId: ID,
  userIndex: 0,
  mintIndex: 0,
  keyId: "5e5e01a1fd1bbf5c",
  vaultId: "1048578",
  batchId: "validium-1",
  slot: 2,
  leftOut: [],
  refusal: "The token is paused.",
  action: "keyIssued",
  detail: "Shop",
  siblings: [`0x${"cd".repeat(32)}`],
  vaultCount: 3,
  deadline: "1893456000",
  withdrawnBalance: "0",
  transferredBalance: "0",
  withdrawn: "0",
  withdrawnBefore: "0",
  reference: "order-4711",
  name: "Gold",
  symbol: "GOLD",
  decimals: 18,
  // One unit of it.
  amountDecimal: "0.000000000000000001",
  contract: `0x${"70".repeat(20)}`,
  limit: 50,
  url: "https://example.com/hook",
  types: ["mint.accepted"],
  secret: "whsec_…",
  durationMs: 48,
  openapi: "3.1.1",
  usersPerRequest: 100,
  mintsPerRequest: 10_000,
  bodyBytes: 10_265_600,
  pageEntries: 100,
  requestTimeoutSeconds: 30,
  streamsPerKey: 10,
  idempotencyKeyCharacters: 255,
  heldBytesPerKey: 134_217_728,
  units: 1000,
  access_token: TOKEN,
  token: TOKEN,
  expires_in: 3600,
  scope: "read mint",
  version: "1.0.0",
  message: "example.com wants you to sign in with your Ethereum account: …",
};

const TRUE = new Set(["whitelisted", "enabled", "registered", "mintable", "mintingAvailable"]);

const BY_FORMAT: Readonly<Record<string, string>> = {
  uuid: ID,
  "date-time": "2026-11-21T07:56:56.638Z",
};

/** Values for patterns. The first match is taken. */
const BY_PATTERN = ["1", "0x", `0x${"70".repeat(20)}`, `0x${"ab".repeat(32)}`];

/** An example of a schema of the document. `components` are its named schemas. */
function exampleOf(schema: Json, components: Json, name = ""): unknown {
  const inner = (part: unknown, field = name) => exampleOf(part as Json, components, field);
  const {
    $ref,
    const: only,
    enum: values,
    type,
    format,
    pattern,
    properties,
    items,
    examples,
  } = schema;
  if (Array.isArray(examples)) return examples[0];
  if ($ref !== undefined)
    return inner(components[String($ref).slice(String($ref).lastIndexOf("/") + 1)]);
  if (only !== undefined) return only;
  if (Array.isArray(values)) return values[0];
  if (type === "object") {
    const fields = Object.entries((properties ?? {}) as Json);
    return Object.fromEntries(fields.map(([field, value]) => [field, inner(value, field)]));
  }
  if (name in BY_NAME) return BY_NAME[name];
  // Nullable fields are null: the example has not reached L1, and has not failed.
  const forms = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(forms))
    return forms.some((form: Json) => form.type === "null") ? null : inner(forms[0]);
  if (Array.isArray(type) && type.includes("null")) return null;
  if (type === "array") return [inner(items)];
  if (type === "boolean") return TRUE.has(name);
  if (type === "integer" || type === "number") return 1;
  if (typeof format === "string") return BY_FORMAT[format];
  if (typeof pattern === "string") return BY_PATTERN.find((text) => new RegExp(pattern).test(text));
  return "…";
}
