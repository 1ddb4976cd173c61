import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { generatedAbi, staleContracts } from "../../scripts/build/contracts.ts";

test("the tracked code is of the present sources and settings: if not, run `npm run build:contracts`", () => {
  expect(staleContracts()).toEqual([]);
  const written = readFileSync(new URL("../../core/l1/abi.ts", import.meta.url), "utf8");
  expect(written).toBe(generatedAbi());
});
