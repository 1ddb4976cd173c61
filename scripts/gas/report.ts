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

\`npm run gas\` writes this page. It measures everything below on an in-process chain with the rules of Osaka.
\`npm run gas -- --json\` prints the same for machines. Gas is that of whole transactions: intrinsic gas, calldata at
EIP-7623's prices, execution. Figures are the same in every run.

${parts.join("\n\n")}

${NOTES}`;
}

/** What the tables cannot say; its figures come from a trace of the withdrawal of 20 owners. */
const NOTES = `## Where a withdrawal's gas goes, and why 20 owners at once miss their aim

The table shows the transaction of 20 owners' withdrawals (row "20 owners at once, signatures"). It was traced opcode by
opcode; figures are for each owner.

| | gas |
| --- | ---: |
| the token: two new storage slots and reading them (44,500), \`Transfer\` event, minter role, reading the decimal id, code around it | 49,042 |
| calldata: 519 non-zero and 604 zero bytes, of them 10 siblings 5,120 | 10,723 |
| settlement contract: taking the request out of the batch, calling itself with it, reading and checking it, 10 steps up the tree, code around it | 9,912 |
| — recovering the signer | 3,100 |
| — \`Withdrawn\` event | 2,012 |
| — storage: the vault's bit, a twentieth of a new word (1,095); header, asset, cancellations (800) | 1,895 |
| — hashing: leaf, path, header, message | 978 |
| — the token has code, calls | 337 |
| a twentieth of the transaction's own 21,000 | 1,050 |
| **together** | **79,049** |

A plain mint is 68,452 with its whole transaction. The aim is 1.1 times that: 75,297. The 3,752 above it lie in the
calldata. Twenty neighbours could share one header and the upper siblings: a multiproof, which \`StateProof.verifyVaults\`
has. That would save about 5,000 each. But then one wrong proof fails all twenty, and the protocol has each item fail
alone, its proof included. One owner's twenty stay below the aim without it.

## Why a range of ids costs a leaf for each

Consecutive ids to one owner cost 307 a mint. Nearly all of it is hashing: a leaf and a node for every vault. One leaf
for a whole range would bring that below 120. It is sound if the range stands for an aligned subtree, so that each vault
keeps its slot.

But it is another leaf, another form of every vault proof, and another rule for what \`voidDuplicate\` compares, in the
core, on L1 and in every exit kit. That is a new version of the protocol, not an optimization of this one. Version 1 has
one kind of leaf, so that an owner's proof is one path of hashes.
`;

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
