import { expect, test } from "vitest";
import { readArtifact } from "../../core/l1/artifact.ts";
import { compile, JOBS } from "../../scripts/build/contracts.ts";

test("a fresh compilation makes the tracked code of every contract that is deployed", () => {
  for (const made of JOBS.flatMap(compile)) expect(made).toEqual(readArtifact(made.contractName));
});
