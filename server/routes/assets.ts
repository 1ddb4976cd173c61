import { z } from "zod";
import { MINTING_BLOB_SCHEMES, STANDARDS, type Standard } from "../../core/index.ts";
import { type Endpoint, endpoint, json, paged } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";

export const asset = s.responseComponent("Asset", {
  assetId: s.outUuid,
  standard: s.standard,
  assetType: s.outHash.describe("StarkEx asset type."),
  chainId: s.outDecimal,
  contractAddress: s.outAddress,
  ...s.outToken,
  mintingBlobScheme: z.enum(MINTING_BLOB_SCHEMES),
  rawMintingBlobs: z
    .boolean()
    .describe("Whether minting blobs can be any bytes; otherwise each is text."),
  dataAvailabilityMode: s.mode
    .nullable()
    .describe("The mode of its mints without one; null: the application's, if it has one."),
  nextTokenId: s.outDecimal
    .nullable()
    .describe(
      "The id that the engine gives next to a mint by `quantity`; null where mints name their ids.",
    ),
  supplyCap: s.outDecimal.nullable(),
  minted: s.outDecimal,
  whitelisted: z.boolean(),
  enabled: z.boolean().describe("For the requesting application."),
  registered: z.boolean().describe("Whether the settlement contract's registry on L1 has it."),
  minterLocked: z
    .boolean()
    .nullable()
    .describe("Whether the token's minter role can never be revoked; null before L1 was asked."),
  transferable: z
    .boolean()
    .nullable()
    .describe(
      "Whether owners can transfer and redeem vaults of it before a withdrawal; null before L1 was asked.",
    ),
  mintable: z.boolean(),
  mintingAvailable: z.boolean().describe("Whether a mint would be accepted now."),
  unavailableReason: z.string().nullable(),
});

const assetTypes = [...STANDARDS, ...STANDARDS.map((name) => `mintable-${name}` as const)];
const assetType = s.spelling(assetTypes);
type AssetType = z.output<typeof assetType>;

const assetQuery = z.strictObject({
  assetType: z
    .union([assetType, z.array(assetType)], `Give one or more of ${assetTypes.join(", ")}.`)
    .transform((given) => (typeof given === "string" ? [given] : given))
    .optional()
    .describe("Repeat it for several."),
  mintable: s.flag.optional(),
  enabled: s.flag.optional(),
  symbol: z.string().min(1).max(64).optional(),
  ...s.page,
});

/**
 * The standards of an `assetType` filter. Every asset here is mintable, so `mintable-erc20` equals
 * `erc20`.
 */
function standardsOf(types: readonly AssetType[]): readonly Standard[] {
  return STANDARDS.filter((name) => types.includes(name) || types.includes(`mintable-${name}`));
}

const oneAsset = json(200, "The asset.", asset);

export const assetEndpoints: readonly Endpoint[] = [
  endpoint("Assets", "read", "GET /api/v1/assets", "listAssets", {
    summary: "The operator's assets, as shown to the application",
    ...paged("AssetPage", asset),
    query: assetQuery,
    async handle({ engine, applicationId, query: { assetType, ...rest } }) {
      const filter = assetType === undefined ? rest : { ...rest, standard: standardsOf(assetType) };
      return await engine.assets.list(applicationId, filter);
    },
  }),
  endpoint("Assets", "read", "GET /api/v1/assets/{assetId}", "getAsset", {
    summary: "One asset",
    success: oneAsset,
    handle: ({ engine, applicationId, params }) => engine.assets.get(applicationId, params.assetId),
  }),
  endpoint("Assets", "assets", "PUT /api/v1/assets/{assetId}/enablement", "enableAsset", {
    summary: "Enable an asset for the application",
    success: oneAsset,
    errors: ["asset_not_whitelisted"],
    handle: ({ engine, applicationId, params }) =>
      engine.assets.enable(applicationId, params.assetId),
  }),
  endpoint("Assets", "assets", "DELETE /api/v1/assets/{assetId}/enablement", "disableAsset", {
    summary: "Disable an asset for the application",
    description: "Minted tokens stay; only new mints are refused.",
    success: oneAsset,
    handle: ({ engine, applicationId, params }) =>
      engine.assets.disable(applicationId, params.assetId),
  }),
];
