import { z } from "zod";
import { EXIT_KIT_FORMAT, EXIT_KIT_VERSIONS } from "../../core/guards/exit/index.ts";
import { BLOB_SCHEMES } from "../../core/index.ts";
import {
  address,
  hexUpTo,
  outAddress,
  outDecimal,
  outHash,
  outHex,
  outTime,
  requestComponent,
  responseComponent,
  standard,
} from "./common.ts";
import { assetPath, batchHeader, provenHop } from "./vaults.ts";

/** Wallet contracts' signatures can be long. */
export const MAX_SIGNATURE_BYTES = 4096;

export const challengeBody = requestComponent("SignInRequest", { address });

export const challenge = responseComponent("SignInChallenge", {
  message: z.string().describe("EIP-4361. The owner's wallet signs it unchanged (`personal_sign`)."),
  expiresAt: outTime,
});

export const sessionBody = requestComponent("SignInProof", {
  message: z.string().min(1).max(2048),
  signature: hexUpTo(MAX_SIGNATURE_BYTES),
});

export const session = responseComponent("OwnerSession", {
  token: z.string(),
  address: outAddress,
  expiresAt: outTime,
});

const exitPlace = { vaultId: outDecimal, batchId: z.string(), slot: z.int() };

export const exitKit = responseComponent("ExitKit", {
  format: z.literal(EXIT_KIT_FORMAT),
  version: z.literal(EXIT_KIT_VERSIONS).describe("2 for a vault with transfers, which adds the last fields."),
  chainId: outDecimal,
  contract: outAddress.describe("The settlement contract."),
  token: z.strictObject({
    address: outAddress,
    standard,
    quantum: outDecimal,
    blobScheme: z.enum(BLOB_SCHEMES),
    tokenId: outDecimal.nullable(),
  }),
  vault: z.strictObject({
    ...exitPlace,
    chainId: outDecimal,
    owner: outAddress,
    assetType: outHash,
    amount: outDecimal,
    blob: outHex,
  }),
  header: batchHeader,
  siblings: z.array(outHash),
  assetPath,
  maturesAt: outDecimal.nullable().describe("ERC-721: seconds since 1970 from which L1 pays it out."),
  tip: z
    .strictObject({ ...exitPlace, owner: outAddress, amount: outDecimal })
    .optional()
    .describe("The vault that the kit pays: the last one that transfers made."),
  hops: z.array(provenHop).optional().describe("The transfers since the mint, in their order."),
  refutation: provenHop
    .nullable()
    .optional()
    .describe("The record that spends the vault on L1 but does not count; null without one."),
});
