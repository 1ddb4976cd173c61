/**
 * `npm run example -- NAME ARGUMENT …`: runs a program of examples/ on the repository's own Node.
 */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { answerHelp } from "../cli/exit.ts";

const FOLDER = new URL("../../examples/", import.meta.url);
/** Other programs use it; alone it does nothing. */
const HELPER = "shop.ts";
const programs = readdirSync(FOLDER).filter((file) => file.endsWith(".ts") && file !== HELPER);
const names = programs.map((file) => file.slice(0, -3));
const usage = `usage: npm run example -- NAME ARGUMENT …, with one of these names: ${names.join(", ")}\n`;
const [name = ""] = process.argv.splice(2, 1);
// The programs without arguments make a store of their own: each run begins anew, and leaves
// nothing here.
const file = new URL(`${name}.ts`, FOLDER);
/** The line of the program's own comment that shows how it is called. */
const [call = ""] = names.includes(name)
  ? (/(?:\S+=\S+ )*npm run example -- .*/.exec(readFileSync(file, "utf8")) ?? [])
  : [];
const missing = [...call.matchAll(/([A-Z_]+)=/g)].flatMap(([, one = ""]) =>
  process.env[one] ? [] : [one],
);
const wanted = call.split(` -- ${name}`)[1]?.trim() ?? "";
if (missing.length > 0) fail(`set ${missing.join(", ")}: ${call}\n`);
else if (wanted !== "" && process.argv.length === 2) fail(`give ${wanted}: ${call}\n`);
else if (names.includes(name)) {
  if (process.argv.length === 2) process.chdir(mkdtempSync(join(tmpdir(), "mintmark-")));
  await import(file.href);
} else {
  if (name === "--help") process.argv.push(name);
  answerHelp(usage);
  fail(usage);
}

function fail(line: string): void {
  process.stderr.write(line);
  process.exitCode = 2;
}
