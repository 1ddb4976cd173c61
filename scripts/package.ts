/** Builds the package that other projects install: `npm run package` compiles to dist/ and packs dist/ as a tarball. Prints its path. */
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { bundleOptions, SCRIPTS } from "../server/pages/bundle.ts";

import { answerHelp } from "./command.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const DIST = `${ROOT}dist`;

/** Subpaths of the package; each names one index of the sources. */
const EXPORTS = {
  ".": "core/index",
  "./protocol": "core/protocol/index",
  "./verifier": "core/protocol/verifier",
  "./exit": "core/exit/index",
  "./l1": "core/l1/index",
  "./archive": "core/archive/index",
  "./committee": "core/committee/index",
  "./mirror": "core/mirror/index",
  "./settlement": "core/settlement/index",
  "./server": "server/index",
  "./client": "server/client/index",
} as const;

/** What pages have besides scripts. */
const PAGE_FILES = [
  "explorer/index.html",
  "explorer/style.css",
  "explorer/icon.svg",
  "reference/index.html",
  "reference/style.css",
  "home/index.html",
] as const;

answerHelp("Usage: npm run package\n\nBuilds the package that other projects install, and prints its path.\n");
rmSync(DIST, { recursive: true, force: true });
execFileSync(process.execPath, [`${ROOT}node_modules/typescript/bin/tsc`, "-p", `${ROOT}tsconfig.build.json`], {
  stdio: ["ignore", 2, 2],
});
for (const page of SCRIPTS) {
  for (const { contents } of buildSync(bundleOptions(page)).outputFiles) {
    mkdirSync(`${DIST}/server/pages/${page}`, { recursive: true });
    writeFileSync(`${DIST}/server/pages/${page}/bundle.js`, contents);
  }
}
for (const file of PAGE_FILES) cpSync(`${ROOT}server/pages/${file}`, `${DIST}/server/pages/${file}`);
const { name, version, description, license, type, dependencies } = JSON.parse(
  readFileSync(`${ROOT}package.json`, "utf8"),
) as Record<string, unknown>;
const exports = Object.fromEntries(
  Object.entries(EXPORTS).map(([path, file]) => [path, { types: `./${file}.d.ts`, default: `./${file}.js` }]),
);
// Without what only the repository needs, such as the Node binary that lets Node 20 run its scripts.
const engines = { node: ">=22.13" };
const bin = { mintmark: "scripts/mintmark.js" };
const manifest = { name, version, description, license, type, engines, bin, exports, dependencies };
writeFileSync(`${DIST}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
copyFileSync(`${ROOT}README.md`, `${DIST}/README.md`);
const packed = execFileSync("npm", ["pack", "./dist", "--json", "--pack-destination", DIST], {
  cwd: ROOT,
  encoding: "utf8",
});
const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
process.stdout.write(`${DIST}/${filename}\n`);
