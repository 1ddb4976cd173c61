import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { vectorFiles } from "./vectors/index.ts";

describe("shared vectors", async () => {
  for (const [name, text] of await vectorFiles()) {
    it(`${name} is what the core makes`, () => {
      expect(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), "utf8")).toBe(text);
    });
  }
});
