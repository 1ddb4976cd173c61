import { MintmarkError } from "../errors.ts";
import type { BlobScheme, Hex, Standard } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { MAX_UINT256 } from "./bounds.ts";
import { bytesToHex, hexToBytes, keccak256, wordOf } from "./hex.ts";
import { isVisible } from "./text.ts";

/**
 * Distinct ids of one foreign ERC-1155 token after which a batch is sealed, since all are tried
 * before its commit. A foreign token reads its blobs in another scheme than this project's.
 */
export const MAX_FOREIGN_IDS = 4_096;

/** Most bytes of an identifier text. */
export const MAX_BLOB_BYTES = 255;

const HEX_DIGITS = /^(?:[0-9a-f]{2})*$/;
const CANONICAL_DECIMAL = /^(?:0|[1-9][0-9]*)$/;
const RAW_BYTES = 32;
/** 2^256 - 1 has 78 digits. */
const MAX_TOKEN_ID_DIGITS = 78;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const OPEN = 0x7b;
const CLOSE = 0x7d;
const COLON = 0x3a;

/**
 * Converts a caller's minting blob to the canonical form: lower-case hex with `0x`. The input is
 * hex in any case, with or without `0x`; the empty string becomes `0x`.
 *
 * @throws MintmarkError `blob_invalid` when it is not hex of whole bytes, or longer than 255 bytes
 *
 * @example
 * canonicalBlob("7B31377D"); // "0x7b31377d"
 */
export function canonicalBlob(input: string): Hex {
  const lower = input.toLowerCase();
  const digits = lower.startsWith("0x") ? lower.slice(2) : lower;
  if (digits.length > 2 * MAX_BLOB_BYTES)
    throw blobInvalid(`the minting blob is longer than ${MAX_BLOB_BYTES} bytes`);
  if (!HEX_DIGITS.test(digits)) throw blobInvalid("the minting blob is not hex of whole bytes");
  return `0x${digits}`;
}

/**
 * The token id of a canonical blob (docs/protocol.md 1), after checking that the blob fits the
 * asset.
 *
 * @returns the id, below 2^256; null for ERC-20, which has no ids
 * @throws MintmarkError `blob_invalid`: not empty for ERC-20, empty for another standard, or
 *   refused by the scheme
 * @example
 * tokenIdOf("erc721", "mintmark", "0x3137") // 17n, for the text "17"
 * tokenIdOf("erc721", "imx", "0x7b31377d3a7b7d") // 17n, for the text "{17}:{}"
 * tokenIdOf("erc721", "raw32", `0x${"11".padStart(64, "0")}`) // 17n, for its 32 bytes
 */
export function tokenIdOf(standard: Standard, scheme: BlobScheme, blob: Hex): bigint | null {
  return tokenIdOfBytes(standard, scheme, hexToBytes(blob));
}

/** {@link tokenIdOf} for the bytes of a blob. */
export function tokenIdOfBytes(
  standard: Standard,
  scheme: BlobScheme,
  blob: Uint8Array,
): bigint | null {
  if (standard === "erc20") {
    if (blob.length > 0) throw blobInvalid("the minting blob of an ERC-20 mint must be empty");
    return null;
  }
  if (blob.length === 0)
    throw blobInvalid("the minting blob of an ERC-721 or ERC-1155 mint must not be empty");
  if (scheme === "raw32") return rawTokenId(blob);
  if (scheme === "imx") return imxTokenId(blob);
  return decimalTokenId(blob) ?? BigInt(bytesToHex(keccak256(blob)));
}

/**
 * Why L1 never pays a vault of a registered asset; null when it pays it. It is the rule of
 * `Payouts.sol`, and nobody can sign for the zero address.
 *
 * @example
 * unpayable({ owner, amount: 1n, blob: "0x" }, "erc721", "mintmark") // "the minting blob of an
 * ERC-721 …"
 */
export function unpayable(
  { owner, amount, blob }: Pick<VaultContent, "owner" | "amount" | "blob">,
  standard: Standard,
  scheme: BlobScheme,
): string | null {
  if (BigInt(owner) === 0n) return "the vault belongs to the zero address";
  if (standard === "erc721" && amount !== 1n) return "the amount of an ERC-721 vault is not 1";
  try {
    tokenIdOf(standard, scheme, blob);
    return null;
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "blob_invalid") return error.message;
    throw error;
  }
}

/**
 * The blob of a token id in a scheme, one character for each byte: the inverse of {@link
 * tokenIdOf}.
 *
 * @param digits - the id in canonical decimals
 * @example
 * blobTextOf("imx", "17") // "{17}:{}"
 */
export function blobTextOf(scheme: BlobScheme, digits: string): string {
  if (scheme === "raw32") {
    return String.fromCharCode(...hexToBytes(wordOf(BigInt(digits))));
  }
  return scheme === "imx" ? `{${digits}}:{}` : digits;
}

/** Whether bytes are UTF-8 text without hidden characters. */
export function isText(bytes: Uint8Array): boolean {
  try {
    return isVisible(UTF8.decode(bytes));
  } catch {
    return false;
  }
}

/**
 * Such tokens read only the first 32 bytes. The blob must have exactly 32, so each id has one blob.
 */
function rawTokenId(blob: Uint8Array): bigint {
  if (blob.length === RAW_BYTES) return BigInt(bytesToHex(blob));
  const form = "the minting blob must be the token id in 32 bytes";
  throw otherScheme("raw32", form, decimalTokenId(blob) ?? imxId(blob));
}

/**
 * `{id}:{blueprint}`: the blueprint is all bytes between the second opening brace and the last
 * byte.
 */
function imxTokenId(blob: Uint8Array): bigint {
  const id = imxId(blob);
  if (id !== null) return id;
  const form =
    "the minting blob must be {id}:{blueprint}, with the id as a canonical decimal below 2^256";
  const sent =
    decimalTokenId(blob) ?? (blob.length === RAW_BYTES ? BigInt(bytesToHex(blob)) : null);
  throw otherScheme("imx", form, sent);
}

function imxId(blob: Uint8Array): bigint | null {
  const idEnd = blob.indexOf(CLOSE);
  const framed =
    blob[0] === OPEN &&
    idEnd > 0 &&
    blob[idEnd + 1] === COLON &&
    blob[idEnd + 2] === OPEN &&
    blob.length >= idEnd + 4 &&
    blob[blob.length - 1] === CLOSE;
  return framed ? decimalTokenId(blob.subarray(1, idEnd)) : null;
}

/** @param sent - the id that the blob names in another scheme; null if it names none */
function otherScheme(scheme: BlobScheme, form: string, sent: bigint | null): MintmarkError {
  if (sent === null) return blobInvalid(`${form} (scheme ${scheme})`);
  const blob = bytesToHex(
    Uint8Array.from(blobTextOf(scheme, String(sent)), (byte) => byte.charCodeAt(0)),
  );
  return blobInvalid(
    `${form} (scheme ${scheme}); for the id ${sent}, which was sent, give its tokenId, or the blob ${blob}`,
  );
}

/** The value of a canonical decimal below 2^256; null for any other bytes. */
export function decimalTokenId(text: Uint8Array): bigint | null {
  if (text.length > MAX_TOKEN_ID_DIGITS) return null;
  const characters = String.fromCharCode(...text);
  if (!CANONICAL_DECIMAL.test(characters)) return null;
  const id = BigInt(characters);
  return id <= MAX_UINT256 ? id : null;
}

function blobInvalid(detail: string): MintmarkError {
  return new MintmarkError("blob_invalid", detail);
}
