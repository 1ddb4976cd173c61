import type { FastifyRequest } from "fastify";
import { z } from "zod";
import {
  EXIT_KIT_FORMAT,
  EXIT_KIT_VERSION,
  exitKitToJson,
  exportExitKit,
  type KitChain,
} from "../../core/exit/index.ts";
import { MINTING_BLOB_SCHEMES, MintmarkError, STANDINGS, STATUSES } from "../../core/index.ts";
import { paidBy } from "../http/access/rate-account.ts";
import { invalid } from "../http/errors.ts";
import type { Service } from "../service.ts";
import { isFrom, ownerTokenOf, setSignIn } from "./api/authentication.ts";
import { type Endpoint, endpoint, json, paged } from "./api/endpoint.ts";
import { examining } from "./api/examined.ts";
import * as s from "./api/fields.ts";
import { assetPath, batchHeader, PROOF_ERRORS, provenHop, vault, vaultContent } from "./vaults.ts";
import { ownersWithdrawal } from "./withdrawals.ts";

export const challengeBody = s.requestComponent("SignInRequest", { address: s.address });

export const challenge = s.responseComponent("SignInChallenge", {
  message: z
    .string()
    .describe("EIP-4361. The owner's wallet signs it unchanged (`personal_sign`)."),
  expiresAt: s.outTime,
});

export const signInBody = s.requestComponent("SignInProof", {
  message: z.string().min(1).max(2048),
  signature: s.signature,
});

const signIn = s.responseComponent("OwnerSignIn", {
  address: s.outAddress,
  expiresAt: s.outTime,
});

const newSignIn = s.responseComponent("NewOwnerSignIn", signIn.extend({ token: z.string() }));

const standing = z
  .enum(STANDINGS)
  .describe(
    "`arriving`: its batch is not sealed yet. `held`: the owner can withdraw or transfer it. `leaving`: a withdrawal of it is pending. `withdrawn`: it is on its token's chain. `renewed`, `traded`: L1 has made new vaults of it, of the owner or of somebody else. `given` and `redeemed`: from the request of the transfer on. `failed`: the token refuses the mint.",
  );

const ownersVault = s.responseComponent(
  "OwnersVault",
  vault.omit({ userId: true }).extend({
    chainId: s.outDecimal.describe("The chain of the vault's token."),
    standard: s.standard,
    contractAddress: s.outAddress,
    transferable: z.boolean().describe("Whether the owner can give it away before a withdrawal."),
    slot: z
      .int()
      .describe(
        "With `batchId` the place of its proof, which `/public/v1/vaults/{vaultId}/proof` gives.",
      ),
    standing,
    hops: z.int().describe("Transfers since the mint."),
    transfer: z
      .strictObject({
        transferId: s.outUuid,
        to: s.outAddress.describe("The receiver; the zero address redeems."),
        status: z.enum(STATUSES),
      })
      .nullable()
      .describe("What has taken the vault; null for nothing."),
    withdrawal: ownersWithdrawal.nullable().describe("The newest withdrawal of the vault."),
  }),
);

const exitPlace = { vaultId: s.outDecimal, batchId: z.string(), slot: z.int() };

const exitKit = s.responseComponent("ExitKit", {
  format: z.literal(EXIT_KIT_FORMAT),
  version: z.literal(EXIT_KIT_VERSION),
  chainId: s.outDecimal,
  contract: s.outAddress.describe("The settlement contract."),
  token: z.strictObject({
    address: s.outAddress,
    standard: s.standard,
    quantum: s.outDecimal,
    mintingBlobScheme: z.enum(MINTING_BLOB_SCHEMES),
    tokenId: s.outDecimal.nullable(),
  }),
  vault: z.strictObject({ ...exitPlace, ...vaultContent.shape }),
  header: batchHeader,
  siblings: z.array(s.outHash),
  assetPath,
  maturesAt: s.outDecimal
    .nullable()
    .describe("ERC-721: seconds since 1970 from which L1 pays it out."),
  tip: z
    .strictObject({ ...exitPlace, owner: s.outAddress, amount: s.outDecimal })
    .describe("The vault that the kit pays: the last one that transfers made, or `vault`."),
  hops: z.array(provenHop).describe("The transfers since the mint, in their order."),
  refutation: provenHop
    .nullable()
    .describe("The record that spends the vault on L1 but does not count; null without one."),
});

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;

/**
 * The origin of the caller's browser. A claimed name proves nothing: another site could let its
 * visitors sign in there and forward the signature. So it is the configured origin, or the loopback
 * interface, which has no other site.
 */
