/**
 * Measures gas: `npm run gas` prints tables and writes docs/gas.md and its figures in
 * other pages, `npm run gas -- --json` prints JSON and writes nothing. A missed target is
 * shown, but is no failure of the command.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import hre from "hardhat";
import { answerHelp } from "../scripts/cli/errors.ts";
import { blobSection, rollupSection, validiumSection } from "./gas/commits.ts";
import { deploymentSection, plainSection } from "./gas/deployments.ts";
import { makingSection } from "./gas/makings.ts";
import { mirrorSection } from "./gas/mirror.ts";
import { asMarkdown, withFigures } from "./gas/report.ts";
import { transferSection } from "./gas/transfers.ts";
import { openingSection, withdrawalSection } from "./gas/withdrawals.ts";

answerHelp(
  "Usage: npm run gas [-- --json]\n\nMeasures gas and writes docs/gas.md, and its figures in other pages; with --json only prints it.\n",
);
const DOCS = new URL("../docs/", import.meta.url);
const [option, ...others] = process.argv.slice(2);
if (others.length > 0 || (option !== undefined && option !== "--json")) {
  process.stderr.write("usage: npm run gas [-- --json]\n");
  process.exit(2);
}

await hre.tasks
  .getTask("build")
  .run({ quiet: true, defaultBuildProfile: "default", noTests: true });
const plain = await plainSection();
const sections = [
  await rollupSection(),
  await blobSection(),
  await validiumSection(),
  await withdrawalSection(plain.newOwner),
  await openingSection(),
  await transferSection(),
  await makingSection(),
  await mirrorSection(),
  plain.section,
  await deploymentSection(),
];
if (option === "--json") {
  process.stdout.write(`${JSON.stringify({ sections }, null, 2)}\n`);
} else {
  const text = asMarkdown(sections);
  await writeFile(new URL("gas.md", DOCS), text);
  for (const name of await readdir(DOCS)) {
    if (!name.endsWith(".md")) continue;
    const page = new URL(name, DOCS);
    await writeFile(page, withFigures(await readFile(page, "utf8"), text));
  }
  process.stdout.write(`${text}\nwrote docs/gas.md, and its figures in other pages\n`);
}
