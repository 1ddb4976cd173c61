import { MintmarkError } from "../errors.ts";
import type { Hex, MintingBlobScheme, Standard } from "../model.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { isText, tokenIdOfBytes } from "../protocol/minting-blob.ts";
import type { AssetRecord } from "./records.ts";

const ZERO = 0x30;
const NINE = 0x39;
const EXACT_DIGITS = 15; // Decimal digits that a double holds exactly
export const MAX_SHORT_ID = 10 ** EXACT_DIGITS - 1;

/**
 * `tokenIdOf`, fast for a short decimal of the `mintmark` scheme. Throws `minting_blob_invalid`.
 */
export function fastTokenIdOf(
  standard: Standard,
  scheme: MintingBlobScheme,
  mintingBlob: Hex,
): bigint | null {
  const bytes = Buffer.from(mintingBlob.slice(2), "hex");
  const short =
    standard === "erc20" || scheme !== "mintmark" ? -1 : shortDecimalIn(bytes, 0, bytes.length);
  return short < 0 ? tokenIdOfBytes(standard, scheme, bytes) : BigInt(short);
}

/**
 * The token id of a new mint's minting blob. Throws `minting_blob_invalid` as `tokenIdOf` does.
 * Also throws for bytes that are not text, unless the asset takes raw ones: `0x1001`, meant as id
 * 1001, would name another token forever.
 */
export function mintedTokenId(
  {
    standard,
    mintingBlobScheme,
    rawMintingBlobs,
  }: Pick<AssetRecord, "standard" | "mintingBlobScheme" | "rawMintingBlobs">,
  mintingBlob: Uint8Array,
): bigint | null {
  const tokenId = tokenIdOfBytes(standard, mintingBlobScheme, mintingBlob);
  if (tokenId === null || rawMintingBlobs || mintingBlobScheme === "raw32" || isText(mintingBlob))
    return tokenId;
  const digits = bytesToHex(mintingBlob).slice(2);
  // An id in 32 bytes is what scheme raw32 takes; an id's digits as hex are a common mistake.
  const sent = mintingBlob.length === 32 ? `${BigInt(bytesToHex(mintingBlob))}` : digits;
  const meant = /^[1-9][0-9]*$/.test(sent) ? sent : "1001";
  throw new MintmarkError(
    "minting_blob_invalid",
    `the minting blob is not the hex of a text (scheme ${mintingBlobScheme}). Name the token by its id, "tokenId": "${meant}"; only an asset with rawMintingBlobs takes other bytes`,
  );
}

/** The value of a canonical ASCII decimal of 1 to 15 digits; -1 for any other bytes. */
export function shortDecimalIn(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length < 1 || length > EXACT_DIGITS || (length > 1 && bytes[start] === ZERO)) return -1;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = bytes[i]!;
    if (digit < ZERO || digit > NINE) return -1;
    value = value * 10 + (digit - ZERO);
  }
  return value;
}

/**
 * Keyed 32-bit hashes of tokens for the index in memory (`core/store/token-index.ts`):
 * HalfSipHash-1-3 over 32-bit words, after Aumasson and Bernstein. The key is the store's own seed,
 * so nobody can choose token ids that collide.
 */
export class TokenHasher {
  readonly #k0: number;
  readonly #k1: number;
  readonly #words = new Uint32Array(10);

  /** @param seed - at least 8 random bytes */
  constructor(seed: Uint8Array) {
    const view = new DataView(seed.buffer, seed.byteOffset, seed.byteLength);
    this.#k0 = view.getUint32(0) | 0;
    this.#k1 = view.getUint32(4) | 0;
  }

  /** The hash of a token with an id below 2^53; equal to {@link ofId}. */
  ofShortId(assetIndex: number, tokenId: number): number {
    const words = this.#words;
    words[0] = assetIndex;
    words[1] = tokenId / 2 ** 32;
    words[2] = tokenId;
    return this.#hash(3);
  }

  /** The hash of any token; ids below 2^64 take two words, others eight. */
  ofId(assetIndex: number, tokenId: bigint): number {
    const words = this.#words;
    words[0] = assetIndex;
    const count = tokenId < 1n << 64n ? 2 : 8;
    let rest = tokenId;
    for (let i = count; i > 0; i--) {
      words[i] = Number(rest & 0xffff_ffffn);
      rest >>= 32n;
    }
    return this.#hash(1 + count);
  }

  #hash(count: number): number {
    const words = this.#words;
    let v0 = this.#k0;
    let v1 = this.#k1;
    let v2 = this.#k0 ^ 0x6c79_6765;
    let v3 = this.#k1 ^ 0x7465_6462;
    // One round a word, one for the length, three to finish.
    for (let i = 0; i < count + 4; i++) {
      const word = i < count ? words[i]! | 0 : i === count ? count << 26 : 0;
      if (i === count + 1) v2 ^= 0xff;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    // 0 stands for no token.
    return (v1 ^ v3) >>> 0 || 1;
  }
}
