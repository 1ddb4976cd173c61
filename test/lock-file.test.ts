import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const lock: unknown = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8"));
const packages = Object.entries(
  (lock as { packages: Record<string, { integrity?: string; link?: boolean }> }).packages,
);

test("the lock file names no registry, so any mirror serves it", () => {
  expect(JSON.stringify(lock)).not.toMatch(/"resolved":"https?:/);
});

test("every locked package carries an integrity hash", () => {
  const unhashed = packages.filter(
    ([path, entry]) => path !== "" && entry.link !== true && entry.integrity === undefined,
  );
  expect(packages.length).toBeGreaterThan(100);
  expect(unhashed.map(([path]) => path)).toEqual([]);
});
