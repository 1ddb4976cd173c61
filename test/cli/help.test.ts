import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { cleanEnvironment, mintmark } from "./cli.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
/** What node runs for each npm script. */
const OURS = Object.entries(packageJson.scripts).filter(([, command]) => /^(?:exec )?node /.test(command));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-help-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("there are npm scripts to ask", () => {
  expect(OURS.map(([name]) => name)).toEqual(expect.arrayContaining(["start", "demo", "server", "cluster"]));
});

test.each(OURS)("`npm run %s -- --help` starts nothing", async (_, command) => {
  // A port that nobody may listen on and a folder that nobody may write to: whatever starts, fails.
  const env = cleanEnvironment({
    MINTMARK_PORT: "1e9",
    MINTMARK_CHAIN_PORT: "1e9",
    MINTMARK_SANDBOX: join(folder, "sandbox"),
  });
  const [program = "", ...args] = command.replace("exec ", "").split(" ");
  expect(program).toBe("node");
  // The program's own commands are all one program; `npm start` stands for how it is started.
  const isOurs = args[0] === "scripts/mintmark.ts";
  const { stdout } = isOurs
    ? await mintmark([...args.slice(1), "--help"], env as Record<string, string>)
    : await promisify(execFile)(process.execPath, [...args, "--help"], { cwd: ROOT, env });
  expect(stdout).toMatch(/^usage: /i);
  expect(await readdir(folder)).toEqual([]);
});
