import { readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";

export interface Column {
  readonly key: string;
  readonly label: string;
  readonly unit: string;
  readonly better: "lower" | "higher";
}

export interface Row {
  readonly label: string;
  /** Short form of the label for a curve, in a section whose rows are its points. */
  readonly tick?: string;
  /** A note that readers need to compare this row. */
  readonly note?: string;
  readonly ours: boolean;
  /** Values by column key; null where the subject cannot do it. */
  readonly values: Readonly<Record<string, number | null>>;
}

export interface SectionResult {
  readonly name: string;
  readonly title: string;
  readonly method: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Label of the reference row; null for a table without ratios. */
  readonly reference: string | null;
}

/** The results of a run; the output of `--json`. */
export interface Report {
  readonly machine: ReturnType<typeof machine>;
  readonly sections: readonly SectionResult[];
}

export function machine() {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? "an unknown processor",
    cores: cores.length,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    // Threads of other programs that wanted a core in the minute before. Above 0, wall-clock
    // figures suffer.
    load: loadavg()[0] ?? 0,
  };
}

export function sectionsText(sections: readonly SectionResult[]): string {
  const texts = sections.map((section) => {
    const noted = section.rows.filter(({ note }) => note !== undefined);
    const notes = [...Map.groupBy(noted, ({ note }) => note)].map(([note, rows]) =>
      wrapped(`- ${subjectsOf(rows).join("; ")}: ${note}.`),
    );
    const remarks = notes.length === 0 ? [] : ["", ...notes];
    return [
      `## ${section.title}`,
      "",
      wrapped(section.method),
      "",
      markdownTable(section),
      ...remarks,
      "",
    ];
  });
  return texts.map((lines) => lines.join("\n")).join("\n");
}

