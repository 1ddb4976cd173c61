import { MintmarkError } from "../errors.ts";
import type { Address, Hash, Hex } from "../model.ts";
import { wordOf } from "./hex.ts";

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
const ECDSA = /^0x([0-9a-f]{64})([0-9a-f]{64})(00|01|1b|1c)?$/i;
const UNDEPLOYED = "6492".repeat(16);
/**
 * Half of the order of secp256k1. A signature's s is at most this, so each signature has one form.
 */
export const MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
export const Y_PARITY_BIT = 1n << 255n;

/** The content of an ECDSA signature in any of its forms; null for other bytes and a high s. */
function partsOf(signature: Hex) {
  const [, r, second, v] = ECDSA.exec(signature) ?? [];
  if (r === undefined || second === undefined) return null;
  const word = BigInt(`0x${second}`);
  const s = v === undefined ? word & ~Y_PARITY_BIT : word;
  if (s > MAX_S) return null;
  const isOdd = v === undefined ? word !== s : v === "01" || v.toLowerCase() === "1c";
  return { r: `0x${r.toLowerCase()}`, s: wordOf(s), yParity: isOdd ? 1 : 0 } as const;
}

/** Whether the bytes have a form of ECDSA. */
export function isEcdsa(signature: Hex): boolean {
  return partsOf(signature) !== null;
}

/** The account behind an ECDSA signature in any form, in lower case; null for other bytes. */
export async function signerOf(hash: Hash, given: Hex): Promise<Address | null> {
  const parts = partsOf(given);
  if (parts === null) return null;
  // Loaded with the first signature, because most programs of this package check none.
  const { recoverAddress } = await import("ox/Secp256k1");
  const { yParity } = parts;
  const signature = { r: BigInt(parts.r), s: BigInt(parts.s), yParity };
  try {
    return recoverAddress({ payload: hash, signature }).toLowerCase() as Address;
  } catch {
    return null;
  }
}

/**
 * An ECDSA signature in the form that L1 takes; null unless it is this account's over the digest.
 * Other bytes mean something to the account's wallet contract alone, so nobody rewrites them. The
 * signature has the smaller `s`.
 *
 * @param recover - the account behind 64 bytes `r ‖ vs`; default on the caller's thread
 *
 * @example
 * const taken = (await ecdsaForm(owner, digest, signature)) ?? signature;
 */
export async function ecdsaForm(
  account: Address,
  hash: Hash,
  signature: Hex,
  recover: typeof signerOf = signerOf,
): Promise<Hex | null> {
  if (!isEcdsa(signature)) return null;
  if ((await recover(hash, compactBytes(signature))) !== account.toLowerCase()) return null;
  const given = signature.toLowerCase() as Hex;
  if (given.length === 130) return given;
  return `${given.slice(0, 130)}${partsOf(given)?.yParity === 1 ? "1c" : "1b"}` as Hex;
}

/** A refusal of such a signature. A deployed wallet can send one too. */
export const UNDEPLOYED_REFUSED =
  "The signature is that of a wallet before its deployment (ERC-6492), which L1 cannot ask. Deploy the wallet, if it is not yet, and sign again.";

/**
 * Whether the signature is of a wallet that somebody has to deploy before L1 can ask it (ERC-6492).
 *
 * @example
 * if (isUndeployed(signature)) throw new Error("Deploy the wallet first.");
 */
export function isUndeployed(signature: Hex): boolean {
  return signature.endsWith(UNDEPLOYED);
}

/**
 * Whether an ECDSA signature is an account's over a digest, in any form. The signature has the
 * smaller `s`.
 *
 * @example
 * await isSignedBy(linkAddress, claimDigest(settlement, { link: linkAddress, owner: ownerAddress
 * }), signature);
 */
export async function isSignedBy(account: Address, hash: Hash, signature: Hex): Promise<boolean> {
  return (await signerOf(hash, signature)) === account.toLowerCase();
}

/** An ECDSA signature in the EIP-2098 form. Throws `signature_invalid` for other bytes. */
export function compactSignature(signature: Hex): { readonly r: Hash; readonly vs: Hash } {
  const parts = partsOf(signature);
  if (parts === null) {
    const forms = "64 bytes, or 65 with v as 0, 1, 27 or 28, and a low s";
    throw new MintmarkError("signature_invalid", `An ECDSA signature has ${forms}.`);
  }
  const { r, s, yParity } = parts;
  return { r, vs: yParity === 1 ? wordOf(BigInt(s) | Y_PARITY_BIT) : s };
}

/** Compacts a signature to 64 bytes `r ‖ vs`, as transfers carry it. */
export function compactBytes(signature: Hex): Hex {
  const { r, vs } = compactSignature(signature);
  return `${r}${vs.slice(2)}`;
}
