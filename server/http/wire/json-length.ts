/**
 * The length of the shortest JSON text of `value`, in UTF-16 units; NaN when another text could be shorter: see below.
 * A text of this length without a backslash lost nothing in parsing: white space, a repeated key, or a number's rounded
 * digits would all have made it longer.
 *
 * Only exponents make a text shorter than the digits of a whole number, from three zeros on: `1e3`. So such numbers
 * give NaN, and so do fractions, numbers past 2^53, the key `__proto__`, and nesting past `maxDepth`.
 */
export function shortestLength(value: unknown, maxDepth: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value === "number") return lengthOfNumber(value);
  if (typeof value === "boolean") return value ? 4 : 5;
  if (value === null) return 4;
  if (typeof value !== "object" || maxDepth === 0) return Number.NaN;
  if (Array.isArray(value)) return lengthOfArray(value, maxDepth);
  let length = 1;
  for (const key in value) {
    if (key === "__proto__") return Number.NaN;
    // Two quotes, a colon, and a comma or the closing brace.
    length += key.length + 4 + shortestLength((value as Record<string, unknown>)[key], maxDepth - 1);
  }
  return Math.max(2, length);
}

function lengthOfArray(items: readonly unknown[], maxDepth: number): number {
  let length = 1;
  for (const item of items) length += 1 + shortestLength(item, maxDepth - 1);
  return Math.max(2, length);
}

function lengthOfNumber(value: number): number {
  if (value >= 0 && value < 10 && Number.isInteger(value)) return 1;
  if (!Number.isSafeInteger(value) || value % 1000 === 0) return Number.NaN;
  let length = value < 0 ? 2 : 1;
  for (let bound = 10; Math.abs(value) >= bound; bound *= 10) length += 1;
  return length;
}
