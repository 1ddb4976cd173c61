import { MintmarkError } from "../../errors.ts";
import type { BlobScheme, Hex, Standard } from "../../model.ts";
import { isText, tokenIdOf, tokenIdOfBytes } from "../../protocol/blob.ts";
import { bytesToHex } from "../../protocol/hex.ts";

const THREE = 0x33;
const ZERO = 0x30;
const NINE = 0x39;
/** Decimal digits that a double holds exactly. */
const EXACT_DIGITS = 15;
export const MAX_SHORT_ID = 10 ** EXACT_DIGITS - 1;

/**
 * {@link tokenIdOf} for the hot path. Reads the usual blob, a short decimal of the `mintmark` scheme, from its hex, in
 * which digits are `3d3d…`. Other blobs take the plain path. Throws `blob_invalid` as that does.
 */
export function fastTokenIdOf(standard: Standard, scheme: BlobScheme, blob: Hex): bigint | null {
  const short = standard === "erc20" || scheme !== "mintmark" ? -1 : shortDecimal(blob);
  return short < 0 ? tokenIdOf(standard, scheme, blob) : BigInt(short);
}

/**
 * The token id of a new mint's blob. Throws `blob_invalid` as {@link tokenIdOf} does. Also throws for bytes that are
 * not text, unless the asset takes raw blobs: the blob `0x1001`, meant as id 1001, would name another token forever.
 */
export function mintedTokenId({ standard, blobScheme, rawBlobs }: TokenForm, blob: Uint8Array): bigint | null {
  const tokenId = tokenIdOfBytes(standard, blobScheme, blob);
  if (tokenId === null || rawBlobs || blobScheme === "raw32" || isText(blob)) return tokenId;
  const digits = bytesToHex(blob).slice(2);
  const meant = /^[1-9][0-9]*$/.test(digits) ? digits : "1001";
  throw new MintmarkError(
    "blob_invalid",
    `the minting blob is not the hex of a text. Name the token by its id, "tokenId": "${meant}"; only an asset with rawBlobs takes other bytes`,
  );
}

/** How an asset's blobs name tokens. */
interface TokenForm {
  readonly standard: Standard;
  readonly blobScheme: BlobScheme;
  readonly rawBlobs: boolean;
}

/** The value of a canonical decimal of 1 to 15 digits; -1 for any other blob. */
function shortDecimal(blob: string): number {
  const end = blob.length;
  if (end < 4 || end > 2 + 2 * EXACT_DIGITS) return -1;
  // Only zero itself may begin with a zero.
  if (blob.charCodeAt(3) === ZERO && end > 4) return -1;
  let value = 0;
  for (let i = 2; i < end; i += 2) {
    const digit = blob.charCodeAt(i + 1);
    if (blob.charCodeAt(i) !== THREE || digit < ZERO || digit > NINE) return -1;
    value = value * 10 + (digit - ZERO);
  }
  return value;
}

/** The value of a canonical ASCII decimal of 1 to 15 digits; -1 for any other bytes. */
export function shortDecimalIn(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length < 1 || length > EXACT_DIGITS || (length > 1 && bytes[start] === ZERO)) return -1;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = bytes[i] as number;
    if (digit < ZERO || digit > NINE) return -1;
    value = value * 10 + (digit - ZERO);
  }
  return value;
}
