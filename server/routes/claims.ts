import { z } from "zod";
import { MAX_NEW_CLAIMS } from "../../core/index.ts";
import { type Endpoint, endpoint, entriesOf, json, paged } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import { mintEntry, mintErrors } from "./mint.ts";

const claimsBody = s.requestComponent("ClaimLinks", {
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

const takeBody = s.requestComponent("TakenClaim", {
  ownerAddress: s.address.describe("Who gets the mint."),
  signature: s
    .hexUpTo(65)
    .describe("The link's key signs the EIP-712 message `Claim(link, owner)`."),
});

const common = {
  linkAddress: s.outAddress,
  status: z.enum(["open", "claimed", "cancelled", "expired"]),
  expiresAt: s.outTime.nullable(),
  ownerAddress: s.outAddress.nullable().describe("Who has claimed it."),
};

const claim = s.responseComponent("ClaimLink", {
  ...common,
  mint: z.record(z.string(), z.unknown()).describe("As it was given."),
  signature: s.outHex.nullable().describe("The signature of the link's key over the owner."),
  mintId: s.outUuid.nullable(),
  createdAt: s.outTime,
  decidedAt: s.outTime.nullable().describe("When it was claimed or cancelled."),
});

const publicClaim = s.responseComponent("PublicClaimLink", {
  ...common,
  asset: z.strictObject({
    assetId: s.outUuid,
    standard: s.standard,
    name: z.string(),
    symbol: z.string(),
  }),
  tokenId: s.outDecimal.nullable().describe("null where the engine gives the id, and for ERC-20."),
  amount: z
    .string()
    .nullable()
    .describe("The amount of an ERC-20 or ERC-1155, in decimals of the token."),
  quantity: z.int().nullable().describe("Tokens with ids that the engine gives."),
  settlement: z
    .strictObject({ chainId: s.outDecimal, contract: s.outAddress })
    .describe("Domain of the message to sign."),
});

const takenClaim = s.responseComponent("TakenClaimLink", {
  linkAddress: s.outAddress,
  ownerAddress: s.outAddress,
  mintId: s.outUuid,
  vaults: z.array(
    z.strictObject({ vaultId: s.outDecimal, assetId: s.outUuid, tokenId: s.outDecimal.nullable() }),
  ),
});

const PATH = "/api/v1/claims";
const PUBLIC = "/public/v1/claims/{linkAddress}";
const asClaim = json(200, "The link.", claim);

export const claimEndpoints: readonly Endpoint[] = [
  endpoint("Claims", "mint", `POST ${PATH}`, "createClaimLinks", {
    summary: "Create up to 1,000 claim links, all or none",
    description:
      "Each link is a key that you make; only its address comes here. The same links with the same terms again change nothing. Needs the scope `users` too.",
    body: claimsBody,
    cost: entriesOf("claims"),
    example: {
      claims: [
        {
          linkAddress: `0x${"1c".repeat(20)}`,
          mint: {
            assetId: "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21",
            tokenId: "1002",
            dataAvailabilityMode: "validium",
          },
          expiresAt: "2999-12-31T23:59:59Z",
        },
      ],
    },
    success: json(
      200,
      "All of them, in their order.",
      s.responseComponent("ClaimLinkList", { data: z.array(claim) }),
    ),
    errors: [...mintErrors, "claim_exists", "claim_expired"],
    handle: async ({ engine, principal, body: { claims } }) => ({
      data: await engine.claims.createAll(principal, claims),
    }),
  }),
  endpoint("Claims", "read", `GET ${PATH}`, "listClaimLinks", {
    summary: "Claim links of the application, oldest first",
    ...paged("ClaimLinkPage", claim),
    handle: ({ engine, applicationId, query }) => engine.claims.list(applicationId, query),
  }),
  endpoint("Claims", "read", `GET ${PATH}/{linkAddress}`, "getClaimLink", {
    summary: "One claim link, and who has claimed it",
    success: asClaim,
    errors: ["claim_not_found"],
    handle: ({ engine, applicationId, params }) =>
      engine.claims.get(applicationId, params.linkAddress),
  }),
  endpoint("Claims", "mint", `DELETE ${PATH}/{linkAddress}`, "cancelClaimLink", {
    summary: "Cancel an open claim link",
    success: asClaim,
    errors: ["claim_not_found", "claim_taken"],
    handle: ({ engine, applicationId, params }) =>
      engine.claims.cancel(applicationId, params.linkAddress),
  }),
  endpoint("Claims", "public", `GET ${PUBLIC}`, "getPublicClaimLink", {
    summary: "What the holder of a claim link can claim",
    success: json(200, "The link.", publicClaim),
    errors: ["claim_not_found", "asset_not_found"],
    handle: async ({ engine, params }) => ({
      ...(await engine.claims.find(params.linkAddress)),
      settlement: engine.settlement,
    }),
  }),
  endpoint("Claims", "public", `POST ${PUBLIC}`, "takeClaimLink", {
    summary: "Claim a link: mint to the owner that its key has signed, once",
    description: "The same owner again gets the same answer.",
    body: takeBody,
    example: { ownerAddress: `0x${"70".repeat(20)}`, signature: `0x${"ab".repeat(65)}` },
    success: json(200, "The mint, durable.", takenClaim),
    errors: [
      ...mintErrors,
      "claim_not_found",
      "claim_taken",
      "claim_expired",
      "claim_cancelled",
      "signature_invalid",
    ],
    async handle({ engine, params: { linkAddress }, body }) {
      const { mintId, vaults } = await engine.claims.take(linkAddress, body);
      return { linkAddress, ownerAddress: body.ownerAddress, mintId, vaults };
    },
  }),
];
