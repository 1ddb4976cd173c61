import { sha256 } from "@noble/hashes/sha2.js";
import type { Hash, Hex } from "../model.ts";
import { bytesToHex, hexToBytes } from "./hex.ts";

/** Names and proofs of blobs. The curve that checks them takes long to load: it is in `kzg.ts`. */

/** Bytes of a KZG commitment or proof: a compressed point of G1. */
export const POINT_BYTES = 48;
/** The point at infinity: commitment and proofs of a blob of zeros. */
export const INFINITY: Hex = `0xc0${"00".repeat(POINT_BYTES - 1)}`;

/** EIP-4844: the first byte of a blob's versioned hash. */
const KZG_VERSION = 1;

/**
 * An element of a blob with its proof: the input of the point evaluation precompile, without point
 * and hash.
 */
export interface Opening {
  /** Position in the blob, 0 to 4095. */
  readonly index: number;
  /** The element: 32 bytes. */
  readonly element: Hex;
  /** 48 bytes; its hash is the blob's versioned hash. */
  readonly commitment: Hex;
  /** 48 bytes. */
  readonly proof: Hex;
}

/** A blob's commitment with the proof of all of it, as EIP-4844 has them. */
export interface BlobProof {
  /** 48 bytes; its hash is the blob's versioned hash. */
  readonly commitment: Hex;
  /** 48 bytes. */
  readonly proof: Hex;
}

/**
 * EIP-4844's hash of a commitment, by which contracts and blocks name a blob.
 *
 * @example
 * const isOnL1 = versionedHashes.includes(versionedHash(commitment));
 */
export function versionedHash(commitment: Hex): Hash {
  const hash = sha256(hexToBytes(commitment, POINT_BYTES));
  hash[0] = KZG_VERSION;
  return bytesToHex(hash);
}
