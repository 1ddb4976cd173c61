import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** A chain of Foundry's anvil on a loopback port: a second implementation beside hardhat's. */
export interface Anvil {
  readonly url: string;
  /** Resolves when the process has ended. */
  close(): Promise<void>;
}

/** Starts a chain after the Osaka upgrade. @param args - further arguments of anvil */
export async function startAnvil(args: readonly string[] = []): Promise<Anvil> {
  const folder = dirname(createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json"));
  const fixed = ["--host", "127.0.0.1", "--port", "0", "--hardfork", "osaka"];
  const child = spawn(process.execPath, [join(folder, "bin.mjs"), ...fixed, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      const address = /Listening on (127\.0\.0\.1:\d+)/.exec(output)?.[1];
      if (address !== undefined) resolve(`http://${address}`);
    });
    void ended.then(() => reject(new Error(`anvil ended: ${output}`)));
  });
  return {
    url,
    async close() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
