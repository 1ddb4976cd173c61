import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { MAX_METADATA_TOKENS, type ServedMetadata } from "../../core/index.ts";
import { sendTag, tagOf } from "../http/etag.ts";
import { type Endpoint, endpoint, entriesOf, json } from "./api/endpoint.ts";
import {
  outDecimal,
  outTime,
  requestComponent,
  responseComponent,
  tokenId,
  uuid,
} from "./api/fields.ts";

const ADDRESS = "https://|ipfs://|ar://";

/** Text that may be empty, and else begins like this. The core checks the rest of it. */
function startingWith(scheme: string) {
  return z
    .string()
    .meta({ pattern: `^(?:(?:${scheme})\\S+)?$` })
    .nullish();
}

/** JSON of a token or a contract. The core checks it. */
export const metadataJson = requestComponent(
  "Metadata",
  z
    .looseObject({
      name: z.string().max(200).nullish(),
      description: z.string().max(4_000).nullish(),
      image: startingWith(`${ADDRESS}|data:image/`).describe(
        "An `https://`, `ipfs://` or `ar://` address, or a `data:` image in base64: PNG, JPEG, GIF, WebP or AVIF.",
      ),
      external_url: startingWith("https://").describe("An `https://` address."),
      animation_url: startingWith(ADDRESS).describe("An `https://`, `ipfs://` or `ar://` address."),
      attributes: z
        .array(
          z.looseObject({
            trait_type: z.string().optional(),
            value: z.union([z.string(), z.number(), z.boolean()]),
          }),
        )
        .max(100)
        .nullish(),
    })
    .describe(
      "Metadata in the form of ERC-721 or ERC-1155, at most 8,192 bytes, six levels and 1,000 values. Other fields pass unchanged. Known ones that are null, an empty text or an empty list are as if absent.",
    ),
);

const outJson = z.record(z.string(), z.unknown());

const tokenMetadata = responseComponent("TokenMetadata", {
  tokenId: outDecimal,
  metadata: outJson.describe("As it was set."),
  frozen: z.boolean().describe("Whether it never changes again."),
  hidden: z.boolean().describe("Whether the asset's placeholder is served in its place."),
  updatedAt: outTime,
});

const collection = responseComponent("Collection", {
  contractMetadata: outJson
    .nullable()
    .describe("The contract's metadata (ERC-7572); null for name and symbol only."),
  placeholder: outJson
    .nullable()
    .describe("Served as the metadata of every token until the reveal; null for none."),
  frozen: z.boolean().describe("Whether no token's metadata can change."),
  updatedAt: outTime,
});

/**
 * A token's id as `tokenURI` ends with it, or as clients of ERC-1155 put it in the place of `{id}`.
 */
const servedParams = z.strictObject({
  assetId: uuid,
  tokenId: z
    .string()
    .regex(
      /^[0-9a-fA-F]{1,78}(?:\.json)?$/,
      "Give the token's id, in decimal digits or as 64 hex digits.",
    )
    .transform((text) => text.replace(/\.json$/, "")),
});

const tokens = z
  .array(z.strictObject({ tokenId, metadata: metadataJson }))
  .min(1)
  .max(MAX_METADATA_TOKENS);
const bulkResult = responseComponent("MetadataListResult", { tokens: z.int() });

const freezeBody = requestComponent("MetadataFreeze", {
  tokenIds: z.array(tokenId).min(1).max(MAX_METADATA_TOKENS),
});

const collectionBody = requestComponent("CollectionChange", {
  contractMetadata: metadataJson
    .nullish()
    .describe("The contract's metadata (ERC-7572); null removes it."),
  placeholder: metadataJson.nullish().describe("Hides every token behind this; null reveals them."),
});

const ASSET = "/api/v1/assets/{assetId}";
/** A change is seen within this time, whatever stands between. */
const FRESH = "public, max-age=60";
const FOR_EVER = "public, max-age=31536000, immutable";
const asToken = json(200, "The metadata.", tokenMetadata);
const asCollection = json(200, "The asset's metadata.", collection);
const served = {
  headers: { "If-None-Match": "The `ETag` of an earlier response." },
  success: {
    ...json(
      200,
      "JSON for wallets and marketplaces, to be read from any page.",
      responseComponent("ServedMetadata", z.record(z.string(), z.unknown())),
    ),
    headers: {
      ETag: "Identifies this version.",
      "Cache-Control": "For ever when it is frozen, else a minute.",
    },
    unchanged: "`If-None-Match` names the present version.",
  },
} as const;

