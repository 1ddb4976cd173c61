import type { Measurement, Section } from "./measurement.ts";

/** Tables for a terminal. */
export function asText(sections: readonly Section[]): string {
  return sections.map((section) => `${section.title}\n${textTable(rows(section))}`).join("\n\n");
}

/** docs/gas.md. */
export function asMarkdown(sections: readonly Section[]): string {
  const parts = sections.map(
    (section) => `## ${section.title}\n\n${section.method}\n\n${markdownTable(rows(section))}`,
  );
  return `# Gas

Written by \`npm run gas\`, which measures everything below on an in-process chain with the rules of Osaka; \`npm run gas -- --json\` prints the same
for machines. Gas is that of whole transactions: intrinsic gas, calldata at EIP-7623's prices, execution. Figures are the same in every run.

${parts.join("\n\n")}
`;
}

function rows({ unit, measurements }: Section): string[][] {
  const hasAims = measurements.some(({ aim }) => aim !== null);
  const head = ["", "transaction", `gas per ${unit}`, ...(hasAims ? ["aim", ""] : [])];
  return [head, ...measurements.map((row) => [...cells(row), ...(hasAims ? aimCells(row) : [])])];
}

function cells({ label, transactionGas, each }: Measurement): string[] {
  return [label, grouped(transactionGas), grouped(each)];
}

function aimCells({ each, aim }: Measurement): string[] {
  if (aim === null) return ["", ""];
  return [`≤ ${grouped(aim)}`, each <= aim ? "reached" : "missed"];
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function textTable(table: readonly (readonly string[])[]): string {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ")
      .trimEnd();
  return table.map((row) => `  ${line(row)}`).join("\n");
}

function markdownTable([head = [], ...body]: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]) => `| ${row.join(" | ")} |`;
  const rule = head.map((_, column) => (column === 0 ? "---" : "---:"));
  return [line(head), line(rule), ...body.map(line)].join("\n");
}
