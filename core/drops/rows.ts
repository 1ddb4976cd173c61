import { pipeline } from "node:stream/promises";
import type { CsvError } from "csv-parse";
import { MintmarkError } from "../errors.ts";
import { MINT_FORM, USER_FORM } from "../mint/form.ts";
import { parseJson } from "../mint/json.ts";

/** The formats of a drop's rows. */
export const DROP_FORMATS = ["csv", "ndjson"] as const;
export type DropFormat = (typeof DROP_FORMATS)[number];

/** Fields of a row: of a mint's entry and its recipient. */
const ROW_FIELDS = Object.keys({ ...USER_FORM, ...MINT_FORM });

/**
 * People type CSV files, so their columns are called as on the command line: `amount` counts whole
 * tokens.
 */
const CSV_FIELDS: Readonly<Record<string, string>> = { amount: "amountDecimal", units: "amount" };
const CSV_COLUMNS = ROW_FIELDS.map((field) => columnOf("csv", field));

/** The name that the file's author uses for a field. */
export function columnOf(format: DropFormat, field: string): string {
  const named = Object.entries(CSV_FIELDS).find(([, value]) => value === field);
  return format === "csv" && named !== undefined ? named[0] : field;
}

/**
 * Columns of a CSV file that are fields of a row's metadata; `attribute:Colour` is one of its
 * attributes, and `number:Level` is one that is a number.
 */
const METADATA_COLUMNS: readonly string[] = [
  "name",
  "description",
  "image",
  "external_url",
  "animation_url",
];
const ATTRIBUTE = "attribute:";
const NUMBER = "number:";
/** Begins the name of a column whose cell of the header is empty. */
const UNNAMED = "\0";

export interface Row {
  /** Its line in the file, from 1. A CSV file's header is line 1. */
  readonly row: number;
  /** Approximate bytes in a request. */
  readonly bytes: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A place in a drop that cannot be minted. */
export interface RowError {
  /** Its line; 0 for the whole drop. */
  readonly row: number;
  /** Empty for the whole row. */
  readonly field: string;
  readonly code: string;
  readonly detail: string;
}

/** The fault of a field, in a sentence that names it. */
export function sentenceOf({ field, detail }: Pick<RowError, "field" | "detail">): string {
  return field === "" || detail.startsWith(field) ? detail : `${field} ${detail}`;
}

/** The rows are unreadable from here on. */
export class UnreadableRow extends Error {
  override readonly name = "UnreadableRow";
  readonly row: number;

