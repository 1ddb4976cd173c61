import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

const ROOT = new URL("../../", import.meta.url).pathname;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the command answered.
  json(): any;
}

/** What a shell passes on, without settings of this project that it may hold. */
export function cleanEnvironment(settings: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const rest = Object.entries(process.env).filter(([name]) => !name.startsWith("MINTMARK_"));
  return { ...Object.fromEntries(rest), ...settings };
}

/** Runs the command line as a process of its own, with pipes, as a script would. */
export async function mintmark(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  input = "",
): Promise<Ended> {
  const child = spawn(process.execPath, ["scripts/mintmark.ts", ...args], {
    cwd: ROOT,
    env: cleanEnvironment(settings),
  });
  child.stdin.on("error", () => {}).end(input);
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  const [code] = (await once(child, "exit")) as [number | null];
  const ended = { code, stdout: await stdout, stderr: await stderr };
  return { ...ended, json: () => JSON.parse(ended.stdout) as unknown };
}
