import { z } from "zod";
import { MAX_NEW_CLAIMS } from "../../core/index.ts";
import {
  address,
  hexUpTo,
  instant,
  outAddress,
  outDecimal,
  outHex,
  outTime,
  outUuid,
  page,
  pageOf,
  requestComponent,
  responseComponent,
  standard,
} from "./common.ts";
import { mintEntry } from "./mint.ts";
export const claimQuery = z.strictObject(page);

export const claimsBody = requestComponent("ClaimLinks", {
  claims: z
    .array(
      z.strictObject({
        linkAddress: address.describe("The address of the link's key, which you make and keep."),
        mint: mintEntry,
        expiresAt: instant.nullable().optional().describe("RFC 3339 with zone; null or absent: never."),
      }),
    )
    .min(1)
    .max(MAX_NEW_CLAIMS),
});

export const takeBody = requestComponent("TakenClaim", {
  ownerAddress: address.describe("Who gets the mint."),
  signature: hexUpTo(65).describe("By the link's key, over the EIP-712 message `Claim(link, owner)`."),
});

const status = z.enum(["open", "claimed", "cancelled", "expired"]);
const common = {
  linkAddress: outAddress,
  status,
  expiresAt: outTime.nullable(),
  ownerAddress: outAddress.nullable().describe("Who has claimed it."),
};

export const claim = responseComponent("ClaimLink", {
  ...common,
  mint: z.record(z.string(), z.unknown()).describe("As it was given."),
  signature: outHex.nullable().describe("Of the link's key, over the owner."),
  mintId: outUuid.nullable(),
  createdAt: outTime,
  decidedAt: outTime.nullable().describe("When it was claimed or cancelled."),
});
export const claimPage = responseComponent("ClaimLinkPage", pageOf(claim));
export const claimList = responseComponent("ClaimLinkList", { data: z.array(claim) });

/** What anyone with a link needs to claim it. */
export const publicClaim = responseComponent("PublicClaimLink", {
  ...common,
  asset: z.strictObject({ assetId: outUuid, standard, name: z.string(), symbol: z.string() }),
  tokenId: outDecimal.nullable().describe("null where the engine gives the id, and for ERC-20."),
  amount: z.string().nullable().describe("Of an ERC-20 or ERC-1155, in decimals of the token."),
  quantity: z.int().nullable().describe("Tokens with ids that the engine gives."),
  settlement: z.strictObject({ chainId: outDecimal, contract: outAddress }).describe("Domain of the message to sign."),
});

export const takenClaim = responseComponent("TakenClaimLink", {
  linkAddress: outAddress,
  ownerAddress: outAddress,
  mintId: outUuid,
  vaults: z.array(z.strictObject({ vaultId: outDecimal, assetId: outUuid, tokenId: outDecimal.nullable() })),
});
