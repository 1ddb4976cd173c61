import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { releaseFaults } from "../scripts/build/release.ts";

const root = new URL("../", import.meta.url);
const changelog = readFileSync(new URL("CHANGELOG.md", root), "utf8");
const repository = "mintmark/mintmark";

test("nothing but `private` keeps the package from being published", () => {
  expect(manifest.private).toBe(true);
  expect(releaseFaults(manifest, changelog, repository)).toEqual([]);
  expect(manifest.publishConfig).toEqual({ access: "public", provenance: true });
  const workflows = ["workflows/check.yml", "workflows/release.yml"];
  const files = ["CODEOWNERS", "PULL_REQUEST_TEMPLATE.md", ...workflows];
  const templates = ["ISSUE_TEMPLATE/bug.md", "ISSUE_TEMPLATE/idea.md"];
  for (const file of [...files, ...templates])
    expect(existsSync(new URL(`.github/${file}`, root)), file).toBe(true);
});

test("a release is refused without a section of the changelog, a field, or its own repository", () => {
  const { bugs: _, ...lacking } = { ...manifest, version: "9.9.9" };
  expect(releaseFaults(lacking, changelog, "someone/fork")).toEqual([
    "package.json has no bugs",
    "CHANGELOG.md has no section with a date for 9.9.9",
    expect.stringContaining("this is someone/fork"),
  ]);
});

test("a release is refused under a tag of another version", () => {
  const { version } = manifest;
  expect(releaseFaults(manifest, changelog, repository, `v${version}`)).toEqual([]);
  expect(releaseFaults(manifest, changelog, repository, "v9.9.9")).toEqual([
    `the tag is v9.9.9, and package.json has the version ${version}`,
  ]);
});
