/** Amounts on the mint path: two 32-bit words in typed arrays instead of a bigint object. All are below 2^63. */

const WORD = 2 ** 32;
/** The high word of 2^63 - 1. */
const MAX_HIGH = 0x7fff_ffff;

export function highWord(amount: bigint): number {
  return Number(amount >> 32n);
}

export function lowWord(amount: bigint): number {
  return Number(amount & 0xffff_ffffn);
}

/** The amount of two words, or the sum of up to 2^20 amounts of the sums of their words. */
export function amountOf(high: number, low: number): bigint {
  return high === 0 ? BigInt(low) : (BigInt(high) << 32n) + BigInt(low);
}

/** Whether the sum of two amounts is a valid amount. */
export function addsUp(highA: number, lowA: number, highB: number, lowB: number): boolean {
  return highA + highB + (lowA + lowB >= WORD ? 1 : 0) <= MAX_HIGH;
}

/** Bytes of an amount in batch data: 0 for an amount of 1. */
export function widthOfWords(high: number, low: number): number {
  if (high > 0) return 4 + byteWidth(high);
  return low === 1 ? 0 : byteWidth(low);
}

/** Bytes of the sum of two amounts for which {@link addsUp} holds. */
export function widthOfSum(
  high: number,
  low: number,
  more: { readonly amountHigh: number; readonly amountLow: number },
): number {
  const sum = low + more.amountLow;
  return widthOfWords(high + more.amountHigh + (sum >= WORD ? 1 : 0), sum % WORD);
}

function byteWidth(value: number): number {
  return (32 - Math.clz32(value) + 7) >>> 3;
}
