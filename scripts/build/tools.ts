import { execFileSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FOLDERS = { bench: "../../bench", cluster: "../cluster", lint: "./lint" };

/**
 * Installs the dependencies of one folder by its own lock file: the linters, the benchmark's peers,
 * or PostgreSQL. So `npm ci` of the repository stays small. Does nothing if they are installed.
 * npm's output goes to standard error.
 */
export function installTools(folder: keyof typeof FOLDERS): void {
  const at = fileURLToPath(new URL(FOLDERS[folder], import.meta.url));
  const installed = `${at}/node_modules/.package-lock.json`;
  if (
    existsSync(installed) &&
    statSync(installed).mtimeMs >= statSync(`${at}/package-lock.json`).mtimeMs
  )
    return;
  process.stderr.write(`installing what ${folder} needs\n`);
  // npm would otherwise install into the repository that started it.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"));
  execFileSync("npm", ["ci", "--ignore-scripts"], {
    cwd: at,
    env: Object.fromEntries(own),
    stdio: ["ignore", 2, 2],
  });
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (folder !== "bench" && folder !== "cluster" && folder !== "lint")
    throw new Error("name bench, cluster or lint");
  installTools(folder);
}
