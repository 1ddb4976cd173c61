/** `npm run docs`: builds the guide that the server serves, unless it is newer than its pages. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Level } from "level";
import { pause } from "../../core/backoff.ts";
import { answerHelp } from "../cli/exit.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DOCS = join(ROOT, "docs");
const CACHE = join(DOCS, ".vitepress/cache");
const SITE = join(DOCS, ".vitepress/dist");

answerHelp("Usage: npm run docs\n\nBuilds the guide, which the server shows at /guide.\n");
mkdirSync(CACHE, { recursive: true });
// One at a time, because each build deletes the files of another. A dead process holds no lock.
const lock = new Level(join(CACHE, "lock"));
while (!(await lock.open().then(() => true, isElsewhere))) await pause(200);
const builtAt = statSync(join(SITE, "index.html"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
const isSource = /^(?!\.vitepress\/(?:cache|dist|\.temp)).*\.(?:md|svg|png|ts|css)$/;
const sources = readdirSync(DOCS, { recursive: true, encoding: "utf8" }).filter((name) =>
  isSource.test(name),
);
if (sources.some((name) => statSync(join(DOCS, name)).mtimeMs > builtAt)) {
  const command = join(ROOT, "node_modules/vitepress/bin/vitepress.js");
  const built = join(CACHE, "dist");
  execFileSync(process.execPath, [command, "build", DOCS, "--outDir", built], { stdio: "inherit" });
  // A server can read the site at any time, so it never sees half of it.
  const old = join(CACHE, "old");
  rmSync(old, { recursive: true, force: true });
  if (existsSync(SITE)) renameSync(SITE, old);
  renameSync(built, SITE);
  rmSync(old, { recursive: true, force: true });
}
await lock.close();

function isElsewhere({ cause }: Error): false {
  if (cause instanceof Error && "code" in cause && cause.code === "LEVEL_LOCKED") return false;
  throw cause;
}
