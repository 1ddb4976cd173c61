/** JSON for machines: integers that a double cannot hold as decimal strings, one document, one line at its end. */
export function jsonText(value: unknown): string {
  const plain = (_: string, part: unknown) => (typeof part === "bigint" ? part.toString() : part);
  return `${JSON.stringify(value, plain, 2)}\n`;
}
