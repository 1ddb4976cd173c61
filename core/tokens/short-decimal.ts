const ZERO = 0x30;
const NINE = 0x39;
/** Decimal digits that a double holds exactly. */
const EXACT_DIGITS = 15;

/** The number that a canonical decimal of 1 to 15 digits spells in ASCII; -1 for any other bytes. */
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
