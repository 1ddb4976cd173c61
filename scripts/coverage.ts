/**
 * Coverage of the contracts by test/contracts and test/mirror: `node scripts/coverage.ts`. Hardhat counts lines and
 * statements (coverage/html, coverage/lcov.info). This script counts branches: every condition of an `if`, a loop or a
 * `?:`, and every operand of `&&` and `||`, must have been both true and false. Neither counts Yul in assembly blocks;
 * the differential and fuzz tests cover it. Exits with 1 below the required coverage.
 */
import { spawnSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { readConditions } from "./coverage/conditions.ts";
import { RUNNER } from "./coverage/run.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LEAST_PERCENT = 99;

if (process.argv.length > 2) {
  process.stdout.write("usage: npm run coverage\n");
  process.exit(process.argv[2] === "--help" ? 0 : 2);
}

// The tests that run the product's own loops take the deployed code.
run("npm", ["run", "build:contracts"]);
run("npx", ["vitest", "run", "--config", "scripts/coverage/vitest.config.ts", "--root", "."], {
  HARDHAT_COVERAGE: "true",
  HARDHAT_CONFIG: "scripts/coverage/hardhat.config.ts",
});

const lcov = await readFile(`${ROOT}/coverage/lcov.info`, "utf8");
judge("lines", sumOf("LH"), sumOf("LF"));

const hit = await hitTags();
const branches = (await readConditions()).flatMap(({ tags, ...condition }) =>
  (["true", "false"] as const).map((value) => ({ ...condition, value, isHit: hit.has(tags[value]) })),
);
for (const { source, line, text, value, isHit } of branches) {
  if (!isHit) process.stdout.write(`never ${value}: ${source}:${line} ${text}\n`);
}
judge("branches", branches.filter(({ isHit }) => isHit).length, branches.length);

function run(command: string, args: readonly string[], environment = {}): void {
  const env = { ...process.env, ...environment };
  const { status } = spawnSync(command, args, { cwd: ROOT, stdio: "inherit", env });
  if (status !== 0) process.exit(status ?? 1);
}

function judge(what: string, covered: number, found: number): void {
  const percent = (100 * covered) / found;
  process.stdout.write(`${covered} of ${found} ${what} of the contracts are covered: ${percent.toFixed(2)} %\n`);
  if (percent >= LEAST_PERCENT) return;
  process.stderr.write(`at least ${LEAST_PERCENT} % of the ${what} are asked for\n`);
  process.exitCode = 1;
}

/** Sum of a record over all files: LF are lines found, LH lines hit. */
function sumOf(record: "LF" | "LH"): number {
  const values = [...lcov.matchAll(new RegExp(`^${record}:(\\d+)$`, "gm"))];
  return values.reduce((sum, [, value]) => sum + Number(value), 0);
}

/** The tags of everything that ran, as recorded by Hardhat. */
async function hitTags(): Promise<Set<string>> {
  const folder = `${ROOT}/coverage/data/${RUNNER}`;
  const texts = await Promise.all((await readdir(folder)).map((name) => readFile(`${folder}/${name}`, "utf8")));
  return new Set(texts.flatMap((text) => Object.keys(JSON.parse(text) as object)));
}
