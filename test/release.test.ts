import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

test("the workflow of a release installs what tests are skipped without, and ends", () => {
  const workflow = readFileSync(new URL(".github/workflows/release.yml", root), "utf8");
  expect(workflow).toMatch(/timeout-minutes: 360\n/);
  const installed = /apt-get install[^\n]*\\\n([^\n]*)/.exec(workflow)?.[1]?.trim().split(" ");
  const asked = readdirSync(new URL("test", root), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => {
      const source = readFileSync(new URL(`test/${name}`, root), "utf8");
      return [...source.matchAll(/\(Debian: ([a-z0-9 -]+)\)|\(apt-get install ([a-z0-9 -]+)\)/g)];
    })
    .flatMap(([, debian, apt]) => (debian ?? apt ?? "").split(" "));
  expect(asked).toEqual(expect.arrayContaining(["chromium", "haproxy", "patroni"]));
  // These tests name a path alone, or ask the shell.
  for (const name of [...asked, "nginx", "spin", "prometheus"]) expect(installed).toContain(name);
});

test.each([
  ["root", 0, true, ["apt-get update", "apt-get install chromium", "apt-get install haproxy"]],
  ["who may use sudo", 1_000, true, ["apt-get update", "apt-get install haproxy"]],
  ["who may not", 1_000, false, []],
])("CI installs a browser and a proxy for a user %s", (_, id, maySudo, expected) => {
  const folder = mkdtempSync(join(tmpdir(), "mintmark-ci-"));
  try {
    const stub = (name: string, body: string) =>
      writeFileSync(join(folder, name), `#!/bin/bash\n${body}\n`, { mode: 0o755 });
    stub("id", `echo ${id}`);
    stub("sudo", maySudo ? '[ "$1" = -n ] && shift && exec "$@"' : "exit 1");
    stub("apt-get", 'for last; do :; done; echo "apt-get $1 $last" | sed "s/ -qq//" >> log');
    // It would install and test everything after this.
    stub("npm", "exit 9");
    const chromium = join(folder, id === 0 ? "no-chromium" : "npm");
    const script = readFileSync(new URL(".ci/run", root), "utf8")
      .replaceAll("/usr/bin/chromium", chromium)
      .replaceAll("/usr/sbin/haproxy", join(folder, "no-haproxy"));
    mkdirSync(join(folder, ".ci"));
    writeFileSync(join(folder, ".ci/run"), script);
    const env = { PATH: `${folder}:${process.env.PATH}` };
    const { status } = spawnSync("bash", [join(folder, ".ci/run")], { cwd: folder, env });
    expect(status).toBe(9);
    const log = join(folder, "log");
    const done = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
    expect(done).toEqual(expected);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
