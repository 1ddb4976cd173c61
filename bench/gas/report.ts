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
export function measurement(label: string, transactionGas: number, count = 1, aim: number | null = null) {
  return { label, transactionGas: Math.round(transactionGas), count, each: transactionGas / count, aim };
}

export function asMarkdown(sections: readonly Section[]): string {
  const parts = sections.map((section) => `## ${section.title}\n\n${section.method}\n\n${table(section)}`);
  return `# Gas

\`npm run gas\` writes this page. It measures everything below on an in-process chain with the rules of Osaka.
\`npm run gas -- --json\` prints the same for machines. Gas is that of whole transactions: intrinsic gas, calldata at
EIP-7623's prices, execution. Figures are the same in every run.

${parts.join("\n\n")}

${NOTES}`;
}

const NOTES = `## How 20 owners share a withdrawal's gas

Withdrawals of one batch and one token form a group. They share the header and the asset, so a transaction carries and
checks these once. The items are packed without padding. Each item still has a call and a gas limit of its own, so an
item that fails costs the others nothing. A batch of one pays for the group and for that call: its owner uses
\`withdraw\`, which has neither.

A multiproof would save about 5,000 more for each of twenty neighbours, since they share the upper siblings. But then
one wrong proof fails all twenty, and the protocol has each item fail alone, its proof included.

## Why a range of ids costs a leaf for each

Consecutive ids to one owner cost 307 a mint. Nearly all of it is hashing: a leaf and a node for every vault. One leaf
for a whole range would bring that below 120. It is sound if the range stands for an aligned subtree, so that each vault
keeps its slot.

But it is another leaf, another form of every vault proof, and another rule for what \`voidDuplicate\` compares, in the
core, on L1 and in every exit kit. That is a new version of the protocol, not an optimization of this one. Version 1 has
one kind of leaf, so that an owner's proof is one path of hashes.
`;

function table({ unit, measurements }: Section): string {
  const hasAims = measurements.some(({ aim }) => aim !== null);
  const head = ["", "transaction", `gas per ${unit}`, ...(hasAims ? ["aim", ""] : [])];
  const rule = head.map((_, column) => (column === 0 ? "---" : "---:"));
  const rows = measurements.map(({ label, transactionGas, each, aim }) => {
    const reached = aim === null ? ["", ""] : [`≤ ${grouped(aim)}`, each <= aim ? "reached" : "missed"];
    return [label, grouped(transactionGas), grouped(each), ...(hasAims ? reached : [])];
  });
  return [head, rule, ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en");
}
