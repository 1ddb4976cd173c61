import { recover } from "tiny-secp256k1";
import type { Address } from "../../model.ts";
import { answerQuestions } from "../../thread.ts";
import { bytesToHex, hexToBytes, keccak256 } from "../hex.ts";
import type { SignedDigest, SignerAddresses } from "./signer-thread.ts";

/** Half the order of the curve: L1 takes only a signature whose s is not above it. */
const MAX_S = Buffer.from(
  "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0",
  "hex",
);

/**
 * The account behind a signature `r ‖ vs` of 64 bytes (EIP-2098), as L1's `ecrecover` finds it;
 * null when it finds none.
 */
function signerOf({ digest, signature }: SignedDigest): Address | null {
  const parts = hexToBytes(signature);
  const parity = parts[32]! >= 0x80 ? 1 : 0;
  parts[32] = parts[32]! & 0x7f;
  if (Buffer.compare(parts.subarray(32), MAX_S) > 0) return null;
  try {
    const key = recover(hexToBytes(digest), parts, parity, false);
    return key === null ? null : bytesToHex(keccak256(key.subarray(1)).subarray(12));
  } catch {
    // r or s is zero or not below the order.
    return null;
  }
}

/** The thread of core/protocol/signers/signer-thread.ts. */
answerQuestions((list: readonly SignedDigest[]): SignerAddresses => list.map(signerOf));
