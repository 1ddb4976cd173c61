import { expect, test } from "vitest";
import { readArtifact } from "../../core/l1/artifact.ts";
import { compile, JOBS } from "../../scripts/build/contracts.ts";
import { withoutSteps } from "../../scripts/build/optimizer-steps.ts";

test("a fresh compilation makes the tracked code of every contract that is deployed", () => {
  for (const made of JOBS.flatMap((job) => compile(job)))
    expect(made).toEqual(readArtifact(made.contractName));
});

test.each(JOBS)("no published bug of the optimizer changes what is stored: %#", (job) => {
  for (const { contract, without, code, opcodes } of withoutSteps(job)) {
    if (without === "EqualStoreEliminator")
      expect([contract, code]).toEqual([contract, "identical"]);
    // Values that were known before are loaded and hashed again. Each store stays.
    else expect([contract, opcodes]).not.toEqual([contract, expect.stringContaining("store")]);
  }
});
