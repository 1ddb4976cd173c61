import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const lock: unknown = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8"));
interface Entry {
  readonly integrity?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
const packages = Object.entries((lock as { packages: Record<string, Entry> }).packages);

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

test("every platform's variant of a locked package is locked, without which `npm ci` refuses the file", () => {
  const locked = new Set(packages.map(([path]) => path.replace(/^.*node_modules\//, "")));
  const optional = packages.flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {}));
  expect(optional.length).toBeGreaterThan(10);
  expect(optional.filter((name) => !locked.has(name))).toEqual([]);
});
