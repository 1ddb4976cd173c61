/**
 * `npm run package`: compiles to dist/, packs dist/ as a tarball for other projects, and prints its
 * path.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import source from "../../package.json" with { type: "json" };
import { chartStyle, pageScripts, SCRIPTS } from "../../server/pages/bundle.ts";
import { answerHelp } from "../cli/exit.ts";
import { helpOf } from "../cli/help.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DIST = `${ROOT}dist`;

answerHelp(
  "Usage: npm run package\n\nBuilds the package that other projects install, and prints its path.\n",
);
rmSync(DIST, { recursive: true, force: true });
execFileSync(process.execPath, [`${ROOT}scripts/build/generate-client.ts`], {
  stdio: ["ignore", 2, 2],
});
// `npm run typecheck` is what finds wrong types in these sources.
const compile = [
  `${ROOT}node_modules/typescript/bin/tsc`,
  "-p",
  `${ROOT}tsconfig.build.json`,
  "--noCheck",
];
execFileSync(process.execPath, compile, { stdio: ["ignore", 2, 2] });
const { programOf } = (await import(`${DIST}/scripts/commands/program.js`)) as {
  programOf(): Promise<Command>;
};
const helps = (await programOf()).commands.map((command) => [command.name(), helpOf(command)]);
writeFileSync(`${DIST}/scripts/commands/help.json`, JSON.stringify(Object.fromEntries(helps)));
for (const page of SCRIPTS) {
  const folder = `${DIST}/server/pages/${page}/scripts`;
  mkdirSync(folder, { recursive: true });
  for (const [name, script] of await pageScripts(page)) writeFileSync(`${folder}/${name}`, script);
}
// Pages have other files beside their scripts.
cpSync(`${ROOT}server/pages`, `${DIST}/server/pages`, {
  recursive: true,
  filter: (path) => !/\.tsx?$/.test(path),
});
cpSync(chartStyle, `${DIST}/server/pages/console/uPlot.css`);
// Solidity for projects that import it, and its compiled code for `mintmark deploy`. Test contracts
// are not included.
const isDeployed = (path: string) => !path.startsWith(`${ROOT}contracts/test`);
cpSync(`${ROOT}contracts`, `${DIST}/contracts`, { recursive: true, filter: isDeployed });
execFileSync("npm", ["run", "--silent", "docs"], { cwd: ROOT, stdio: ["ignore", 2, 2] });
// The server serves the built guide. What builds it stays in the repository.
const isShipped = (path: string) => !/docs\/\.vitepress\/(?!dist)/.test(path);
for (const folder of ["docs", "examples"])
  cpSync(`${ROOT}${folder}`, `${DIST}/${folder}`, { recursive: true, filter: isShipped });
// The package has the repository's subpaths, compiled.
const modules = Object.entries(source.exports).map(([path, file]) => {
  return [path, { types: file.replace(/ts$/, "d.ts"), default: file.replace(/ts$/, "js") }];
});
const manifest = {
  name: source.name,
  version: source.version,
  description: source.description,
  keywords: source.keywords,
  homepage: source.homepage,
  bugs: source.bugs,
  repository: source.repository,
  license: source.license,
  // npm publishes nothing that has it.
  private: source.private,
  type: source.type,
  engines: { node: ">=22.13" },
  publishConfig: source.publishConfig,
  bin: { mintmark: "scripts/mintmark.js" },
  exports: {
    ...Object.fromEntries(modules),
    "./contracts/*": "./contracts/*",
    "./package.json": "./package.json",
  },
  // A bundler then leaves out every module of which a program uses nothing.
  sideEffects: ["./scripts/**", "./server/pages/**"],
  // Everything in dist/ ships: the folder holds nothing else.
  files: ["**/*"],
  dependencies: source.dependencies,
  peerDependencies: source.peerDependencies,
  peerDependenciesMeta: source.peerDependenciesMeta,
};
writeFileSync(`${DIST}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
for (const file of ["README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
  cpSync(`${ROOT}${file}`, `${DIST}/${file}`);
const pack = ["pack", "./dist", "--json", "--pack-destination", DIST];
const packed = execFileSync("npm", pack, { cwd: ROOT, encoding: "utf8" });
const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
process.stdout.write(`${DIST}/${filename}\n`);
