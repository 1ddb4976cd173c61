import * as s from "../schemas/claims.ts";
import { type Endpoint, endpoint, entriesOf, json } from "./api/endpoint.ts";
import { mintErrors } from "./mint.ts";

const PATH = "/api/v1/claims";
const PUBLIC = "/public/v1/claims/{linkAddress}";
const asClaim = json(200, "The link.", s.claim);

export const claimEndpoints: readonly Endpoint[] = [
  endpoint("Claims", "mint", `POST ${PATH}`, "createClaimLinks", {
    summary: "Create up to 1,000 claim links, all or none",
    description:
      "Each link is a key that you make; only its address comes here. The same links with the same terms again change nothing. Needs the scope `users` too.",
    body: s.claimsBody,
    cost: entriesOf("claims"),
    example: {
      claims: [
        {
          linkAddress: `0x${"1c".repeat(20)}`,
          mint: { assetId: "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21", tokenId: "1002", dataAvailabilityMode: "validium" },
          expiresAt: "2999-12-31T23:59:59Z",
        },
      ],
    },
    success: json(200, "All of them, in their order.", s.claimList),
    errors: [...mintErrors, "claim_exists", "claim_expired"],
    handle: async ({ engine, principal, body: { claims } }) => ({
      data: await engine.claims.createAll(principal, claims),
    }),
  }),
  endpoint("Claims", "read", `GET ${PATH}`, "listClaimLinks", {
    summary: "Claim links of the application, oldest first",
    query: s.claimQuery,
    success: json(200, "One page.", s.claimPage),
    handle: ({ engine, applicationId, query }) => engine.claims.list(applicationId, query),
  }),
  endpoint("Claims", "read", `GET ${PATH}/{linkAddress}`, "getClaimLink", {
    summary: "One claim link, and who has claimed it",
    success: asClaim,
    errors: ["claim_not_found"],
    handle: ({ engine, applicationId, params }) => engine.claims.get(applicationId, params.linkAddress),
  }),
  endpoint("Claims", "mint", `DELETE ${PATH}/{linkAddress}`, "cancelClaimLink", {
    summary: "Cancel an open claim link",
    success: asClaim,
    errors: ["claim_not_found", "claim_taken"],
    handle: ({ engine, applicationId, params }) => engine.claims.cancel(applicationId, params.linkAddress),
  }),
  endpoint("Claims", "public", `GET ${PUBLIC}`, "getPublicClaimLink", {
    summary: "What the holder of a claim link can claim",
    success: json(200, "The link.", s.publicClaim),
    errors: ["claim_not_found", "asset_not_found"],
    handle: async ({ engine, params }) => ({
      ...(await engine.claims.find(params.linkAddress)),
      settlement: engine.settlement,
    }),
  }),
  endpoint("Claims", "public", `POST ${PUBLIC}`, "takeClaimLink", {
    summary: "Claim a link: mint to the owner that its key has signed, once",
    description: "The same owner again gets the same answer.",
    body: s.takeBody,
    example: { ownerAddress: `0x${"70".repeat(20)}`, signature: `0x${"ab".repeat(65)}` },
    success: json(200, "The mint, durable.", s.takenClaim),
    errors: [
      ...mintErrors,
      "claim_not_found",
      "claim_taken",
      "claim_expired",
      "claim_cancelled",
      "signature_invalid",
      "not_leader",
      "journal_unavailable",
    ],
    async handle({ engine, params: { linkAddress }, body }) {
      const { mintId, vaults } = await engine.claims.take(linkAddress, body);
      return { linkAddress, ownerAddress: body.ownerAddress, mintId, vaults };
    },
  }),
];
