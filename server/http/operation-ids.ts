import type { Endpoint } from "./endpoint.ts";

/** Verbs of methods, for the last noun of a path. */
const VERBS: Readonly<Record<string, string>> = { GET: "get", POST: "create", PUT: "enable", DELETE: "delete" };

/** Ids of operations that need a better one than their method and path make. */
const NAMES: Readonly<Record<string, string>> = {
  "POST /api/v1/mint": "mint",
  "POST /api/mint": "mintByAlias",
  "POST /api/v1/users/bulk": "createUsers",
  "PUT /api/v1/application/defaults": "setApplicationDefaults",
  "PUT /api/v1/assets/{assetId}/enablement": "enableAsset",
  "DELETE /api/v1/assets/{assetId}/enablement": "disableAsset",
  "PUT /api/v1/assets/{assetId}/tokens/{tokenId}/metadata": "setTokenMetadata",
  "GET /api/v1/assets/{assetId}/tokens/{tokenId}/metadata": "getTokenMetadata",
  "POST /api/v1/assets/{assetId}/metadata": "setMetadataOfTokens",
  "PUT /api/v1/assets/{assetId}/metadata/frozen": "freezeMetadataOfTokens",
  "PUT /api/v1/assets/{assetId}/collection": "changeCollection",
  "GET /api/v1/assets/{assetId}/collection": "getCollection",
  "PUT /api/v1/assets/{assetId}/collection/frozen": "freezeCollection",
  "GET /public/v1/vaults/{vaultId}/metadata": "getPublicVaultMetadata",
  "GET /public/v1/metadata/{assetId}": "getPublicContractMetadata",
  "GET /public/v1/metadata/{assetId}/{tokenId}": "getPublicTokenMetadata",
  "POST /api/v1/claims": "createClaimLinks",
  "GET /api/v1/claims": "listClaimLinks",
  "GET /api/v1/claims/{linkAddress}": "getClaimLink",
  "DELETE /api/v1/claims/{linkAddress}": "cancelClaimLink",
  "GET /public/v1/claims/{linkAddress}": "getPublicClaimLink",
  "POST /public/v1/claims/{linkAddress}": "takeClaimLink",
  "PUT /api/v1/webhooks/{webhookId}/enablement": "enableWebhook",
  "POST /api/v1/webhooks/{webhookId}/secret": "rotateWebhookSecret",
  "POST /api/v1/webhooks/{webhookId}/test": "testWebhook",
  "POST /api/v1/webhooks/{webhookId}/deliveries/{sequence}/redeliver": "redeliverEvent",
  "POST /api/v1/withdrawals/prepare": "prepareWithdrawals",
  "POST /owner/v1/withdrawals/prepare": "prepareOwnersWithdrawals",
  "POST /owner/v1/withdrawals": "createOwnersWithdrawals",
  "GET /owner/v1/withdrawals": "listOwnersWithdrawals",
  "POST /console/v1/challenge": "createMemberChallenge",
  "POST /console/v1/session": "createMemberSession",
  "GET /console/v1/session": "getMemberSession",
  "DELETE /console/v1/session": "deleteMemberSession",
  "PUT /console/v1/session/wallet": "setMemberWallet",
  "GET /console/v1/operations": "getOperations",
  "PUT /console/v1/applications/{applicationId}/suspension": "suspendApplication",
  "DELETE /console/v1/applications/{applicationId}/suspension": "resumeApplication",
  "POST /console/v1/keys/{keyId}/rotation": "rotateKey",
  "PUT /console/v1/members/{memberId}/role": "setMemberRole",
  "GET /console/v1/audit": "listAuditEntries",
  "POST /owner/v1/challenge": "createSignInChallenge",
  "POST /owner/v1/session": "createOwnerSession",
  "GET /owner/v1/vaults/{vaultId}/exit-kit": "getExitKit",
  "POST /oauth/token": "createAccessToken",
  "GET /healthz": "getHealth",
  "GET /readyz": "getReadiness",
  "GET /openapi.json": "getOpenApiDocument",
};

/** Singular nouns that end in `s`. */
const SINGULAR = new Set(["limits"]);

/** Names an operation for people and for generated clients, such as `listUsers` and `getUserBalances`. */
export function operationIdOf({ method, path }: Pick<Endpoint, "method" | "path">): string {
  const named = NAMES[`${method} ${path}`];
  if (named !== undefined) return named;
  const parts = path.split("/").filter((part) => part !== "" && part !== "api" && part !== "v1");
  const words = parts.flatMap((part, i) => {
    if (part.startsWith("{")) return [];
    // An id after a plural noun means one object.
    return [parts[i + 1]?.startsWith("{") ? one(part) : part];
  });
  const last = parts.at(-1) ?? "";
  const lists = method === "GET" && last.endsWith("s") && !SINGULAR.has(last);
  if (method === "POST") words.push(one(words.pop() ?? ""));
  return [lists ? "list" : VERBS[method], ...words.map(capitalised)].join("");
}

function one(noun: string): string {
  return noun.endsWith("ches") ? noun.slice(0, -2) : noun.replace(/s$/, "");
}

function capitalised(word: string): string {
  return word
    .split("-")
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join("");
}
