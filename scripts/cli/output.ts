import { writeFile } from "node:fs/promises";
import { MintmarkError } from "../../core/errors.ts";
import { decimalAmount } from "../../core/protocol/quantized.ts";
import { visible } from "../../core/protocol/text.ts";
import { ApiError } from "../../server/client/problem.ts";
import { jsonText } from "../files.ts";
import { messageOf } from "./errors.ts";
import { UsageError } from "./exit.ts";

/** Replaces hidden characters: names come from others, and could move the terminal's cursor. */
const REPLACEMENT = "\u{fffd}";

type Row = Readonly<Record<string, unknown>>;

/**
 * One result on standard output: JSON if requested, else a table of a list, or the fields of an
 * object with its lists below.
 *
 * @param columns - the columns of a table, such as `give.amount`, or those of an object's lists
 *   that have them; default all
 */
export function print(value: unknown, asJson: boolean, columns?: readonly string[]): void {
  process.stdout.write(asJson ? jsonText(value) : `${text(value, columns)}\n`);
}

export async function writeNamed(file: string, bytes: string | Uint8Array): Promise<void> {
  await writeFile(file, bytes).catch(({ code }) => {
    throw new UsageError(`${file} cannot be written (${code}); name another file`);
  });
}

/**
 * One error on standard error; with `--json` as `{error: {code, detail, errors}}`. Standard output
 * stays empty.
 */
export function printError(error: unknown, asJson: boolean, flags: Flags = {}): void {
  const known = error instanceof MintmarkError || error instanceof ApiError ? error : null;
  const detail = error instanceof ApiError ? error.problem.detail : messageOf(error);
  const errors = known instanceof ApiError ? known.problem.errors : (known?.issues ?? []);
  if (asJson) {
    const problem = { code: known?.code ?? nameOf(error), detail, errors };
    process.stderr.write(`${JSON.stringify({ error: problem }, null, 2)}\n`);
    return;
  }
  const first =
    errors.length === 0 ? detail : `${errors.length} wrong value${errors.length === 1 ? "" : "s"}`;
  const lines = [`error: ${first}${known ? ` (${known.code})` : ""}`];
  // A fault that many entries share is one line.
  const groups = Map.groupBy(
    errors,
    ({ pointer, detail: what }) => `${pointer.replace(/\/\d+/, "/*")} ${what}`,
  );
  for (const [issue, ...more] of groups.values()) {
    if (issue === undefined) continue;
    const count = more.length === 0 ? "" : ` (and ${more.length} more like it)`;
    lines.push(`  ${optionAt(issue.pointer, flags)}: ${issue.detail}${count}`);
  }
  const shown = lines.flatMap((line) => line.split("\n").map((each) => visible(each, REPLACEMENT)));
  process.stderr.write(`${shown.join("\n")}\n`);
}

/** The options of a command, by the fields of its input. */
export type Flags = Readonly<Record<string, string>>;

/** The options of fields that people know by another name. */
const OPTIONS: Flags = { dataAvailabilityMode: "--mode", amountDecimal: "--amount" };

/** The option at a pointer; the pointer's path where there is none. */
function optionAt(pointer: string, flags: Flags): string {
  const path = pointer.slice(1).split("/");
  const field = path.at(-1) ?? "";
  // The API counts units where a person types whole tokens.
  const named = path.length > 1 && field === "amount" ? "units" : field;
  return OPTIONS[field] ?? flags[named] ?? pointer.slice(1);
}

/** The system's code, such as ENOENT, or the error's class. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return "Error";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

/** The progress of long work: one line that is overwritten, on a terminal only. */
export function progressLine(): { show(where: string): void; clear(): void } {
  const write = (text: string) => process.stderr.isTTY && process.stderr.write(`\r\x1b[K${text}`);
  return { show: (where) => write(`… ${where}`), clear: () => write("") };
}

