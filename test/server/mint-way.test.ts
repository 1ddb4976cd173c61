import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Ran } from "./mint-way.ts";

/** What a mint of one token may run. Take something away before you add to it: each caller pays for all of it. */
const MOST = { functions: 200, files: 45 };

test("a mint of one token runs few functions of few files until it is durable", async () => {
  const program = fileURLToPath(new URL("./mint-way.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program], { maxBuffer: 1 << 24 });
  const way = JSON.parse(stdout) as readonly Ran[];
  const names = way.map(({ file, name }) => `${file} ${name}`);
  // It is the way of a mint, from the route to the store.
  for (const step of ["server/routes/mint.ts mint", "core/mint/reader.ts readMint", "core/store/level-store.ts write"])
    expect(names).toContain(step);
  const files = new Set(way.map(({ file }) => file));
  expect(way.length, names.join("\n")).toBeLessThanOrEqual(MOST.functions);
  expect(files.size, [...files].join("\n")).toBeLessThanOrEqual(MOST.files);
}, 120_000);
