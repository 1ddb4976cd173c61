import { z } from "zod";
import { EXIT_KIT_FORMAT, EXIT_KIT_VERSIONS } from "../../core/guards/exit/index.ts";
import { BLOB_SCHEMES } from "../../core/index.ts";
import * as s from "./common.ts";
import { assetPath, batchHeader, provenHop } from "./vaults.ts";

export const challengeBody = s.requestComponent("SignInRequest", { address: s.address });

export const challenge = s.responseComponent("SignInChallenge", {
  message: z.string().describe("EIP-4361. The owner's wallet signs it unchanged (`personal_sign`)."),
  expiresAt: s.outTime,
});

export const signInBody = s.requestComponent("SignInProof", {
  message: z.string().min(1).max(2048),
  signature: s.signature,
});

export const signIn = s.responseComponent("OwnerSignIn", {
  token: z.string(),
  address: s.outAddress,
  expiresAt: s.outTime,
});

const exitPlace = { vaultId: s.outDecimal, batchId: z.string(), slot: z.int() };

export const exitKit = s.responseComponent("ExitKit", {
  format: z.literal(EXIT_KIT_FORMAT),
  version: z.literal(EXIT_KIT_VERSIONS).describe("2 for a vault with transfers, which adds the last fields."),
  chainId: s.outDecimal,
  contract: s.outAddress.describe("The settlement contract."),
  token: z.strictObject({
    address: s.outAddress,
    standard: s.standard,
    quantum: s.outDecimal,
    blobScheme: z.enum(BLOB_SCHEMES),
    tokenId: s.outDecimal.nullable(),
  }),
  vault: z.strictObject({
    ...exitPlace,
    chainId: s.outDecimal,
    owner: s.outAddress,
    assetType: s.outHash,
    amount: s.outDecimal,
    blob: s.outHex,
  }),
  header: batchHeader,
  siblings: z.array(s.outHash),
  assetPath,
  maturesAt: s.outDecimal.nullable().describe("ERC-721: seconds since 1970 from which L1 pays it out."),
  tip: z
    .strictObject({ ...exitPlace, owner: s.outAddress, amount: s.outDecimal })
    .optional()
    .describe("The vault that the kit pays: the last one that transfers made."),
  hops: z.array(provenHop).optional().describe("The transfers since the mint, in their order."),
  refutation: provenHop
    .nullish()
    .describe("The record that spends the vault on L1 but does not count; null without one."),
});
