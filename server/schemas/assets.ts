import { z } from "zod";
import { BLOB_SCHEMES, STANDARDS, type Standard } from "../../core/index.ts";
import * as s from "./common.ts";

export const asset = s.responseComponent("Asset", {
  assetId: s.outUuid,
  standard: s.standard,
  assetType: s.outHash.describe("StarkEx asset type."),
  chainId: s.outDecimal,
  contractAddress: s.outAddress,
  name: z.string(),
  symbol: z.string(),
  ...s.outUnits,
  blobScheme: z.enum(BLOB_SCHEMES),
  rawBlobs: z.boolean().describe("Whether minting blobs can be any bytes; otherwise each is text."),
  dataAvailabilityMode: s.mode
    .nullable()
    .describe("The mode of its mints without one; null: the application's, if it has one."),
  nextTokenId: s.outDecimal
    .nullable()
    .describe("The id that the engine gives next to a mint by `quantity`; null where mints name their ids."),
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
    .describe("Whether owners can transfer and redeem vaults of it before a withdrawal; null before L1 was asked."),
  mintable: z.boolean(),
  mintingAvailable: z.boolean().describe("Whether a mint would be accepted now."),
  unavailableReason: z.string().nullable(),
});
export const assetPage = s.responseComponent("AssetPage", s.pageOf(asset));

const assetTypes = [...STANDARDS, ...STANDARDS.map((name) => `mintable-${name}` as const)];
const assetType = s.spelling(assetTypes);
type AssetType = z.output<typeof assetType>;

export const assetQuery = z.strictObject({
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
 * The standards of an `assetType` filter. Every asset of this service is mintable, so `mintable-erc20` equals `erc20`.
 */
export function standardsOf(types: readonly AssetType[]): readonly Standard[] {
  return STANDARDS.filter((name) => types.includes(name) || types.includes(`mintable-${name}`));
}
