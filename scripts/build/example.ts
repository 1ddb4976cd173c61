/** `npm run example -- NAME ARGUMENT …`: runs a program of examples/ on the repository's own Node. */
import { readdirSync } from "node:fs";
import { answerHelp } from "../command.ts";

const FOLDER = new URL("../../examples/", import.meta.url);
const names = readdirSync(FOLDER).flatMap((file) => (file.endsWith(".ts") ? [file.slice(0, -3)] : []));
const usage = `usage: npm run example -- NAME ARGUMENT …, with one of these names: ${names.join(", ")}\n`;
const [name = ""] = process.argv.splice(2, 1);
if (names.includes(name)) await import(new URL(`${name}.ts`, FOLDER).href);
else {
  if (name === "--help") process.argv.push(name);
  answerHelp(usage);
  process.stderr.write(usage);
  process.exitCode = 2;
}
