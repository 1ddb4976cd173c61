import { type Hex, hexToBytes } from "../../../core/protocol/verifier.ts";

/** The beginning and the end of a long id, a hash or an address. */
export function brief(id: string): string {
  return id.length <= 18 ? id : `${id.slice(0, 8)}…${id.slice(-6)}`;
}

/** The identifier text of a minting blob, or its hex if not printable; empty for an ERC-20. */
export function mintingBlobText(mintingBlob: Hex): string {
  if (mintingBlob === "0x") return "none";
  const text = new TextDecoder().decode(hexToBytes(mintingBlob));
  return /^[\x20-\x7e]+$/.test(text) ? text : mintingBlob;
}

/** Seconds since 1970 as a time in the visitor's language. */
export function moment(seconds: bigint): string {
  return new Date(Number(seconds) * 1000).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "medium",
  });
}

/** Decimal text with its thousands grouped: `12500.5` as `12,500.5`. */
export function grouped(decimal: string): string {
  const [whole = "", fraction] = decimal.split(".");
  return `${BigInt(whole).toLocaleString("en")}${fraction === undefined ? "" : `.${fraction}`}`;
}

/** A count with its noun: `1 vault`, `3 vaults`. */
export function counted(count: number | bigint, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString()} ${count === 1 || count === 1n ? noun : plural}`;
}

/**
 * An error as a sentence. Wallets reject with plain objects (EIP-1193); 4001 is the user's refusal.
 */
export function sentenceOf(error: unknown): string {
  const { code, message } = (error ?? {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  if (code === 4001) return "You declined the request in your wallet.";
  if (code === -32002) return "Your wallet already shows a request. Open the wallet and answer it.";
  if (typeof message !== "string" || message === "") return "Something failed without a reason.";
  return error instanceof Error ? message : `Your wallet refused: ${message}`;
}
