import { describe, expect, it } from "vitest";
import { runSolidityTests, SUITES } from "./run.ts";

// Few runs here; test/heavy repeats them by the ten thousand.
const outcomes = await runSolidityTests({ runs: 24, depth: 30 });

describe("Solidity fuzz and invariant tests", () => {
  it("are one suite a file, and each ran", () => {
    expect(new Set(outcomes.map(({ suite }) => suite)).size).toBe(SUITES.length);
  });

  it.each(outcomes)("$suite $name", ({ passed, reason }) => {
    expect(passed, reason).toBe(true);
  });
});
