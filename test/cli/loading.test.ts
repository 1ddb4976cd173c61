import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cleanEnvironment } from "./cli.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Prints the URL of each module that Node loads. */
const TRACE = `data:text/javascript,${encodeURIComponent(
  `import { registerHooks } from "node:module";
  registerHooks({ load: (url, context, next) => (process.stderr.write(url + "\\n"), next(url, context)) });`,
)}`;

/** The files that a command loads, from the package's folder on. */
function loaded(...args: string[]): string[] {
  const command = ["--import", TRACE, `${ROOT}scripts/mintmark.ts`, ...args];
  const { status, stderr, stdout } = spawnSync(process.execPath, command, {
    encoding: "utf8",
    env: cleanEnvironment({}),
  });
  expect([status, stdout.length > 0]).toEqual([0, true]);
  const urls = stderr.split("\n").filter((url) => url.startsWith("file:"));
  return urls.map((url) => fileURLToPath(url).replace(ROOT, ""));
}

const libraries = (files: readonly string[]) =>
  new Set(files.flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []));

test.each(["--version", "--help"])(
  "`mintmark %s` loads commander and the list of commands",
  (option) => {
    const files = loaded(option);
    expect(libraries(files)).toEqual(new Set(["commander"]));
    const own = files.filter((file) => !file.startsWith("node_modules/"));
    expect(own.length).toBeLessThan(10);
    expect(own.filter((file) => /^(core|server)\//.test(file))).toEqual([]);
  },
);
