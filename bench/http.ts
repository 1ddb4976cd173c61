import { parseArgs } from "node:util";
import { installTools } from "../scripts/build/tools.ts";
import { runCommand } from "../scripts/cli/errors.ts";
import { progressLine } from "../scripts/cli/output.ts";
import { FLAG } from "./harness.ts";
import { KINDS, measureHttp, measureStages, QUICK } from "./http/measure.ts";
import { measureTail, QUICK_TAIL, TAIL } from "./http/tail.ts";
import {
  machine,
  type Report,
  sectionsText,
  TAIL_TITLES,
  writePage,
  writeSection,
} from "./report.ts";

/** `npm run bench:http`: the server's mint rate, response times, and time by stage. */

const USAGE = `Usage: npm run bench:http -- [options]

  --quick           a tenth of the requests: to try it, not to quote it
  --tail            instead, how long single mints wait beside all other work, and for what
  --json            print the results as JSON and nothing else
  --write           write docs/bench-http.md; with --tail, two sections of docs/bench.md
  --help            print this
`;

const PAGE = {
  file: "bench-http.md",
  title: "Benchmark of the HTTP service",
  command: "npm run bench:http",
  about:
    "Above 0.5, other programs had a part of the cores, and every figure is worse than the machine's best.",
};

await runCommand(async () => {
  const { values } = parseArgs({
    options: { quick: FLAG, tail: FLAG, json: FLAG, write: FLAG, help: FLAG },
  });
  if (values.help) return void process.stdout.write(USAGE);
  installTools("bench");
  const line = progressLine();
  const where = machine();
  const sections = values.tail
    ? await measureTail(values.quick ? QUICK_TAIL : TAIL, line.show)
    : [
        await measureHttp(values.quick ? QUICK : KINDS, line.show),
        await measureStages(QUICK, line.show),
      ];
  line.clear();
  const report: Report = { machine: where, sections };
  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else process.stdout.write(sectionsText(sections));
  if (values.write && !values.tail) await writePage(PAGE, report);
  if (values.write && values.tail)
    for (const section of sections.slice(0, TAIL_TITLES.length))
      await writeSection("bench.md", section, where);
});
