import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { PortalIdentity } from "../../core/ports.ts";
import packageJson from "../../package.json" with { type: "json" };
import { runCli } from "../../scripts/commands/program.ts";

/** Prints the URL of each module that Node loads. */
export const TRACE = `data:text/javascript,${encodeURIComponent(
  `import { registerHooks } from "node:module";
  registerHooks({ load: (url, context, next) => (process.stderr.write(url + "\\n"), next(url, context)) });`,
)}`;

/**
 * `npm run server` gives these to node. Without `exec` a shell may stay between npm and the server,
 * and keep signals from it.
 */
export const SERVER: readonly string[] = packageJson.scripts.server.split(" ").slice(2);

const ROOT = new URL("../../", import.meta.url).pathname;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the command answered.
  json(): any;
}

type Settings = Readonly<Record<string, string>>;

/** A shell's environment without settings of this project that it may hold. */
export function cleanEnvironment(settings: Settings = {}): NodeJS.ProcessEnv {
  const rest = Object.entries(process.env).filter(([name]) => !name.startsWith("MINTMARK_"));
  return { ...Object.fromEntries(rest), ...settings };
}

/** The settings of a sandbox store. */
export function settingsOf(
  store: string,
  { chainId, contract }: Pick<PortalIdentity, "chainId" | "contract">,
) {
  return {
    MINTMARK_STORE: store,
    MINTMARK_ENVIRONMENT: "sandbox",
    MINTMARK_CHAIN_ID: `${chainId}`,
    MINTMARK_CONTRACT: contract,
  };
}

/** The address at which a server's process listens. */
export function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface({ input: child.stdout as Readable }).on("line", (line) => {
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (found) resolve(found);
    });
  });
}

/**
 * Runs the command line as a process of its own, with pipes, as a script would. A process takes a
 * second of a core.
 */
export async function mintmarkProcess(
  args: readonly string[],
  settings: Settings = {},
  input = "",
): Promise<Ended> {
  const child = spawn(process.execPath, ["scripts/mintmark.js", ...args], {
    cwd: ROOT,
    env: cleanEnvironment(settings),
  });
  child.stdin.on("error", () => {}).end(input);
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  const [code] = (await once(child, "exit")) as [number | null];
  return ended(code, await stdout, await stderr);
}

function ended(code: number | null, stdout: string, stderr: string): Ended {
  return { code, stdout, stderr, json: () => JSON.parse(stdout) as unknown };
}

/** One after the other, since each has the process's environment and streams. */
let before: Promise<unknown> = Promise.resolve();

/**
 * Runs the command line: within this process, or as one of its own where it has standard input to
 * read.
 */
export function mintmark(
  args: readonly string[],
  settings: Settings = {},
  input?: string,
): Promise<Ended> {
  if (input !== undefined) return mintmarkProcess(args, settings, input);
  const run = before.then(() => runHere(args, settings));
  before = run.catch(() => {});
  return run;
}

async function runHere(args: readonly string[], settings: Settings): Promise<Ended> {
  const { env, exitCode } = process;
  const written = { stdout: "", stderr: "" };
  const writes = { stdout: process.stdout.write, stderr: process.stderr.write };
  for (const stream of ["stdout", "stderr"] as const) {
    process[stream].write = (chunk: unknown) => {
      written[stream] += String(chunk);
      return true;
    };
  }
  process.env = cleanEnvironment(settings);
  process.exitCode = undefined;
  try {
    await runCli(args);
    return ended(Number(process.exitCode ?? 0), written.stdout, written.stderr);
  } finally {
    process.stdout.write = writes.stdout;
    process.stderr.write = writes.stderr;
    process.env = env;
    process.exitCode = exitCode;
  }
}
