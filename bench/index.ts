import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { againstText, measureAgainst } from "./against.ts";
import { blobsSection } from "./blobs.ts";
import { clusterSection } from "./cluster.ts";
import { engineSection } from "./engine.ts";
import { findingSection } from "./finding.ts";
import { keccakSection } from "./keccak.ts";
import { machine, page, type Report, sectionText } from "./report.ts";
import type { Extent, Section, SectionResult } from "./section.ts";
import { takeoverSection } from "./takeover.ts";
import { transfersSection } from "./transfers.ts";
import { treesSection } from "./trees.ts";

/** `npm run bench`: measures sections by name, prints tables with ratios, or JSON. */

const SECTIONS: readonly Section[] = [
  keccakSection,
  treesSection,
  engineSection,
  transfersSection,
  blobsSection,
  findingSection,
  clusterSection,
  takeoverSection,
];

const USAGE = `Usage: npm run bench -- [options]

  --only a,b   measure only these sections: ${SECTIONS.map(({ name }) => name).join(", ")}
  --full       the engine and a cluster with 10 million mints before, too: some minutes more
  --json       print the results as JSON and nothing else
  --write      write docs/bench.md; all sections
  --against <revision>   instead, compare mints with another revision's, in turns on this machine: some minutes
  --help       print this
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      full: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      against: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  if (values.against !== undefined) {
    const turns = await measureAgainst(values.against, progress);
    progress("");
    const text = values.json ? JSON.stringify(turns, null, 2) : againstText(values.against, turns);
    process.stdout.write(`${text}\n`);
    return;
  }
  if (values.write && values.only !== undefined) throw new Error("--write needs all sections; leave out --only");
  const report = { machine: machine(), sections: [] as SectionResult[] } satisfies Report;
  const sections = chosen(values.only);
  const extent: Extent = values.full ? "full" : "usual";
  for (const section of sections) {
    const result = sections.length === 1 ? await section.run(progress, extent) : await inOwnProcess(section, extent);
    progress("");
    report.sections.push(result);
    if (!values.json) process.stdout.write(`\n## ${result.title}\n\n${sectionText(result)}\n`);
  }
  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  if (values.write) await write(report);
}

function chosen(only: string | undefined): readonly Section[] {
  if (only === undefined) return SECTIONS;
  return only.split(",").map((name) => {
    const section = SECTIONS.find((candidate) => candidate.name === name);
    if (section === undefined) throw new Error(`there is no section ${JSON.stringify(name)}\n\n${USAGE}`);
    return section;
  });
}

/** In a separate process, so no section gets another's heap and compiled code. */
async function inOwnProcess({ name }: Section, extent: Extent): Promise<SectionResult> {
  const script = fileURLToPath(import.meta.url);
  const options = ["--only", name, "--json", ...(extent === "full" ? ["--full"] : [])];
  const child = spawn(process.execPath, [...process.execArgv, script, ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (exitCode !== 0) throw new Error(`section ${name} failed`);
  const [result] = (JSON.parse(output) as Report).sections;
  if (result === undefined) throw new Error(`section ${name} has not answered`);
  return result;
}

/** A line that replaces itself on a terminal; nothing into a pipe or a file. */
function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${line}`);
}

async function write(report: Report): Promise<void> {
  await writeFile(new URL("../docs/bench.md", import.meta.url), page(report));
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
