import { z } from "zod";
import {
  address,
  hexUpTo,
  outAddress,
  outDecimal,
  outHex,
  outTime,
  requestComponent,
  responseComponent,
} from "./common.ts";
import { vaultProof } from "./vaults.ts";

/** Wallet contracts' signatures can be long. */
const MAX_SIGNATURE_BYTES = 4096;

export const challengeBody = requestComponent("SignInRequest", z.strictObject({ address }));

export const challenge = responseComponent(
  "SignInChallenge",
  z.strictObject({
    message: z.string().meta({ description: "EIP-4361. The owner's wallet signs it as it is (`personal_sign`)." }),
    expiresAt: outTime,
  }),
);

export const sessionBody = requestComponent(
  "SignInProof",
  z.strictObject({ message: z.string().min(1).max(2048), signature: hexUpTo(MAX_SIGNATURE_BYTES) }),
);

export const session = responseComponent(
  "OwnerSession",
  z.strictObject({ token: z.string(), address: outAddress, expiresAt: outTime }),
);

export const exitKit = responseComponent(
  "ExitKit",
  vaultProof.extend({
    contract: outAddress.meta({ description: "The settlement contract to send the calldata to." }),
    contractChainId: outDecimal,
    withdrawCalldata: outHex.meta({ description: "Calldata of `withdraw`: the vault's whole amount, to its owner." }),
  }),
);