  constructor(row: number, detail: string) {
    super(detail);
    this.row = row;
  }
}

/** Longest line, in bytes. The longest minting blob takes a hundredth of it. */
const MAX_ROW_BYTES = 64 * 1024;
/** Each cell takes time, an empty one too. */
const MAX_COLUMNS = 1_000;
const TOO_LONG = `the row has more than ${MAX_ROW_BYTES} bytes`;
/** Stands for bytes that are no text. */
const UNREADABLE = "\ufffd";
const UTF16 = "the file is in UTF-16, as spreadsheets save Unicode text; save it";
const NOT_UTF8 = "has bytes that are not UTF-8; save the file as CSV in UTF-8";

/** Resolves when the event loop has served others. */
export type Turn = () => Promise<void>;

/** So many bytes take some milliseconds to read, also where each byte ends a field. */
const BYTES_AT_ONCE = 4 * 1024;
/**
 * Most lines and bytes between two turns, and the milliseconds after which one is due. Each turn is
 * a pass of the event loop, and beside other work a pass takes longer than a few rows.
 */
const A_TURN = { lines: 256, bytes: 4 * BYTES_AT_ONCE, ms: 1 } as const;

/**
 * The rows of a file, in order. Throws `UnreadableRow`.
 *
 * @param turn - awaited after every few hundred rows
 */
export function rowsOf(
  source: AsyncIterable<Uint8Array>,
  format: DropFormat,
  turn: Turn = async () => {},
): AsyncGenerator<Row> {
  const pieces = inTurns(source, turn);
  return format === "csv" ? csvRows(pieces) : ndjsonRows(pieces);
}

async function* inTurns(source: AsyncIterable<Uint8Array>, turn: Turn): AsyncGenerator<Uint8Array> {
  let [lines, bytes, since] = [0, 0, performance.now()];
  for await (const piece of source)
    for (let start = 0; start < piece.length; ) {
      const most = Math.min(BYTES_AT_ONCE, A_TURN.bytes - bytes);
      const read = linesOf(piece.subarray(start, start + most), A_TURN.lines - lines);
      yield piece.subarray(start, start + read.end);
      start += read.end;
      lines += read.lines;
      bytes += read.end;
      const isDue =
        lines === A_TURN.lines || bytes === A_TURN.bytes || performance.now() - since >= A_TURN.ms;
      if (!isDue) continue;
      await turn();
      [lines, bytes, since] = [0, 0, performance.now()];
    }
}

/** Counts the lines that end in a text, up to a most, and tells where the last of them ends. */
function linesOf(text: Uint8Array, most: number): { readonly lines: number; readonly end: number } {
  let end = 0;
  for (let lines = 0; lines < most; lines++) {
    const found = text.indexOf(NEWLINE, end);
    if (found === -1) return { lines, end: text.length };
    end = found + 1;
  }
  return { lines: most, end };
}

/** With more in its buffer, the parser would read several pieces without a turn. */
const ONE_PIECE = { writableHighWaterMark: 1 };

async function* csvRows(source: AsyncIterable<Uint8Array>): AsyncGenerator<Row> {
  // Loaded only for a CSV file, so other commands start without it.
  const { parse, CsvError } = await import("csv-parse");
  const parser = parse({
    bom: true,
    info: true,
    max_record_size: MAX_ROW_BYTES,
    record_delimiter: ["\r\n", "\n"],
    skip_empty_lines: true,
    // Spreadsheets save rows that once had a value.
    skip_records_with_empty_values: true,
    trim: true,
    ...ONE_PIECE,
  });
  const cut: { at?: UnreadableRow } = {};
  const short = shortLines(inOurForm(source), (row) => {
    cut.at = new UnreadableRow(row, TOO_LONG);
  });
  // The parser also reports a failure of the file, where its records are read.
  const feeding = pipeline(short, parser).catch(() => {});
  try {
    let columns: readonly string[] | null = null;
    for await (const { record, info } of parser as AsyncIterable<CsvRecord>)
      if (columns === null) columns = columnsOf(record);
      else yield csvRow(columns, record, info.lines);
  } catch (error) {
    const fault = error instanceof CsvError ? unreadable(error) : error;
    // A row that was cut can break the parser, which is no fault of the file.
    if (cut.at === undefined || !(fault instanceof UnreadableRow) || fault.row < cut.at.row)
      throw fault;
  } finally {
    parser.destroy();
    await feeding;
  }
  if (cut.at !== undefined) throw cut.at;
}

/**
 * Passes a CSV file on once its header shows no other form. The parser would call its quotes wrong.
 */
async function* inOurForm(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let start: Uint8Array | null = new Uint8Array();
  for await (const piece of source) {
    if (start === null) {
      yield piece;
      continue;
    }
    start = Buffer.concat([start, piece]);
    if (!start.includes(NEWLINE) && start.length < BYTES_AT_ONCE) continue;
    requireCsv(start);
    yield start;
    start = null;
  }
  if (start === null) return;
  requireCsv(start);
  yield start;
}

/**
 * Passes pieces on, up to a long line. The parser's own limit counts no empty fields: a line of
 * commas would fill the memory. It ends there, instead of failing, so that the parser still tells
 * of the rows before.
 */
async function* shortLines(
  source: AsyncIterable<Uint8Array>,
  onLong: (line: number) => void,
): AsyncGenerator<Uint8Array> {
  let line = 1;
  let length = 0;
  for await (const piece of source) {
    for (let start = 0; start < piece.length; ) {
      const found = piece.indexOf(NEWLINE, start);
      const end = found === -1 ? piece.length : found;
      length += end - start;
      if (length > MAX_ROW_BYTES) {
        onLong(line);
        yield piece.subarray(0, start);
        return;
      }
      if (found !== -1) {
        line++;
        length = 0;
      }
      start = end + 1;
    }
    yield piece;
  }
}

interface CsvRecord {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

function columnsOf(names: readonly string[]): readonly string[] {
  if (names.length > MAX_COLUMNS)
    throw new UnreadableRow(
      1,
      `the header has more than ${MAX_COLUMNS} columns; leave out the empty ones`,
    );
  const known: readonly string[] = [...CSV_COLUMNS, ...METADATA_COLUMNS];
  if (names.some((name) => name.includes(UNREADABLE)))
    throw new UnreadableRow(1, `the header ${NOT_UTF8}`);
  const unknown = names.find(
    (name) => name !== "" && !known.includes(name) && traitOf(name) === null,
  );
  if (unknown !== undefined) {
    const columns = [...known, `${ATTRIBUTE}…`, `${NUMBER}…`].join(", ");
    const detail = `the header names ${JSON.stringify(unknown.slice(0, 64))}; the columns are ${columns}`;
    throw new UnreadableRow(1, detail);
  }
  // An attribute has one value, as text or as a number.
  const named = names.filter((name) => name !== "").map(targetOf);
  if (new Set(named).size < named.length)
    throw new UnreadableRow(1, "the header names a column twice");
  return names.map((name, i) => (name === "" ? `${UNNAMED}${i + 1}` : name));
}

/** The target of a column: both kinds of columns of an attribute have the same one. */
function targetOf(column: string): string {
  const trait = traitOf(column);
  return trait === null ? column : `${ATTRIBUTE}${trait}`;
}

/**
 * The trait that a column gives; null for another column, and for one without a name of a trait.
 */
function traitOf(column: string): string | null {
  const kind = [ATTRIBUTE, NUMBER].find((begin) => column.startsWith(begin));
  const trait = kind === undefined ? "" : column.slice(kind.length);
  return trait.trim() === "" ? null : trait;
}

/** A header that matches, its quoted cells left out, shows that the file has another form. */
const OTHER_FORMS = [
  [/^[[{]/, "the file is JSON; send one object a line as NDJSON"],
  [
    /^"?sep=/i,
    "the first line names the separator; remove the line, and separate columns by commas",
  ],
  [/^[^,]*;/, "the columns are separated by semicolons; separate them by commas"],
  [/^[^,]*\t/, "the columns are separated by tabs; separate them by commas"],
  [/\r./s, "the lines end with CR alone; end them with LF or CR LF"],
] as const;

/** Refuses a file whose start has another form than CSV. */
function requireCsv(start: Uint8Array): void {
  if (isUtf16(start)) throw new UnreadableRow(1, `${UTF16} as CSV in UTF-8`);
  const text = Buffer.from(start)
    .toString()
    .replace(/^\ufeff/, "");
  const [line = ""] = text.trimStart().split("\n", 1);
  // The fault is in its bytes.
  if (line.includes(UNREADABLE)) return;
  const bare = /^"sep=/i.test(line) ? line : line.replaceAll(/"[^"]*"/g, "");
  const fault = OTHER_FORMS.find(([form]) => form.test(bare));
  if (fault !== undefined) throw new UnreadableRow(1, fault[1]);
}

function csvRow(columns: readonly string[], record: readonly string[], row: number): Row {
  const fields: Record<string, unknown> = {};
  const metadata: Record<string, unknown> = {};
  const attributes: object[] = [];
  let bytes = 0;
  for (const [i, text] of record.entries()) {
    if (text === "") continue;
    const name = columns[i] ?? "";
    if (text.includes(UNREADABLE)) throw new UnreadableRow(row, `${name} ${NOT_UTF8}`);
    if (name.startsWith(UNNAMED))
      throw new UnreadableRow(
        row,
        `column ${name.slice(UNNAMED.length)} has a value, and no name in the header`,
      );
    bytes += name.length + text.length + 6;
    const trait = traitOf(name);
    if (name === "metadata")
      fields[name] = readObject(Buffer.from(text), row, () => "metadata is not a JSON object");
    else if (METADATA_COLUMNS.includes(name)) metadata[name] = text;
    else if (trait !== null)
      attributes.push({
        trait_type: trait,
        value: name.startsWith(NUMBER) ? readNumber(text, row, name) : text,
      });
    else
      fields[CSV_FIELDS[name] ?? name] =
        name === "quantity" && /^\d{1,15}$/.test(text) ? Number(text) : text;
  }
  const named = { ...metadata, ...(attributes.length > 0 && { attributes }) };
  if (Object.keys(named).length > 0)
    fields.metadata = joined(fields.metadata as Fields | undefined, named, row);
  return { row, bytes, fields };
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The metadata of a row's `metadata` cell with that of its other columns, and the attributes of
 * both. Nobody could say which of two values for the same thing is meant, so they are refused.
 */
function joined(cell: Fields = {}, columns: Fields, row: number): Fields {
  const twice = (what: string) =>
    new UnreadableRow(row, `${what} is in the metadata cell and in a column; give it once`);
  const both = Object.keys(columns).find(
    (name) => name !== "attributes" && Object.hasOwn(cell, name),
  );
  if (both !== undefined) throw twice(both);
  const { attributes: others = [] } = cell;
  const { attributes: own } = columns as { attributes?: readonly { trait_type: string }[] };
  if (own === undefined) return { ...cell, ...columns };
  if (!Array.isArray(others))
    throw new UnreadableRow(row, "the attributes of the metadata cell are not a list");
  const known = new Set(others.map((attribute: Fields | null) => attribute?.trait_type));
  const trait = own.find(({ trait_type }) => known.has(trait_type))?.trait_type;
  if (trait !== undefined) throw twice(`the attribute ${JSON.stringify(trait)}`);
  return { ...cell, ...columns, attributes: [...others, ...own] };
}

const QUOTE_WITHIN = "a quote stands within a field; double it, and quote the whole field";
const QUOTE_BEFORE =
  "a quoted field goes on after its last quote; separate fields by commas, and double quotes within them";
/** The parser's codes in words for the file's author. */
const MEANINGS: Readonly<Record<string, string>> = {
  CSV_RECORD_INCONSISTENT_FIELDS_LENGTH: "the row has more or fewer fields than the header",
  CSV_MAX_RECORD_SIZE: TOO_LONG,
  CSV_QUOTE_NOT_CLOSED: "a quoted field does not end",
  CSV_INVALID_CLOSING_QUOTE: QUOTE_BEFORE,
  INVALID_OPENING_QUOTE: QUOTE_WITHIN,
};

function unreadable({ code, message, lines }: CsvError): UnreadableRow {
  return new UnreadableRow(typeof lines === "number" ? lines : 1, MEANINGS[code] ?? message);
}

async function* ndjsonRows(source: AsyncIterable<Uint8Array>): AsyncGenerator<Row> {
  let rest: Uint8Array = new Uint8Array();
  let row = 0;
  let isFirst = true; // No line with anything in it was read yet
  const readLine = (line: Uint8Array) => {
    const read = ndjsonRow(line, row, isFirst);
    if (read !== null) isFirst = false;
    return read;
  };
  for await (const chunk of source) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      row++;
      const read = readLine(bytes.subarray(start, end));
      if (read !== null) yield read;
      start = end + 1;
    }
    rest = bytes.subarray(start);
    if (rest.length > MAX_ROW_BYTES) throw new UnreadableRow(row + 1, TOO_LONG);
  }
  row++;
  const last = readLine(rest);
  if (last !== null) yield last;
}

const NEWLINE = 0x0a;

/** Whether a file begins with the byte order mark of UTF-16. */
function isUtf16([first, second]: Uint8Array): boolean {
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
}

const BOM = Buffer.from("\ufeff");
const NO_OBJECT = "the line is not a JSON object";
/** A trimmed line that matches, and is no JSON object, shows why. */
const OTHER_LINES = [
  [/\ufffd/, "the line has bytes that are not UTF-8; save the file in UTF-8"],
  [/\}\s*,$/, "a comma follows the object; write one object a line, without commas between"],
  [/\}\r+\{/, "the lines end with CR alone; end them with LF or CR LF"],
  [/\}\s*\{/, "the line has several objects; write one object a line"],
  [/^\{(?:.*[^}])?$/s, "the object does not end in its line; write each object in one line"],
  [/^(?=[^,;\t{}]*[,;\t])[^{}]+$/, `${NO_OBJECT}; send a CSV file as CSV`],
] as const;
const ARRAY =
  "the file is a JSON array; write one object a line, without brackets and commas between";

function lineFault(line: Uint8Array, isFirst: boolean): string {
  if (isFirst && isUtf16(line)) return `${UTF16} in UTF-8`;
  const text = Buffer.from(line).toString().trim();
  if (isFirst && text.startsWith("[")) return ARRAY;
  return OTHER_LINES.find(([form]) => form.test(text))?.[1] ?? NO_OBJECT;
}

/** null for an empty line. */
function ndjsonRow(whole: Uint8Array, row: number, isFirst: boolean): Row | null {
  const line = row === 1 && BOM.equals(whole.subarray(0, 3)) ? whole.subarray(3) : whole;
  if (line.length > MAX_ROW_BYTES) throw new UnreadableRow(row, TOO_LONG);
  if (line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) return null;
  const fields = readObject(line, row, () => lineFault(line, isFirst));
  const unknown = Object.keys(fields).find((name) => !ROW_FIELDS.includes(name));
  if (unknown !== undefined) {
    const detail = `the field ${JSON.stringify(unknown.slice(0, 64))} is unknown; the fields are ${ROW_FIELDS.join(", ")}`;
    throw new UnreadableRow(row, detail);
  }
  return { row, bytes: line.length, fields };
}

/** Refuses what JSON would not hold exactly. */
function readNumber(text: string, row: number, name: string): number {
  const otherwise = `${name} is not a number that JSON holds exactly, such as 12 or 0.5`;
  try {
    const value = parseJson(Buffer.from(text));
    if (typeof value === "number") return value;
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
  }
  throw new UnreadableRow(row, otherwise);
}

/** @param otherwise - tells the fault of text that is no JSON object */
function readObject(
  text: Uint8Array,
  row: number,
  otherwise: () => string,
): Readonly<Record<string, unknown>> {
  try {
    const value = parseJson(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof MintmarkError)) throw error;
    const [first] = error.issues;
    throw new UnreadableRow(
      row,
      first === undefined ? otherwise() : `${first.pointer.slice(1)}: ${first.detail}`,
    );
  }
  throw new UnreadableRow(row, otherwise());
}
