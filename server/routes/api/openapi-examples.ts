type Json = Record<string, unknown>;

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
  mintingBlob: "0x",
  reference: "order-4711",
  name: "Gold",
  symbol: "GOLD",
  decimals: 18,
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

const BY_FORMAT: Readonly<Record<string, string>> = { uuid: ID, "date-time": "2026-11-21T07:56:56.638Z" };

/** Values for patterns. The first match is taken. */
const BY_PATTERN = ["1", "0x", `0x${"70".repeat(20)}`, `0x${"ab".repeat(32)}`];

/** An example of a schema of the document. `components` are its named schemas. */
export function exampleOf(schema: Json, components: Json, name = ""): unknown {
  const inner = (part: unknown, field = name) => exampleOf(part as Json, components, field);
  const { $ref, const: only, enum: values, type, format, pattern, properties, items, examples } = schema;
  if (Array.isArray(examples)) return examples[0];
  if ($ref !== undefined) return inner(components[String($ref).slice(String($ref).lastIndexOf("/") + 1)]);
  if (only !== undefined) return only;
  if (Array.isArray(values)) return values[0];
  if (type === "object") {
    const fields = Object.entries((properties ?? {}) as Json);
    return Object.fromEntries(fields.map(([field, value]) => [field, inner(value, field)]));
  }
  if (name in BY_NAME) return BY_NAME[name];
  // Nullable fields are null: the example has not reached L1, and has not failed.
  const forms = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(forms)) return forms.some((form: Json) => form.type === "null") ? null : inner(forms[0]);
  if (Array.isArray(type) && type.includes("null")) return null;
  if (type === "array") return [inner(items)];
  if (type === "boolean") return TRUE.has(name);
  if (type === "integer" || type === "number") return 1;
  if (typeof format === "string") return BY_FORMAT[format];
  if (typeof pattern === "string") return BY_PATTERN.find((text) => new RegExp(pattern).test(text));
  return "…";
}
