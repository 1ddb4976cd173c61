import { recoverAddress } from "viem";
import type { Address, Hash, Hex } from "../model.ts";
import { MAX_S } from "./attestation.ts";

/**
 * The forms of a signature, wherever one comes in:
 *
 * | bytes | form |
 * | --- | --- |
 * | 65 | r ‖ s ‖ v with v 27 or 28; some hardware wallets say 0 or 1, which L1 does not take |
 * | 64 | r ‖ vs, EIP-2098 |
 * | any, also none | what a wallet contract takes (ERC-1271); nothing when it was told on chain |
 * | any, ending with 6492 16 times | of a wallet that is not deployed yet (ERC-6492): refused |
 */
const FULL = /^0x[0-9a-f]{128}(?:00|01|1b|1c)$/;
const COMPACT = /^0x[0-9a-f]{128}$/;
const UNDEPLOYED = "6492".repeat(16);

/**
 * An ECDSA signature in the form that L1 takes; null unless it is this account's over the digest.
 * Other bytes mean something to the account's wallet contract alone, so nobody rewrites them.
 * Address and signature are in lower case, and the signature has the smaller `s`.
 *
 * @example
 * const taken = (await ecdsaForm(owner, digest, signature)) ?? signature;
 */
export async function ecdsaForm(account: Address, hash: Hash, signature: Hex): Promise<Hex | null> {
  const isFull = FULL.test(signature);
  if (!isFull && !COMPACT.test(signature)) return null;
  const s = BigInt(`0x${signature.slice(66, 130)}`);
  if ((isFull ? s : s & ~(1n << 255n)) > MAX_S) return null;
  const isOdd = isFull ? /(?:01|1c)$/.test(signature) : s >> 255n === 1n;
  const full = isFull ? (`${signature.slice(0, 130)}${isOdd ? "1c" : "1b"}` as Hex) : null;
  const signed = full ?? fullOf(signature, s, isOdd);
  const signer = await recoverAddress({ hash, signature: signed }).catch(() => null);
  return signer?.toLowerCase() === account ? (full ?? signature) : null;
}

function fullOf(signature: Hex, vs: bigint, isOdd: boolean): Hex {
  const s = (vs & ~(1n << 255n)).toString(16).padStart(64, "0");
  return `${signature.slice(0, 66)}${s}${isOdd ? "1c" : "1b"}` as Hex;
}

/** Whether the signature is of a wallet that somebody has to deploy before L1 can ask it. */
export function isUndeployed(signature: Hex): boolean {
  return signature.endsWith(UNDEPLOYED);
}

/**
 * Whether an ECDSA signature is an account's over a digest, in any form. Address and signature are
 * in lower case, and the signature has the smaller `s`.
 *
 * @example
 * await isSignedBy(linkAddress, claimDigest(settlement, { link: linkAddress, owner: ownerAddress
 * }), signature);
 */
export async function isSignedBy(account: Address, hash: Hash, signature: Hex): Promise<boolean> {
  return (await ecdsaForm(account, hash, signature)) !== null;
}
