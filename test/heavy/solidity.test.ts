import { describe, expect, it } from "vitest";
import { runSolidityTests } from "../solidity/run.ts";

const outcomes = await runSolidityTests({ runs: 10_000, depth: 30 });

describe("Solidity fuzz and invariant tests, 10,000 runs each", () => {
  it("were found", () => {
    expect(outcomes.length).toBeGreaterThan(15);
  });

  it.each(outcomes)("$suite $name", ({ passed, reason }) => {
    expect(passed, reason).toBe(true);
  });
});
