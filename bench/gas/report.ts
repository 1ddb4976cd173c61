export type Measurement = ReturnType<typeof measurement>;

export interface Section {
  readonly title: string;
  /** The method, in full sentences: batches, their numbers, new storage slots. */
  readonly method: string;
  readonly unit: "mint" | "withdrawal" | "batch" | "transaction" | "deployment";
  readonly measurements: readonly Measurement[];
}

/**
 * One measured figure.
 *
 * @param transactionGas - of the whole transaction: intrinsic gas, calldata and execution
 * @param count - its mints, withdrawals or batches
 * @param aim - the target for each; null for figures that only serve comparison
 */
export function measurement(
  label: string,
  transactionGas: number,
  count = 1,
  aim: number | null = null,
) {
  return {
    label,
    transactionGas: Math.round(transactionGas),
    count,
    each: transactionGas / count,
    aim,
  };
}

export function asMarkdown(sections: readonly Section[]): string {
  const parts = sections.map(
    (section) => `## ${section.title}\n\n${section.method}\n\n${table(section)}`,
  );
  return `# Gas

\`npm run gas\` writes this page, and \`npm run gas -- --json\` prints it for machines. It measures whole transactions
(intrinsic gas, calldata at EIP-7623's prices, execution) on an in-process chain with the rules of Osaka. Figures are the
same in every run. An aim without "missed" is reached.

${parts.join("\n\n")}
`;
}

/** A figure in another page: a link whose title names the section's column and row. */
const FIGURE = /\[[\d,]+\]\(gas\.md#([a-z0-9-]+)\s"([^":]+): ([^"]+)"\)/g;

/**
 * Writes the figures of docs/gas.md into the links to them that another page has.
 *
 * @param page - its Markdown, with links like `[0](gas.md#transfers "transaction: one transfer")`
 * @param gasPage - the Markdown of docs/gas.md
 * @throws Error for a link that names no figure
 */
export function withFigures(page: string, gasPage: string): string {
  return page.replace(FIGURE, (link: string, section: string, column: string, label: string) => {
    const figure = figureIn(gasPage, section, column, label);
    return link.replace(/[\d,]+/, figure.toLocaleString("en"));
  });
}

/**
 * A figure of docs/gas.md.
 *
 * @param section - the anchor of its section
 * @throws Error when the page has none there
 */
export function figureIn(gasPage: string, section: string, column: string, label: string): number {
  const text = gasPage.split(/^## /m).find((each) => anchorOf(each) === section) ?? "";
  const rows = text.split("\n").filter((line) => line.startsWith("|"));
  const [head = [], ...others] = rows.map((line) => line.split("|").map((cell) => cell.trim()));
  const row = others.find((cells) => cells[1] === label);
  const figure = row?.[head.indexOf(column)];
  if (figure === undefined)
    throw new Error(`docs/gas.md has no figure in ${section} for "${column}: ${label}"`);
  return Number(figure.replaceAll(",", ""));
}

function anchorOf(section: string): string {
  const [title = ""] = section.split("\n");
  return title
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");
}

function table({ unit, measurements }: Section): string {
  const hasAims = measurements.some(({ aim }) => aim !== null);
  // Where each transaction is one of its unit, a second column would only repeat the first.
  const isSplit = measurements.some(({ count }) => count > 1);
  const head = [
    "",
    "transaction",
    ...(isSplit ? [`gas per ${unit}`] : []),
    ...(hasAims ? ["aim"] : []),
  ];
  const rule = head.map((_, column) => (column === 0 ? "---" : "---:"));
  const rows = measurements.map(({ label, transactionGas, each, aim }) => [
    label,
    grouped(transactionGas),
    ...(isSplit ? [grouped(each)] : []),
    ...(hasAims ? [aimOf(each, aim)] : []),
  ]);
  return [head, rule, ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function aimOf(each: number, aim: number | null): string {
  if (aim === null) return "";
  return Math.round(each) <= aim ? `≤ ${grouped(aim)}` : `≤ ${grouped(aim)}, missed`;
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en");
}
