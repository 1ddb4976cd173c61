import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { installTools } from "../scripts/build/tools.ts";
import { progressLine } from "../scripts/cli/output.ts";
import { runCommand } from "../scripts/command.ts";
import { FLAG } from "./harness.ts";
import { KINDS, QUICK } from "./http/load.ts";
import { measureHttp, measureStages } from "./http/measure.ts";
import { type Machine, machine, type SectionResult, sectionText, writtenBy } from "./report.ts";

/** `npm run bench:http`: the server's mint rate, response times, and time by stage. */

const USAGE = `Usage: npm run bench:http -- [options]

  --quick           a tenth of the requests: to try it, not to quote it
  --json            print the results as JSON and nothing else
  --write           write docs/bench-http.md
  --help            print this
`;

await runCommand(async () => {
  const { values } = parseArgs({ options: { quick: FLAG, json: FLAG, write: FLAG, help: FLAG } });
  if (values.help) return void process.stdout.write(USAGE);
  installTools("bench");
  const line = progressLine();
  const where = machine();
  const sections = [await measureHttp(values.quick ? QUICK : KINDS, line.show), await measureStages(QUICK, line.show)];
  line.clear();
  if (values.json) process.stdout.write(`${JSON.stringify({ machine: where, sections }, null, 2)}\n`);
  else process.stdout.write(sectionsText(sections));
  if (values.write) await writeFile(new URL("../docs/bench-http.md", import.meta.url), page(where, sections));
});

function sectionsText(sections: readonly SectionResult[]): string {
  return sections.map((section) => `## ${section.title}\n\n${sectionText(section)}\n`).join("\n");
}

function page(where: Machine, sections: readonly SectionResult[]): string {
  return [
    "# Benchmark of the HTTP service",
    "",
    writtenBy("npm run bench:http", where, `, ${new Date().toISOString().slice(0, 10)}`),
    `The load average when the run began was ${where.load.toFixed(1)}. Above 0.5, other programs had a part of the cores, and`,
    "every figure is worse than the machine's best.",
    "",
    sectionsText(sections),
  ].join("\n");
}
