/** `npm run release:check`: everything that must hold before a version is published. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import manifest from "../../package.json" with { type: "json" };
import { answerHelp } from "../cli/exit.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A registry shows these fields of a package, and checks provenance against one of them. */
const NEEDED = [
  "name",
  "version",
  "description",
  "keywords",
  "homepage",
  "bugs",
  "repository",
  "license",
  "publishConfig",
] as const;

/** Why this commit cannot be published, except that `private` stands in its manifest. */
export function releaseFaults(
  fields: Readonly<Record<string, unknown>>,
  changelog: string,
  builtIn: string | undefined,
  tag?: string,
): string[] {
  const { version, repository } = fields;
  const faults = NEEDED.filter((name) => fields[name] === undefined).map(
    (name) => `package.json has no ${name}`,
  );
  if (!changelog.includes(`\n## [${version}] - `))
    faults.push(`CHANGELOG.md has no section with a date for ${version}`);
  if (tag !== undefined && tag !== `v${version}`)
    faults.push(`the tag is ${tag}, and package.json has the version ${version}`);
  const { url = "" } = (repository ?? {}) as { url?: string };
  if (builtIn !== undefined && !url.endsWith(`/${builtIn}.git`))
    faults.push(`package.json names ${url}, and this is ${builtIn}: provenance would be refused`);
  return faults;
}

if (import.meta.main) {
  answerHelp(
    "Usage: npm run release:check\n\nRuns every check and every test, and packs the package. Takes hours.\n",
  );
  const changelog = readFileSync(`${ROOT}CHANGELOG.md`, "utf8");
  const { GITHUB_REPOSITORY, GITHUB_REF_TYPE, GITHUB_REF_NAME } = process.env;
  const tag = GITHUB_REF_TYPE === "tag" ? GITHUB_REF_NAME : undefined;
  const faults = releaseFaults(manifest, changelog, GITHUB_REPOSITORY, tag);
  if (manifest.private) faults.push("package.json says private: take that out to publish");
  const changes = execFileSync("git", ["status", "--porcelain"], { cwd: ROOT, encoding: "utf8" });
  if (changes !== "") faults.push("the working tree has changes");
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  process.exitCode = faults.length > 0 ? 1 : 0;
  const steps = [[".ci/run"], ["npm", "run", "test:heavy"], ["npm", "run", "package"]] as const;
  if (faults.length === 0)
    for (const [command, ...args] of steps)
      execFileSync(command, args, { cwd: ROOT, stdio: "inherit" });
}
