import { recoverAddress } from "viem";
import type { Address, Hash, Hex } from "../model.ts";
import { MAX_S } from "./attestation.ts";

/** r, s and v, as the contract's ECDSA takes them. */
const ECDSA_SIGNATURE = /^0x[0-9a-f]{130}$/;

/**
 * Whether an ECDSA signature is an account's over a digest. Address and signature are in lower
 * case, and the signature has the smaller `s`.
 *
 * @example
 * await isSignedBy(linkAddress, claimDigest(settlement, { link: linkAddress, owner: ownerAddress
 * }), signature);
 */
export async function isSignedBy(account: Address, hash: Hash, signature: Hex): Promise<boolean> {
  if (!ECDSA_SIGNATURE.test(signature) || BigInt(`0x${signature.slice(66, 130)}`) > MAX_S)
    return false;
  const signer = await recoverAddress({ hash, signature }).catch(() => null);
  return signer?.toLowerCase() === account;
}
