import { z } from "zod";
import { MAX_METADATA_TOKENS } from "../../core/index.ts";
import { outDecimal, outTime, requestComponent, responseComponent, tokenId, uuid } from "./common.ts";

/** JSON of a token or a contract. The core checks it. */
export const metadataJson = requestComponent(
  "Metadata",
  z
    .looseObject({
      name: z.string().max(200).optional(),
      description: z.string().max(4_000).optional(),
      image: z
        .string()
        .optional()
        .describe("An `https://` or `ipfs://` address, or a `data:` image in base64: PNG, JPEG, GIF, WebP or AVIF."),
      external_url: z.string().optional().describe("An `https://` address."),
      animation_url: z.string().optional().describe("An `https://` or `ipfs://` address."),
      attributes: z
        .array(
          z.looseObject({ trait_type: z.string().optional(), value: z.union([z.string(), z.number(), z.boolean()]) }),
        )
        .max(100)
        .optional(),
    })
    .describe(
      "Metadata in the form of ERC-721 or ERC-1155, at most 8,192 bytes, six levels and 1,000 values. Other fields pass unchanged.",
    ),
);

const outJson = z.record(z.string(), z.unknown());
export const servedMetadata = responseComponent("ServedMetadata", z.record(z.string(), z.unknown()));

export const tokenMetadata = responseComponent("TokenMetadata", {
  tokenId: outDecimal,
  metadata: outJson.describe("As it was set."),
  frozen: z.boolean().describe("Whether it never changes again."),
  hidden: z.boolean().describe("Whether the asset's placeholder is served in its place."),
  updatedAt: outTime,
});

export const collection = responseComponent("Collection", {
  contractMetadata: outJson.nullable().describe("The contract's metadata (ERC-7572); null for name and symbol only."),
  placeholder: outJson.nullable().describe("Served as the metadata of every token until the reveal; null for none."),
  frozen: z.boolean().describe("Whether no token's metadata can change."),
  updatedAt: outTime,
});

/** A token's id as `tokenURI` ends with it, or as clients of ERC-1155 put it in the place of `{id}`. */
export const servedParams = z.strictObject({
  assetId: uuid,
  tokenId: z
    .string()
    .regex(/^[0-9a-fA-F]{1,78}(?:\.json)?$/, "Give the token's id, in decimal digits or as 64 hex digits.")
    .transform((text) => text.replace(/\.json$/, "")),
});

const tokens = z
  .array(z.strictObject({ tokenId, metadata: z.unknown() }))
  .min(1)
  .max(MAX_METADATA_TOKENS);
export const bulkBody = requestComponent("MetadataList", { tokens });
export const bulkResult = responseComponent("MetadataListResult", { tokens: z.int() });

export const freezeBody = requestComponent("MetadataFreeze", {
  tokenIds: z.array(tokenId).min(1).max(MAX_METADATA_TOKENS),
});

export const collectionBody = requestComponent("CollectionChange", {
  contractMetadata: metadataJson.nullish().describe("The contract's metadata (ERC-7572); null removes it."),
  placeholder: metadataJson.nullish().describe("Hides every token behind this; null reveals them."),
});
