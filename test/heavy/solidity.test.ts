import { describe, expect, it } from "vitest";
import { runSolidityTests, SUITES } from "../solidity/run.ts";

// One suite at a time: a run that is cut still says which suites passed.
describe("Solidity fuzz and invariant tests, 10,000 runs each", () => {
  it.each(SUITES)("%s", async (suite) => {
    const outcomes = await runSolidityTests({ runs: 10_000, depth: 30 }, [suite]);
    expect(outcomes.length).toBeGreaterThan(0);
    expect(outcomes.filter(({ passed }) => !passed)).toEqual([]);
  });
});