export const metadataEndpoints: readonly Endpoint[] = [
  endpoint("Metadata", "mint", `PUT ${ASSET}/tokens/{tokenId}/metadata`, "setTokenMetadata", {
    summary: "Set the metadata of a token, minted or not",
    description:
      "Public at once, unless the asset has a placeholder. The asset must be reserved for the application.",
    coreBody: metadataJson,
    example: {
      name: "Card 7",
      image: "https://cards.example/7.png",
      attributes: [{ trait_type: "Suit", value: "red" }],
    },
    success: asToken,
    errors: ["asset_shared", "metadata_frozen"],
    async handle({ engine, applicationId, params: { assetId, tokenId }, body }) {
      await engine.metadata.set(applicationId, assetId, { tokenId, metadata: body });
      return await engine.metadata.get(applicationId, assetId, tokenId);
    },
  }),
  endpoint("Metadata", "read", `GET ${ASSET}/tokens/{tokenId}/metadata`, "getTokenMetadata", {
    summary: "The metadata of a token, also while a placeholder hides it",
    success: asToken,
    errors: ["asset_shared", "metadata_not_found"],
    handle: ({ engine, applicationId, params }) =>
      engine.metadata.get(applicationId, params.assetId, params.tokenId),
  }),
  endpoint("Metadata", "mint", `POST ${ASSET}/metadata`, "setMetadataOfTokens", {
    summary: "Set the metadata of up to 1,000 tokens, all or none",
    body: requestComponent("MetadataList", { tokens }),
    example: { tokens: [{ tokenId: "7", metadata: { name: "Card 7" } }] },
    cost: entriesOf("tokens"),
    success: json(200, "All are set.", bulkResult),
    errors: ["asset_shared", "metadata_frozen"],
    async handle({ engine, applicationId, params: { assetId }, body: { tokens } }) {
      await engine.metadata.setAll(
        applicationId,
        assetId,
        tokens as Parameters<typeof engine.metadata.setAll>[2],
      );
      return { tokens: tokens.length };
    },
  }),
  endpoint("Metadata", "assets", `PUT ${ASSET}/metadata/frozen`, "freezeMetadataOfTokens", {
    summary: "Freeze the metadata of up to 1,000 tokens for ever",
    body: freezeBody,
    example: { tokenIds: ["7"] },
    success: json(200, "All are frozen.", bulkResult),
    errors: ["asset_shared", "metadata_not_found", "metadata_hidden", "metadata_frozen"],
    async handle({ engine, applicationId, params: { assetId }, body: { tokenIds } }) {
      await engine.metadata.freezeTokens(applicationId, assetId, tokenIds);
      return { tokens: tokenIds.length };
    },
  }),
  endpoint("Metadata", "read", `GET ${ASSET}/collection`, "getCollection", {
    summary: "The metadata of an asset as a whole",
    success: asCollection,
    handle: ({ engine, applicationId, params }) =>
      engine.metadata.getCollection(applicationId, params.assetId),
  }),
  endpoint("Metadata", "assets", `PUT ${ASSET}/collection`, "changeCollection", {
    summary: "Set the contract's metadata, hide all tokens behind a placeholder, or reveal them",
    description: "Fields that are absent stay as they are.",
    body: collectionBody,
    example: {
      contractMetadata: { name: "Cards", image: "https://cards.example/all.png" },
      placeholder: null,
    },
    success: asCollection,
    errors: ["asset_shared", "metadata_frozen"],
    handle: ({ engine, applicationId, params: { assetId }, body }) =>
      engine.metadata.changeCollection(applicationId, assetId, body),
  }),
  endpoint("Metadata", "assets", `PUT ${ASSET}/collection/frozen`, "freezeCollection", {
    summary: "Freeze the metadata of all tokens for ever, of tokens to come too",
    description: "A placeholder can still be removed, and none can be set.",
    success: asCollection,
    errors: ["asset_shared"],
    handle: ({ engine, applicationId, params }) =>
      engine.metadata.freeze(applicationId, params.assetId),
  }),
  endpoint(
    "Metadata",
    "public",
    "GET /public/v1/vaults/{vaultId}/metadata",
    "getPublicVaultMetadata",
    {
      ...served,
      summary: "The metadata of the token in a vault, or of its contract if it has none",
      description:
        "That of an ERC-20 has `decimals` and `quantum`, the base units in one unit of the vault's amount.",
      errors: ["vault_void", "proof_not_ready", "asset_not_found"],
      async handle({ engine, params, request, reply }) {
        const vault = await engine.proofs.content(params.vaultId);
        return send(await engine.metadata.servedVault(vault), request, reply);
      },
    },
  ),
  endpoint("Metadata", "public", "GET /public/v1/metadata/{assetId}", "getPublicContractMetadata", {
    ...served,
    summary: "The metadata of a contract, for `contractURI` (ERC-7572)",
    handle: async ({ engine, params: { assetId }, request, reply }) =>
      send(await engine.metadata.servedContract(assetId), request, reply),
  }),
  endpoint(
    "Metadata",
    "public",
    "GET /public/v1/metadata/{assetId}/{tokenId}",
    "getPublicTokenMetadata",
    {
      ...served,
      summary: "The metadata of a token, for `tokenURI` (ERC-721) and `uri` (ERC-1155)",
      description:
        "Takes the id in decimal digits. Of an ERC-1155 asset it takes 64 hex digits too, as clients write `{id}`.",
      params: servedParams,
      errors: ["metadata_not_found"],
      handle: async ({ engine, params: { assetId, tokenId }, request, reply }) =>
        send(await engine.metadata.served(assetId, tokenId), request, reply),
    },
  ),
];

/** Any page may read it: marketplaces do so in the browser. */
function send({ json, final }: ServedMetadata, request: FastifyRequest, reply: FastifyReply) {
  reply.headers({
    "access-control-allow-origin": "*",
    "cache-control": final ? FOR_EVER : FRESH,
    "cross-origin-resource-policy": "cross-origin",
  });
  if (sendTag(request, reply, tagOf(json))) return reply.send();
  reply.type("application/json; charset=utf-8");
  return json;
}
