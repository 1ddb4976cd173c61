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

\`npm run gas\` writes this page. It measures everything below on an in-process chain with the rules of Osaka.
\`npm run gas -- --json\` prints the same for machines. Gas is that of whole transactions: intrinsic gas, calldata at
EIP-7623's prices, execution. Figures are the same in every run. [Contracts](contracts.md) tells where some of it goes.

${parts.join("\n\n")}
`;
}

function table({ unit, measurements }: Section): string {
  const hasAims = measurements.some(({ aim }) => aim !== null);
  const head = ["", "transaction", `gas per ${unit}`, ...(hasAims ? ["aim", ""] : [])];
  const rule = head.map((_, column) => (column === 0 ? "---" : "---:"));
  const rows = measurements.map(({ label, transactionGas, each, aim }) => {
    const reached =
      aim === null
        ? ["", ""]
        : [`≤ ${grouped(aim)}`, Math.round(each) <= aim ? "reached" : "missed"];
    return [label, grouped(transactionGas), grouped(each), ...(hasAims ? reached : [])];
  });
  return [head, rule, ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en");
}
