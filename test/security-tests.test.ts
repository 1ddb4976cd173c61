import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const ROOT = new URL("../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");
const ROWS = [
  ...read("docs/security-tests.md").matchAll(/^\|.* \| .+ \| `(test\/\S+)`\s*(.*?)…? \|$/gm),
];

it("the page of the security model's tests names many", () => {
  expect(ROWS.length).toBeGreaterThan(100);
});

it.each(ROWS.map(([, file = "", title = ""]) => [file, title] as const))(
  "%s %s exists",
  (file, title) => {
    expect(existsSync(new URL(file, ROOT)), file).toBe(true);
    expect(read(file)).toContain(title);
  },
);