function text(value: unknown, columns?: readonly string[]): string {
  if (Array.isArray(value)) return table(value.map(legible), columns);
  if (!isRow(value)) return cell(value);
  if (isPage(value)) {
    const { nextCursor } = value.pagination;
    return `${table(value.data.map(legible), columns)}${nextCursor === null ? "" : `\n\nmore: --cursor ${cell(nextCursor)}`}`;
  }
  const shown = legible(value);
  const lists = Object.entries(shown).filter(([, field]) => isList(field));
  const fields = flat(
    Object.fromEntries(Object.entries(shown).filter(([, field]) => !isList(field))),
  );
  const width = Math.max(...fields.map(([name]) => name.length));
  const lines = fields.map(([name, field]) => `${name.padEnd(width)}  ${cell(field)}`);
  return [
    lines.join("\n"),
    ...lists.map(([name, list]) => `${name}:\n${listed(list, columns)}`),
  ].join("\n\n");
}

/** Fields that count units, of which `quantum` and `decimals` beside them make whole tokens. */
const AMOUNTS =
  /^(?:amount|quantity|minted|supplyCap|available|withdrawn|(?:available|withdrawn|transferred)Balance)$/;

/**
 * Shows amounts in whole tokens and deadlines as times, which people read; with `--json` they stay
 * units and seconds.
 */
function legible(row: Row): Row {
  if (!isRow(row)) return row;
  const { quantum, decimals, amountDecimal, ...fields } = row;
  const rest: Row = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      isRow(field) ? legible(field) : name === "deadline" ? timeOf(field) : field,
    ]),
  );
  if (quantum === undefined || typeof decimals !== "number")
    return {
      ...rest,
      ...(quantum !== undefined && { quantum }),
      ...(decimals !== undefined && { decimals }),
      ...(amountDecimal !== undefined && { amount: amountDecimal }),
    };
  const units = { quantum: BigInt(String(quantum)), decimals };
  const inUnits = (name: string, field: unknown) =>
    AMOUNTS.test(name) && /^\d+$/.test(String(field));
  const counted = Object.entries(rest).map(([name, field]) => {
    return [name, inUnits(name, field) ? decimalAmount(BigInt(String(field)), units) : field];
  });
  return {
    ...(rest.amount === undefined && { quantum, decimals }),
    ...Object.fromEntries(counted),
  };
}

/** Seconds since 1970 as a time; anything else as it is. */
function timeOf(seconds: unknown): unknown {
  if (!/^\d{1,12}$/.test(String(seconds))) return seconds;
  return new Date(Number(seconds) * 1000).toISOString().replace(".000Z", "Z");
}

interface PageOfRows extends Row {
  readonly data: readonly Row[];
  readonly pagination: Row;
}

function isPage(value: unknown): value is PageOfRows {
  return isRow(value) && Array.isArray(value.data) && isRow(value.pagination);
}

function isList(value: unknown): value is readonly Row[] | PageOfRows {
  return isPage(value) || (Array.isArray(value) && value.some(isRow));
}

function listed(list: unknown, columns?: readonly string[]): string {
  if (isPage(list))
    return `${table(list.data.map(legible))}${list.pagination.nextCursor === null ? "" : "\n… and more"}`;
  const rows = (list as readonly Row[]).map(legible);
  const known = columns?.filter((name) => name in (rows[0] ?? {})) ?? [];
  return table(rows, known.length === 0 ? undefined : known);
}

/** Fields by name; fields of an inner object as `object.field`. */
function flat(row: Row, prefix = ""): (readonly [name: string, field: unknown])[] {
  return Object.entries(row).flatMap(([name, field]) =>
    isRow(field) ? flat(field, `${prefix}${name}.`) : [[`${prefix}${name}`, field] as const],
  );
}

function table(list: readonly Row[], columns?: readonly string[]): string {
  const rows = list.map((row) => ({ ...row, ...Object.fromEntries(flat(row)) }));
  const [first] = list;
  if (first === undefined) return "none";
  const names = columns ?? Object.keys(first);
  const lines = [names, ...rows.map((row) => names.map((name) => cell(row[name])))];
  const widths = names.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const isOfNumbers = names.map((name) =>
    rows.every((row) => /^(?:-|\d+(?:\.\d+)?)$/.test(cell(row[name]))),
  );
  const pad = (field: string, at: number) =>
    field[isOfNumbers[at] ? "padStart" : "padEnd"](widths[at] ?? 0);
  const padded = lines.map((line) => line.map(pad).join("  "));
  return padded.map((line) => line.trimEnd()).join("\n");
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object"))
    return value.map(cell).join(",") || "-";
  return visible(typeof value === "object" ? JSON.stringify(value) : String(value), REPLACEMENT);
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
