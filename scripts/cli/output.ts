import { MintmarkError } from "../../core/index.ts";

type Row = Readonly<Record<string, unknown>>;

/** One answer on standard output: JSON when asked for, else a table of a list, or the fields of a thing. */
export function print(value: unknown, asJson: boolean): void {
  process.stdout.write(asJson ? `${JSON.stringify(value, null, 2)}\n` : `${text(value)}\n`);
}

/** One error on standard error; with `--json` as `{error: {code, detail, errors}}`. Standard output stays empty. */
export function printError(error: unknown, asJson: boolean): void {
  const detail = error instanceof Error ? error.message : String(error);
  const known = error instanceof MintmarkError ? error : null;
  const errors = known?.issues ?? [];
  if (asJson) {
    const problem = { code: known?.code ?? (error instanceof Error ? error.name : "Error"), detail, errors };
    process.stderr.write(`${JSON.stringify({ error: problem }, null, 2)}\n`);
    return;
  }
  const lines = errors.map((issue) => `  ${issue.pointer.slice(1)}: ${issue.detail}`);
  process.stderr.write(`${[`error: ${printable(detail)}${known ? ` (${known.code})` : ""}`, ...lines].join("\n")}\n`);
}

/** Where long work is: one line that is written over, on a terminal only. */
export function progressLine(): { show(where: string): void; clear(): void } {
  const { stderr } = process;
  if (!stderr.isTTY) return { show: () => {}, clear: () => {} };
  return {
    show: (where) => stderr.write(`\r\x1b[K… ${where}`),
    clear: () => stderr.write("\r\x1b[K"),
  };
}

function text(value: unknown): string {
  if (Array.isArray(value)) return table(value as readonly Row[]);
  if (!isRow(value)) return cell(value);
  const { data, pagination } = value;
  if (Array.isArray(data) && isRow(pagination)) {
    const next = pagination.nextCursor === null ? "" : `\n\nmore: --cursor ${cell(pagination.nextCursor)}`;
    return `${table(data as readonly Row[])}${next}`;
  }
  const fields = flat(value);
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.map(([name, field]) => `${name.padEnd(width)}  ${cell(field)}`).join("\n");
}

/** Fields by name; those of a thing within as `thing.field`. */
function flat(row: Row, prefix = ""): (readonly [name: string, field: unknown])[] {
  return Object.entries(row).flatMap(([name, field]) =>
    isRow(field) ? flat(field, `${prefix}${name}.`) : [[`${prefix}${name}`, field] as const],
  );
}

function table(rows: readonly Row[]): string {
  const [first] = rows;
  if (first === undefined) return "none";
  const names = Object.keys(first);
  const lines = [names, ...rows.map((row) => names.map((name) => cell(row[name])))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((field, at) => field.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.map(cell).join(",") || "-";
  return printable(typeof value === "object" ? JSON.stringify(value) : String(value));
}

/** Names come from others: what moves a terminal's cursor is not shown. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, "\u{fffd}");
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
