import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Ran } from "./mint-way.ts";

/**
 * The functions and files that a mint of one token may run. Take something away before you add to
 * it: each caller pays for all of it.
 */
// Raised by one: nothing is acknowledged before another look at the folder's lock. Raised by eight:
// a vault's words tell how much room it takes in the open batch. Raised by two: a listener of all
// events may hear of the mint. Raised by five: the listener that this measure needs is given the
// event as webhooks have it.
const MOST = { functions: 216, files: 51 };
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The steps of a way in docs/architecture.md, as `file name`. */
function stepsOf(heading: string): string[] {
  const [, section = ""] = readFileSync(`${ROOT}docs/architecture.md`, "utf8").split(
    `\n## ${heading}\n`,
  );
  const rows = section.split("\n## ")[0]?.matchAll(/^\d+\. `(\w+)` .*\(`([^`]+)`\)$/gm) ?? [];
  return [...rows].map(([, name, file]) => `${file} ${name}`);
}

test("a mint of one token runs few functions of few files until it is durable", async () => {
  const program = fileURLToPath(new URL("./mint-way.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program], { maxBuffer: 1 << 24 });
  const way = JSON.parse(stdout) as readonly Ran[];
  const names = way.map(({ file, name }) => `${file} ${name}`);
  // It is the way of a mint, from the body to the store; the batch comes later.
  const steps = stepsOf("The life of a mint");
  const accepted = steps.slice(
    0,
    steps.findIndex((step) => step.endsWith(" mintAnswer")),
  );
  expect(accepted.length).toBeGreaterThan(10);
  expect(names).toEqual(expect.arrayContaining(accepted));
  const files = new Set(way.map(({ file }) => file));
  expect(way.length, names.join("\n")).toBeLessThanOrEqual(MOST.functions);
  expect(files.size, [...files].join("\n")).toBeLessThanOrEqual(MOST.files);
});

test.each(["The life of a mint", "A withdrawal", "A transfer"])(
  "%s passes functions that are where docs/architecture.md says",
  (way) => {
    const steps = stepsOf(way);
    expect(steps.length).toBeGreaterThan(8);
    const lost = steps.filter((step) => {
      const [file, name] = step.split(" ");
      const code = readFileSync(`${ROOT}${file}`, "utf8");
      return !new RegExp(`(?:function\\*? |^ +(?:async )?)${name}[(<]`, "m").test(code);
    });
    expect(lost).toEqual([]);
  },
);
