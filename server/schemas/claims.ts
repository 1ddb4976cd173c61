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

export const claimParams = z.strictObject({ linkAddress: address });
export const claimQuery = z.strictObject(page);

export const claimsBody = requestComponent(
  "ClaimLinks",
  z.strictObject({
    claims: z
      .array(
        z.strictObject({
          linkAddress: address.meta({ description: "The address of the link's key, which you make and keep." }),
          mint: mintEntry,
          expiresAt: instant.nullable().optional().meta({ description: "RFC 3339 with zone; null or absent: never." }),
        }),
      )
      .min(1)
      .max(MAX_NEW_CLAIMS),
  }),
);

export const takeBody = requestComponent(
  "TakenClaim",
  z.strictObject({
    ownerAddress: address.meta({ description: "Who gets the mint." }),
    signature: hexUpTo(65).meta({ description: "By the link's key, over the EIP-712 message `Claim(link, owner)`." }),
  }),
);

const status = z.enum(["open", "claimed", "cancelled", "expired"]);
const common = {
  linkAddress: outAddress,
  status,
  expiresAt: outTime.nullable(),
  ownerAddress: outAddress.nullable().meta({ description: "Who has claimed it." }),
};

export const claim = responseComponent(
  "ClaimLink",
  z.strictObject({
    ...common,
    mint: z.record(z.string(), z.unknown()).meta({ description: "As it was given." }),
    signature: outHex.nullable().meta({ description: "Of the link's key, over the owner." }),
    mintId: outUuid.nullable(),
    createdAt: outTime,
    decidedAt: outTime.nullable().meta({ description: "When it was claimed or cancelled." }),
  }),
);
export const claimPage = responseComponent("ClaimLinkPage", pageOf(claim));
export const claimList = responseComponent("ClaimLinkList", z.strictObject({ data: z.array(claim) }));

/** What anyone with a link needs to claim it. */
export const publicClaim = responseComponent(
  "PublicClaimLink",
  z.strictObject({
    ...common,
    asset: z.strictObject({ assetId: outUuid, standard, name: z.string(), symbol: z.string() }),
    tokenId: outDecimal.nullable().meta({ description: "null where the engine gives the id, and for ERC-20." }),
    amount: z.string().nullable().meta({ description: "Of an ERC-20 or ERC-1155, in decimals of the token." }),
    quantity: z.int().nullable().meta({ description: "Tokens with ids that the engine gives." }),
    settlement: z
      .strictObject({ chainId: outDecimal, contract: outAddress })
      .meta({ description: "Domain of the message to sign." }),
  }),
);

export const takenClaim = responseComponent(
  "TakenClaimLink",
  z.strictObject({
    linkAddress: outAddress,
    ownerAddress: outAddress,
    mintId: outUuid,
    vaults: z.array(z.strictObject({ vaultId: outDecimal, assetId: outUuid, tokenId: outDecimal.nullable() })),
  }),
);
