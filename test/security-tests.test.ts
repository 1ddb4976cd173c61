import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const ROOT = new URL("../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");
const ROWS = [...read("docs/security-tests.md").matchAll(/^- .+: `(test\/\S+)` ?(.*?)…?$/gm)];

it("the page of the security model's tests names many", () => {
  expect(ROWS.length).toBeGreaterThan(100);
});

it.each(ROWS.map(([, file = "", title = ""]) => [file, title] as const))(
  "%s %s exists, and is one test",
  (file, title) => {
    expect(existsSync(new URL(file, ROOT)), file).toBe(true);
    if (title === "") return;
    const name = title.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    // A name begins behind a quotation mark or a backtick, or in it behind what varies.
    expect(
      read(file).match(new RegExp(`["\`](?:[^"\`]*[%$]\\w+[^"\`]*? )?${name}`, "g")),
    ).toHaveLength(1);
  },
);
