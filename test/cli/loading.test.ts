import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cleanEnvironment, TRACE } from "./cli.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The files that Node loads for these arguments, from the package's folder on. */
function loadedBy(...args: string[]): string[] {
  const command = ["--import", TRACE, ...args];
  const { status, stderr, stdout } = spawnSync(process.execPath, command, {
    cwd: ROOT,
    encoding: "utf8",
    env: cleanEnvironment({}),
  });
  expect([status, stdout.length > 0]).toEqual([0, true]);
  const urls = stderr.split("\n").filter((url) => url.startsWith("file:"));
  return urls.map((url) => fileURLToPath(url).replace(ROOT, ""));
}

const librariesOf = (files: readonly string[]) =>
  new Set(files.flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []));

/** The files that a module loads which runs these calls of the command line. */
const loadedByCalls = (calls: string) =>
  loadedBy(
    "--input-type=module",
    "--eval",
    `const { programOf, runCli } = await import("./scripts/commands/program.ts");
    ${calls}
    process.exitCode = 0;
    process.stdout.write("done");`,
  );

test.each(["--version", "--help"])(
  "`mintmark %s` loads commander and the list of commands",
  (option) => {
    const files = loadedBy("scripts/mintmark.js", option);
    expect(librariesOf(files)).toEqual(new Set(["commander"]));
    const own = files.filter((file) => !file.startsWith("node_modules/"));
    expect(own.length).toBeLessThan(10);
    expect(own.filter((file) => /^(core|server)\//.test(file))).toEqual([]);
  },
);

/** The libraries of settings, and of the forms of requests. */
const OF_FORMS = ["commander", "zod", "@noble/hashes", "openapi-fetch"];

test("the help of a process or of an owner's command loads the forms of its settings", () => {
  const files = loadedByCalls(`
    for (const name of ["server", "member", "doctor", "up", "transfer", "enter"])
      await runCli([name, "--help"]);`);
  expect(librariesOf(files)).toEqual(new Set(OF_FORMS));
  expect(files.filter((file) => /^core\/(?:engine|index)\.ts/.test(file))).toEqual([]);
});

test("the help of all commands loads no viem, no server and no chain", () => {
  const libraries = librariesOf(loadedByCalls("await programOf();"));
  expect(libraries).toContain("level");
  const heavy = ["viem", "fastify", "jose", "pg", "prom-client", "hardhat", "esbuild"];
  expect(heavy.filter((name) => libraries.has(name))).toEqual([]);
});

test("a wrong flag, argument or setting is refused before anything else loads", () => {
  const wrong = [
    ["server", "--port", "many"],
    ["member", "--rpc", "example"],
    ["deploy"],
    ["transfer", "1", "--to", "0x12"],
    ["session", "authorize", "0x12", "--until", "12h"],
    ["doctor", "--folder", "no-such-folder"],
    ["up", "--network", "nowhere"],
    ["buy", "1", "--nonsense"],
  ];
  const files = loadedByCalls(`
    for (const args of ${JSON.stringify(wrong)}) {
      process.exitCode = 0;
      await runCli(args);
      if (process.exitCode !== 2) throw new Error(args.join(" "));
    }`);
  expect(librariesOf(files)).toEqual(new Set(OF_FORMS));
});