export function originOf(request: FastifyRequest, { origin }: Service): URL {
  if (origin !== undefined) return origin;
  const host = request.headers.host ?? "";
  if (LOOPBACK.test(host)) return new URL(`http://${host}`);
  const detail =
    "The operator has not configured this server's origin, so owners can sign in over localhost only.";
  throw invalid("/headers/host", detail, detail);
}

async function payingChain({ chains }: Service, chainId: bigint): Promise<KitChain> {
  const chain = await chains.get(chainId)?.();
  if (chain !== undefined) return chain;
  throw new MintmarkError(
    "l1_failed",
    `This server has no chain ${chainId} to check an exit kit with.`,
  );
}

export const SIGNED_CHALLENGE = {
  message: "localhost wants you to sign in with your Ethereum account: …",
  signature: `0x${"00".repeat(65)}`,
};

export const ownerEndpoints: readonly Endpoint[] = [
  endpoint("Owners", "public", "POST /owner/v1/challenge", "createOwnerChallenge", {
    summary: "A message (EIP-4361) for an owner's wallet to sign",
    body: challengeBody,
    example: { address: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8" },
    success: json(200, "The message; it can be used once, within five minutes.", challenge),
    handle: ({ service, body, request }) =>
      service.owners.challenge(body.address, originOf(request, service)),
  }),
  endpoint("Owners", "public", "POST /owner/v1/sign-in", "createOwnerSignIn", {
    oneByOne: true,
    summary: "Exchange a signed challenge for an owner's sign-in of 15 minutes",
    description:
      "A page of this server sends `Mintmark-Owner: 1`. Then the answer sets a cookie too, which counts in the place of the token with this header.",
    body: signInBody,
    example: SIGNED_CHALLENGE,
    success: json(200, "The sign-in.", newSignIn),
    errors: ["credentials_invalid", "credentials_expired", "signature_invalid", "l1_failed"],
    async handle({ service, body, request, reply }) {
      const { message, signature } = body;
      const opened = await service.owners.open(
        message,
        signature,
        originOf(request, service),
        paidBy(request),
      );
      if (isFrom(request, "owner")) setSignIn(reply, service, "owner", opened);
      return opened;
    },
  }),
  endpoint("Owners", "owner", "GET /owner/v1/sign-in", "getOwnerSignIn", {
    summary: "Which owner is signed in, and until when",
    success: json(200, "The sign-in.", signIn),
    handle: ({ service, request }) => service.owners.signedIn(ownerTokenOf(request, service)),
  }),
  endpoint("Owners", "owner", "DELETE /owner/v1/sign-in", "deleteOwnerSignIn", {
    summary: "Sign out",
    description: "The token ends at this server at once, and at others of a cluster by its time.",
    success: json(200, "The sign-in that has ended.", signIn),
    handle({ service, request, reply }) {
      setSignIn(reply, service, "owner", null);
      return service.owners.end(ownerTokenOf(request, service));
    },
  }),
  endpoint("Owners", "owner", "GET /owner/v1/vaults", "listOwnerVaults", {
    summary: "The signed-in owner's vaults in all applications, also those not sealed yet",
    description:
      "Those of one user after the other, each user's newest first. A page can be shorter than `limit` even if there is a next one.",
    ...paged("OwnersVaultPage", ownersVault),
    inTurn: true,
    async handle({ engine, owner, query, ...call }) {
      const { data, ...page } = await examining(call, (options) =>
        engine.vaults.owned(owner, query, options()),
      );
      const newest = await engine.withdrawals.newestOf(
        owner,
        data.map(({ vaultId }) => vaultId),
      );
      return {
        ...page,
        data: data.map((each, i) => ({ ...each, withdrawal: newest[i] ?? null })),
      };
    },
  }),
  endpoint("Owners", "owner", "GET /owner/v1/vaults/{vaultId}/exit-kit", "getExitKit", {
    summary: "Everything the owner of a vault needs to withdraw it without the operator",
    success: json(
      200,
      "The kit; the settlement contract has verified its proof; docs/exit-kit.md.",
      exitKit,
    ),
    errors: [...PROOF_ERRORS, "asset_not_registered", "l1_failed"],
    async handle({ service, owner, params: { vaultId }, request }) {
      const vault = await service.engine.proofs.content(vaultId);
      if (vault.owner !== owner)
        throw new MintmarkError("vault_not_found", "No such vault of this owner.");
      const proof = await service.engine.proofs.exit(vaultId, paidBy(request));
      request.account?.proven(proof.hops?.length ?? 0);
      request.account?.askNode();
      const kit = await exportExitKit(proof, await payingChain(service, vault.chainId));
      return exitKitToJson(kit) as z.output<typeof exitKit>;
    },
  }),
];
