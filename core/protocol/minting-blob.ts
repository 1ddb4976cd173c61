import { MintmarkError } from "../errors.ts";
import type { Hex, MintingBlobScheme, Standard } from "../model.ts";
import type { VaultContent } from "../ports.ts";
import { MAX_UINT256 } from "./bounds.ts";
import { bytesToHex, hexToBytes, keccak256, wordOf } from "./hex.ts";
import { isVisible } from "./text.ts";

/**
 * Distinct ids of one foreign ERC-1155 token after which a batch is sealed, since all are tried
 * before its commit. A foreign token reads its minting blobs in another scheme than this project's.
 */
export const MAX_FOREIGN_IDS = 4_096;

/** Most bytes of an identifier text. */
export const MAX_MINTING_BLOB_BYTES = 255;

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
 * @throws MintmarkError `minting_blob_invalid` when it is not hex of whole bytes, or longer than
 *   255 bytes
 *
 * @example
 * canonicalMintingBlob("7B31377D"); // "0x7b31377d"
 */
export function canonicalMintingBlob(input: string): Hex {
  const lower = input.toLowerCase();
  const digits = lower.startsWith("0x") ? lower.slice(2) : lower;
  if (digits.length > 2 * MAX_MINTING_BLOB_BYTES)
    throw mintingBlobInvalid(`the minting blob is longer than ${MAX_MINTING_BLOB_BYTES} bytes`);
  if (!HEX_DIGITS.test(digits))
    throw mintingBlobInvalid("the minting blob is not hex of whole bytes");
  return `0x${digits}`;
}

/**
 * The token id of a canonical minting blob (docs/protocol.md 1), after checking that it fits the
 * asset.
 *
 * @returns the id, below 2^256; null for ERC-20, which has no ids
 * @throws MintmarkError `minting_blob_invalid`: not empty for ERC-20, empty for another standard,
 *   or refused by the scheme
 * @example
 * tokenIdOf("erc721", "mintmark", "0x3137") // 17n, for the text "17"
 * tokenIdOf("erc721", "imx", "0x7b31377d3a7b7d") // 17n, for the text "{17}:{}"
 * tokenIdOf("erc721", "raw32", `0x${"11".padStart(64, "0")}`) // 17n, for its 32 bytes
 */
export function tokenIdOf(
  standard: Standard,
  scheme: MintingBlobScheme,
  mintingBlob: Hex,
): bigint | null {
  return tokenIdOfBytes(standard, scheme, hexToBytes(mintingBlob));
}

/** {@link tokenIdOf} for the bytes of a minting blob. */
export function tokenIdOfBytes(
  standard: Standard,
  scheme: MintingBlobScheme,
  mintingBlob: Uint8Array,
): bigint | null {
  if (standard === "erc20") {
    if (mintingBlob.length > 0)
      throw mintingBlobInvalid("the minting blob of an ERC-20 mint must be empty");
    return null;
  }
  if (mintingBlob.length === 0)
    throw mintingBlobInvalid("the minting blob of an ERC-721 or ERC-1155 mint must not be empty");
  if (scheme === "raw32") return rawTokenId(mintingBlob);
  if (scheme === "imx") return imxTokenId(mintingBlob);
  return decimalTokenId(mintingBlob) ?? BigInt(bytesToHex(keccak256(mintingBlob)));
}

/**
 * Why L1 never pays a vault of a registered asset; null when it pays it. It is the rule of
 * `Payouts.sol`, and nobody can sign for the zero address.
 *
 * @example
 * const vault = { owner, amount: 1n, mintingBlob: "0x" } as const;
 * unpayable(vault, "erc721", "mintmark"); // "the minting blob of an ERC-721 …"
 */
export function unpayable(
  { owner, amount, mintingBlob }: Pick<VaultContent, "owner" | "amount" | "mintingBlob">,
  standard: Standard,
  scheme: MintingBlobScheme,
): string | null {
  if (BigInt(owner) === 0n) return "the vault belongs to the zero address";
  if (standard === "erc721" && amount !== 1n) return "the amount of an ERC-721 vault is not 1";
  try {
    tokenIdOf(standard, scheme, mintingBlob);
    return null;
  } catch (error) {
    if (error instanceof MintmarkError && error.code === "minting_blob_invalid")
      return error.message;
    throw error;
  }
}

/**
 * The minting blob of a token id in a scheme, one character for each byte: the inverse of {@link
 * tokenIdOf}.
 *
 * @param digits - the id in canonical decimals
 * @example
 * mintingBlobTextOf("imx", "17") // "{17}:{}"
 */
export function mintingBlobTextOf(scheme: MintingBlobScheme, digits: string): string {
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
 * Such tokens read only the first 32 bytes. The minting blob must have exactly 32, so each id has
 * one.
 */
function rawTokenId(mintingBlob: Uint8Array): bigint {
  if (mintingBlob.length === RAW_BYTES) return BigInt(bytesToHex(mintingBlob));
  const form = "the minting blob must be the token id in 32 bytes";
  throw otherScheme("raw32", form, decimalTokenId(mintingBlob) ?? imxId(mintingBlob));
}

/**
 * `{id}:{blueprint}`: the blueprint is all bytes between the second opening brace and the last
 * byte.
 */
function imxTokenId(mintingBlob: Uint8Array): bigint {
  const id = imxId(mintingBlob);
  if (id !== null) return id;
  const form =
    "the minting blob must be {id}:{blueprint}, with the id as a canonical decimal below 2^256";
  const sent =
    decimalTokenId(mintingBlob) ??
    (mintingBlob.length === RAW_BYTES ? BigInt(bytesToHex(mintingBlob)) : null);
  throw otherScheme("imx", form, sent);
}

function imxId(mintingBlob: Uint8Array): bigint | null {
  const idEnd = mintingBlob.indexOf(CLOSE);
  const framed =
    mintingBlob[0] === OPEN &&
    idEnd > 0 &&
    mintingBlob[idEnd + 1] === COLON &&
    mintingBlob[idEnd + 2] === OPEN &&
    mintingBlob.length >= idEnd + 4 &&
    mintingBlob[mintingBlob.length - 1] === CLOSE;
  return framed ? decimalTokenId(mintingBlob.subarray(1, idEnd)) : null;
}

/** @param sent - the id that the minting blob names in another scheme; null if it names none */
function otherScheme(scheme: MintingBlobScheme, form: string, sent: bigint | null): MintmarkError {
  if (sent === null) return mintingBlobInvalid(`${form} (scheme ${scheme})`);
  const mintingBlob = bytesToHex(
    Uint8Array.from(mintingBlobTextOf(scheme, String(sent)), (byte) => byte.charCodeAt(0)),
  );
  return mintingBlobInvalid(
    `${form} (scheme ${scheme}); for the id ${sent}, which was sent, give its tokenId, or the mintingBlob ${mintingBlob}`,
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

function mintingBlobInvalid(detail: string): MintmarkError {
  return new MintmarkError("minting_blob_invalid", detail);
}
