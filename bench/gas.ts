/**
 * Measures gas: `npm run gas` prints tables and writes docs/gas.md, `npm run gas -- --json` prints JSON and writes
 * nothing. A missed target is shown, but is no failure of the command.
 */
import { writeFile } from "node:fs/promises";
import hre from "hardhat";
import { answerHelp } from "../scripts/command.ts";
import { measureGas } from "./gas/measure.ts";
import { asMarkdown, asText } from "./gas/report.ts";

answerHelp("Usage: npm run gas [-- --json]\n\nMeasures gas and writes docs/gas.md; with --json only prints it.\n");
const TARGET = new URL("../docs/gas.md", import.meta.url);
const [option, ...others] = process.argv.slice(2);
if (others.length > 0 || (option !== undefined && option !== "--json")) {
  process.stderr.write("usage: npm run gas [-- --json]\n");
  process.exit(2);
}

await hre.tasks.getTask("build").run({ quiet: true, defaultBuildProfile: "default", noTests: true });
const sections = await measureGas();
if (option === "--json") {
  process.stdout.write(`${JSON.stringify({ sections }, null, 2)}\n`);
} else {
  await writeFile(TARGET, asMarkdown(sections));
  process.stdout.write(`${asText(sections)}\n\nwrote docs/gas.md\n`);
}
