import type { Hex } from "viem";

/**
 * The elements of docs/protocol.md 4 on hex and decimal text; shares nothing with the core's reader
 * and writer.
 */

export interface NaiveVault {
  readonly assetIndex: number;
  readonly owner: Hex;
  readonly amount: bigint;
  readonly mintingBlob: Hex;
}

const DECIMAL = /^(?:0|[1-9][0-9]{0,77})$/;

/** A vault's head and continuations; null when no form holds it. */
export function naiveElements(
  { assetIndex, owner, amount, mintingBlob }: NaiveVault,
  continuation: number,
): Hex[] | null {
  const start = uint(assetIndex, 1) + owner.slice(2);
  const bytes = mintingBlob.slice(2);
  const pointer = uint(continuation, 2);
  if (bytes === "") return [`0x01${start}${uint(amount, 10)}`];
  const spelt = spelling(bytes);
  if (spelt !== null && amount === 1n) {
    const [kind, id] = spelt;
    if (id < 2n ** 80n) return [`0x0${2 + kind}${start}${uint(id, 10)}`];
    return [
      `0x0${6 + kind}${start}${pointer}${uint(id / 2n ** 248n, 8)}`,
      `0x0a${uint(id % 2n ** 248n, 31)}`,
    ];
  }
  if (spelt?.[0] === 0 && spelt[1] < 2n ** 40n && amount < 2n ** 40n) {
    return [`0x05${start}${uint(amount, 5)}${uint(spelt[1], 5)}`];
  }
  const content = uint(bytes.length / 2, 1) + bytes;
  if (content.length > 124) return null;
  const rest =
    content.length <= 62
      ? [content.padEnd(62, "0")]
      : [content.slice(0, 62), content.slice(62).padEnd(62, "0")];
  return [`0x09${start}${pointer}${uint(amount, 8)}`, ...rest.map((part): Hex => `0x0a${part}`)];
}

function spelling(bytes: string): readonly [kind: number, id: bigint] | null {
  const text = Buffer.from(bytes, "hex").toString("latin1");
  const decimal = decimalOf(text);
  if (decimal !== null) return [0, decimal];
  const imx = decimalOf(/^\{([^}]*)\}:\{\}$/.exec(text)?.[1] ?? "");
  if (imx !== null) return [1, imx];
  return bytes.length === 64 ? [2, BigInt(`0x${bytes}`)] : null;
}

function decimalOf(text: string): bigint | null {
  return DECIMAL.test(text) && BigInt(text) < 2n ** 256n ? BigInt(text) : null;
}

function uint(value: number | bigint, bytes: number): string {
  return value.toString(16).padStart(2 * bytes, "0");
}
