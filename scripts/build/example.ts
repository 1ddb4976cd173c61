/** `npm run example -- NAME ARGUMENT …`: runs a program of examples/ on the repository's own Node. */
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answerHelp } from "../command.ts";

const FOLDER = new URL("../../examples/", import.meta.url);
/** Other programs use it; alone it does nothing. */
const HELPER = "shop.ts";
const names = readdirSync(FOLDER).flatMap((file) =>
  file.endsWith(".ts") && file !== HELPER ? [file.slice(0, -3)] : [],
);
const usage = `usage: npm run example -- NAME ARGUMENT …, with one of these names: ${names.join(", ")}\n`;
const [name = ""] = process.argv.splice(2, 1);
// The programs without arguments make a store of their own: each run begins anew, and leaves nothing here.
if (names.includes(name) && process.argv.length === 2) process.chdir(mkdtempSync(join(tmpdir(), "mintmark-")));
if (names.includes(name)) await import(new URL(`${name}.ts`, FOLDER).href);
else {
  if (name === "--help") process.argv.push(name);
  answerHelp(usage);
  process.stderr.write(usage);
  process.exitCode = 2;
}
