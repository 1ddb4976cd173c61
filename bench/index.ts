import { parseArgs } from "node:util";
import { runCommand } from "../scripts/cli/errors.ts";
import { progressLine } from "../scripts/cli/output.ts";
import { againstText, measureAgainst } from "./against.ts";
import { blobsSection } from "./blobs.ts";
import { clusterSection, takeoverSection } from "./cluster.ts";
import { engineSection, findingSection } from "./engine.ts";
import { FLAG, resultOf, run, type Section } from "./harness.ts";
import { keccakSection } from "./keccak.ts";
import { memberSection } from "./member.ts";
import { ordersSection } from "./orders.ts";
import { machine, type Report, type SectionResult, sectionsText, writeSection } from "./report.ts";
import { transfersSection } from "./transfers.ts";
import { treesSection } from "./trees.ts";

/** `npm run bench`: measures sections by name, prints tables with ratios, or JSON. */

const SECTIONS: readonly Section[] = [
  keccakSection,
  treesSection,
  engineSection,
  transfersSection,
  ordersSection,
  memberSection,
  blobsSection,
  findingSection,
  clusterSection,
  takeoverSection,
];

const USAGE = `Usage: npm run bench -- [options]

  --only a,b   measure only these sections: ${SECTIONS.map(({ name }) => name).join(", ")}
  --json       print the results as JSON and nothing else
  --write      write the sections into docs/bench.md
  --against <revision>   instead, compare mints with another revision's, in turns on this machine: some minutes
  --help       print this
`;

const line = progressLine();

await runCommand(async () => {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      json: FLAG,
      write: FLAG,
      against: { type: "string" },
      help: FLAG,
    },
  });
  if (values.help) return void process.stdout.write(USAGE);
  if (values.against !== undefined) {
    const turns = await measureAgainst(values.against, line.show);
    line.clear();
    const text = values.json ? JSON.stringify(turns, null, 2) : againstText(values.against, turns);
    return void process.stdout.write(`${text}\n`);
  }
  const results: SectionResult[] = [];
  const report: Report = { machine: machine(), sections: results };
  const sections = chosen(values.only);
  for (const section of sections) {
    const isAlone = sections.length === 1;
    const result = isAlone ? await resultOf(section, line.show) : await inOwnProcess(section);
    line.clear();
    results.push(result);
    if (!values.json) process.stdout.write(`\n${sectionsText([result])}`);
  }
  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  if (!values.write) return;
  for (const result of results) await writeSection("bench.md", result, report.machine);
});

function chosen(only: string | undefined): readonly Section[] {
  if (only === undefined) return SECTIONS;
  return only.split(",").map((name) => {
    const section = SECTIONS.find((candidate) => candidate.name === name);
    if (section === undefined)
      throw new Error(`there is no section ${JSON.stringify(name)}\n\n${USAGE}`);
    return section;
  });
}

/** In a separate process, so no section gets another's heap and compiled code. */
async function inOwnProcess({ name }: Section): Promise<SectionResult> {
  const args = ["--only", name, "--json"];
  const output = await run("./index.ts", args, { options: process.execArgv });
  const [result] = (JSON.parse(output) as Report).sections;
  if (result === undefined) throw new Error(`section ${name} has not answered`);
  return result;
}
