/**
 * Measures gas: `npm run gas` prints tables and writes docs/gas.md and its figures in
 * other pages, `npm run gas -- --json` prints JSON and writes nothing. A missed target is
 * shown, but is no failure of the command. `--prices` compares costs in dollars, by the figures
 * that docs/gas.md has.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { answerHelp } from "../scripts/cli/exit.ts";
import { BASE_FLOOR, priceTable, yearOfMinutes } from "./gas/prices.ts";
import { asMarkdown, withFigures } from "./gas/report.ts";

const USAGE =
  "usage: npm run gas [-- --json | --prices <gwei> <blob gwei> <dollars an ether> [<gwei on Base>]]\n";
answerHelp(
  `${USAGE}\nMeasures gas and writes docs/gas.md, and its figures in other pages; with --json only prints it.\nWith --prices prints README.md's table of costs at these prices, by the figures of docs/gas.md.\n`,
);
const DOCS = new URL("../docs/", import.meta.url);
const GAS_PAGE = new URL("gas.md", DOCS);
const [option, ...others] = process.argv.slice(2);
if (option === "--prices") {
  const [l1 = 0, blob = 0, ether = 0, base = BASE_FLOOR] = others.map(Number);
  const isGiven = [3, 4].includes(others.length) && [l1, blob, ether, base].every((one) => one > 0);
  if (!isGiven) refuse();
  const page = await readFile(GAS_PAGE, "utf8");
  const { blobs, validium, calldata } = yearOfMinutes(page, { l1, blob, ether, base });
  const year = [
    `A batch each minute costs ${blobs} a year in blobs, ${validium} as validium on Base,`,
    `and ${calldata} in calldata on Base (batches of 64 mints).`,
  ].join(" ");
  process.stdout.write(`${priceTable(page, { l1, blob, ether, base })}\n\n${year}\n`);
} else if (others.length > 0 || (option !== undefined && option !== "--json")) {
  refuse();
} else {
  // Prices need no chain, and Hardhat takes long to load.
  const sections = await (await import("./gas/measure.ts")).measureAll();
  if (option === "--json") process.stdout.write(`${JSON.stringify({ sections }, null, 2)}\n`);
  else await writePages(asMarkdown(sections));
}

async function writePages(text: string): Promise<void> {
  await writeFile(GAS_PAGE, text);
  for (const name of await readdir(DOCS)) {
    if (!name.endsWith(".md")) continue;
    const page = new URL(name, DOCS);
    await writeFile(page, withFigures(await readFile(page, "utf8"), text));
  }
  process.stdout.write(`${text}\nwrote docs/gas.md, and its figures in other pages\n`);
}

function refuse(): never {
  process.stderr.write(USAGE);
  process.exit(2);
}
