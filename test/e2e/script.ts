import { spawn } from "node:child_process";

const ROOT = new URL("../../", import.meta.url).pathname;

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a script as its user does; `input` is its standard input. */
export function run(script: string, args: readonly string[], env: Record<string, string>, input = ""): Promise<Ran> {
  const child = spawn(process.execPath, ["scripts/mintmark.ts", script, ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdin.end(input);
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, stdout, stderr })));
}