/** The names that a note is about: rows of one library with several hashes share its name. */
function subjectsOf(rows: readonly Row[]): string[] {
  if (rows.length === 1) return rows.map(({ label }) => label);
  return [
    ...new Set(
      rows.map(({ label }) => label.replace(/, (?:Mintmark's keccak|@noble\/hashes)$/, "")),
    ),
  ];
}

/** The section of `npm run bench:scale` in docs/bench.md. */
export const LARGE_STORES = {
  name: "scale",
  title: "Large stores",
  method:
    "`npm run bench:scale` fills a validium store by requests of 1,000, as in the section on mints, for 1,000 users. " +
    "Each step is a process of its own; memory is its resident set, the tables that LevelDB maps included, which the " +
    "kernel drops when others need it; the process's own is without them. Look-ups are at random places. `verify` runs beside its engine. CPU times vary less with " +
    "the machine's load than waits and seconds do.",
} as const;

/** The sections of `npm run bench:http -- --tail` in docs/bench.md. */
export const TAIL_TITLES = [
  "Single mints beside everything else",
  "Where the slowest hundredth waited",
] as const;

/**
 * Puts a section into a page of docs/, in place of the one with its title, or at the end. It tells
 * when and where it was measured.
 */
export async function writeSection(
  file: string,
  section: SectionResult,
  { cpu, cores, node, load }: ReturnType<typeof machine>,
): Promise<void> {
  const page = new URL(`../docs/${file}`, import.meta.url);
  const text = await readFile(page, "utf8");
  const known = sectionIn(text, section.title);
  const where = `${cpu}, ${cores} cores, Node ${node}, ${new Date().toISOString().slice(0, 10)}, load ${load.toFixed(1)}.`;
  const written = `${sectionsText([section]).trimEnd()}\n\n${wrapped(where)}\n`;
  await writeFile(
    page,
    known === null ? `${text.trimEnd()}\n\n${written}` : text.replace(known, () => written),
  );
}

/** The text of a section, up to the next one; null when the page has none of that title. */
function sectionIn(page: string, title: string): string | null {
  const start = page.indexOf(`## ${title}\n`);
  if (start < 0) return null;
  const next = page.indexOf("\n## ", start);
  return page.slice(start, next < 0 ? undefined : next);
}

/** Writes the page of a command's results into docs/. `about` tells how to read them. */
export async function writePage(
  { file, title, command, about }: Readonly<Record<"file" | "title" | "command" | "about", string>>,
  { machine, sections }: Report,
): Promise<void> {
  const { cpu, cores, node, platform, load } = machine;
  const page = new URL(`../docs/${file}`, import.meta.url);
  const where = `${cpu}, ${cores} cores, ${platform}, Node ${node}, ${new Date().toISOString().slice(0, 10)}`;
  const text = [
    `# ${title}`,
    "",
    wrapped(`\`${command} -- --write\` wrote this page on ${where}.`),
    wrapped(`The load average when the run began was ${load.toFixed(1)}. ${about}`),
    "",
    sectionsText(sections),
  ];
  await writeFile(page, text.join("\n"));
}

const LINE = 120;

type Grid = readonly (readonly string[])[];

/**
 * A section as a Markdown table, also readable in a terminal: each figure, and the ratio to the
 * reference. A table that is too wide is transposed if it has few rows; else a list before it names
 * its columns.
 */
export function markdownTable(result: SectionResult): string {
  const columns = result.columns.map(({ label, unit }) => `${label}, ${unit}`);
  const rows = result.rows.map(({ label, ours }) => (ours ? `**${label}**` : label));
  const cells = result.rows.map((row) => result.columns.map((column) => cell(result, row, column)));
  const table = lines(["", ...columns], rows, cells);
  if (fits(table)) return table.join("\n");
  const points = result.rows.map(({ tick }, i) => tick ?? rows[i] ?? "");
  const turned = columns.map((_, i) => cells.map((row) => row[i] ?? ""));
  const turnedTable = lines(["", ...points], columns, turned);
  if (fits(turnedTable)) return turnedTable.join("\n");
  const letters = columns.map((_, i) => String.fromCharCode("A".charCodeAt(0) + i));
  const names = columns.map((name, i) => `- ${letters[i]}: ${name}`);
  return [...names, "", ...lines(["", ...letters], rows, cells)].join("\n");
}

/** The lines of a table, with aligned columns if possible. */
function lines(header: readonly string[], rows: readonly string[], cells: Grid): string[] {
  const body = rows.map((label, i) => [label, ...(cells[i] ?? [])]);
  const padded = aligned(header, body, (i) =>
    Math.max(...[header, ...body].map((line) => line[i]?.length ?? 0), 3),
  );
  return fits(padded) ? padded : aligned(header, body, () => 3);
}

function aligned(
  header: readonly string[],
  body: Grid,
  widthOf: (column: number) => number,
): string[] {
  const pad = (text: string, i: number) =>
    i === 0 ? text.padEnd(widthOf(i)) : text.padStart(widthOf(i));
  const rule = header.map((_, i) =>
    i === 0 ? "-".repeat(widthOf(i)) : `${"-".repeat(widthOf(i) - 1)}:`,
  );
  return [header.map(pad), rule, ...body.map((line) => line.map(pad))].map(
    (line) => `| ${line.join(" | ")} |`,
  );
}

function fits(text: readonly string[]): boolean {
  return text.every(({ length }) => length <= LINE);
}

/** Wraps a paragraph, or a list item, into lines. */
function wrapped(text: string): string {
  const indent = text.startsWith("- ") ? "  " : "";
  const found: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > LINE) {
      found.push(line);
      line = indent + word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...found, line].join("\n");
}

/** A figure with three significant digits, or all digits before the point. */
function figure(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** A figure, and how many times as good the reference row is, where there is one. */
function cell(result: SectionResult, { values }: Row, { key, better }: Column): string {
  const value = values[key] ?? null;
  if (value === null) return "–";
  const reference =
    result.rows.find(({ label }) => label === result.reference)?.values[key] ?? null;
  if (reference === null) return figure(value);
  return `${figure(value)} (${figure(better === "lower" ? value / reference : reference / value)}×)`;
}
