import { z } from "zod";
import { MAX_NEW_CLAIMS } from "../../core/index.ts";
import * as s from "./common.ts";
import { mintEntry } from "./mint.ts";
export const claimQuery = z.strictObject(s.page);

export const claimsBody = s.requestComponent("ClaimLinks", {
  claims: z
    .array(
      z.strictObject({
        linkAddress: s.address.describe("The address of the link's key, which you make and keep."),
        mint: mintEntry,
        expiresAt: s.instant.nullish().describe("RFC 3339 with zone; null or absent: never."),
      }),
    )
    .min(1)
    .max(MAX_NEW_CLAIMS),
});

export const takeBody = s.requestComponent("TakenClaim", {
  ownerAddress: s.address.describe("Who gets the mint."),
  signature: s.hexUpTo(65).describe("By the link's key, over the EIP-712 message `Claim(link, owner)`."),
});

const status = z.enum(["open", "claimed", "cancelled", "expired"]);
const common = {
  linkAddress: s.outAddress,
  status,
  expiresAt: s.outTime.nullable(),
  ownerAddress: s.outAddress.nullable().describe("Who has claimed it."),
};

export const claim = s.responseComponent("ClaimLink", {
  ...common,
  mint: z.record(z.string(), z.unknown()).describe("As it was given."),
  signature: s.outHex.nullable().describe("Of the link's key, over the owner."),
  mintId: s.outUuid.nullable(),
  createdAt: s.outTime,
  decidedAt: s.outTime.nullable().describe("When it was claimed or cancelled."),
});
export const claimPage = s.responseComponent("ClaimLinkPage", s.pageOf(claim));
export const claimList = s.responseComponent("ClaimLinkList", { data: z.array(claim) });

/** What anyone with a link needs to claim it. */
export const publicClaim = s.responseComponent("PublicClaimLink", {
  ...common,
  asset: z.strictObject({ assetId: s.outUuid, standard: s.standard, name: z.string(), symbol: z.string() }),
  tokenId: s.outDecimal.nullable().describe("null where the engine gives the id, and for ERC-20."),
  amount: z.string().nullable().describe("Of an ERC-20 or ERC-1155, in decimals of the token."),
  quantity: z.int().nullable().describe("Tokens with ids that the engine gives."),
  settlement: z
    .strictObject({ chainId: s.outDecimal, contract: s.outAddress })
    .describe("Domain of the message to sign."),
});

export const takenClaim = s.responseComponent("TakenClaimLink", {
  linkAddress: s.outAddress,
  ownerAddress: s.outAddress,
  mintId: s.outUuid,
  vaults: z.array(z.strictObject({ vaultId: s.outDecimal, assetId: s.outUuid, tokenId: s.outDecimal.nullable() })),
});
