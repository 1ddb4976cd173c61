import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Upper bound, which only goes down. Whoever raises it says why beside it. */
// Raised for Hardhat's toolbox, which brings 89 packages for its ways to deploy and to verify.
const PACKAGES = 590;

test("the lock file has no more packages than its bound", () => {
  const lock = readFileSync(new URL("../package-lock.json", import.meta.url), "utf8");
  const { packages } = JSON.parse(lock) as { packages: object };
  expect(Object.keys(packages).length - 1).toBeLessThanOrEqual(PACKAGES);
});
