import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "vitest";
import { cleanEnvironment } from "./cli/cli.ts";

// Processes and commands as the documentation names them.

const ROOT = new URL("../", import.meta.url).pathname;

type Settings = Readonly<Record<string, string>>;

/**
 * A run of npm. It leads a group, because npm, a shell and the command are processes of their own.
 */
export class Npm implements AsyncDisposable {
  readonly #child: ChildProcess;
  /** Resolves with its exit code when all its pipes are closed. */
  readonly ended: Promise<number | null>;
  #stdout = "";
  #said = "";

  /** @param args - those of npm, such as `["run", "server"]` */
  constructor(args: readonly string[], settings: Settings = {}, input = "", cwd = ROOT) {
    const env = { ...cleanEnvironment(settings), npm_config_loglevel: "silent" };
    const child = spawn("npm", args, { cwd, env, detached: true });
    child.stdout.on("data", (text: Buffer) => {
      this.#stdout += text;
      this.#said += text;
    });
    child.stderr.on("data", (text: Buffer) => {
      this.#said += text;
    });
    child.stdin.on("error", () => {}).end(input);
    this.#child = child;
    this.ended = once(child, "close").then(([code]) => code as number | null);
  }

  /** Everything that it has printed. */
  get said(): string {
    return this.#said;
  }

  /** Resolves with the first group of the pattern once it is printed. */
  says(pattern: RegExp): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(this.#said);
        if (found !== null) resolve(found[1] ?? "");
      };
      for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.on("data", look);
      void this.ended.then((code) => reject(new Error(`ended with ${code}: ${this.#said}`)));
      look();
    });
  }

  /** Its output, as JSON, once it has ended well. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the command answered.
  async json(): Promise<any> {
    expect(await this.ended, this.#said).toBe(0);
    return JSON.parse(this.#stdout);
  }

  /**
   * Ends a script of npm as a supervisor does; resolves with its exit code. `npx` passes no signal
   * on.
   */
  async stop(signal: "SIGINT" | "SIGTERM" = "SIGTERM"): Promise<number | null> {
    this.#child.kill(signal);
    return this.ended;
  }

  /** Ends it as Ctrl-C on a terminal does, which all its processes get. */
  async interrupt(): Promise<void> {
    process.kill(-(this.#child.pid as number), "SIGINT");
    await this.ended;
  }

  /** Ends all its processes at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      process.kill(-(this.#child.pid as number), "SIGKILL");
    } catch {
      // They have ended.
    }
    await this.ended;
  }
}
