import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { generatedAbi } from "../../scripts/generate-abi.ts";

test("core/l1/abi.ts is what the contracts' artifacts make: if not, run `npx node scripts/generate-abi.ts`", () => {
  const written = readFileSync(new URL("../../core/l1/abi.ts", import.meta.url), "utf8");
  expect(written).toBe(generatedAbi());
});
