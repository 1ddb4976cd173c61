import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { generatedFiles, staleContracts } from "../../scripts/build/contracts.ts";

test("the tracked code is of the present sources and settings: if not, run `npm run build:contracts`", () => {
  expect(staleContracts()).toEqual([]);
  for (const [path, text] of Object.entries(generatedFiles()))
    expect(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")).toBe(text);
});
