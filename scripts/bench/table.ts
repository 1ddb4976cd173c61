import { type Column, type Row, ratio, type SectionResult } from "./section.ts";

/** A section as a Markdown table, which reads in a terminal too: each figure, and how many times better the reference is. */
export function markdownTable(result: SectionResult): string {
  const header = ["", ...result.columns.map(({ label, unit }) => `${label}, ${unit}`)];
  const body = result.rows.map((row) => [
    row.ours ? `**${row.label}**` : row.label,
    ...result.columns.map((column) => cell(result, row, column)),
  ]);
  const widths = header.map((_, i) => Math.max(...[header, ...body].map((line) => line[i]?.length ?? 0), 3));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((text, i) => (i === 0 ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0))).join(" | ")} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(header), rule, ...body.map(line)].join("\n");
}

/** What a reader must know of the rows, as a Markdown list; empty when there is nothing. */
export function notes(result: SectionResult): string {
  return result.rows
    .filter(({ note }) => note !== undefined)
    .map(({ label, note }) => `- ${label}: ${note}.`)
    .join("\n");
}

/** A figure with three significant digits or all before the point. */
export function figure(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function cell(result: SectionResult, row: Row, column: Column): string {
  const value = row.values[column.key] ?? null;
  if (value === null) return "–";
  const times = ratio(result, row, column);
  return times === null ? figure(value) : `${figure(value)} (${figure(times)}×)`;
}
