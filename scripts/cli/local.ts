import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { acting, leaf } from "./command.ts";
import { UsageError } from "./exit-codes.ts";

/** The sandbox and the demo need contracts and a compiler, which a clone has and the package has not; each is a process of its own. */
export function addLocal(program: Command): void {
  leaf(program, "sandbox", "a local chain, contracts, an engine and the HTTP server, until Ctrl-C", ["sandbox"]).action(
    acting(() => runScript("sandbox.ts", [])),
  );
  leaf(program, "demo", "the main job end to end, checked", ["demo", "demo --json"]).action(
    acting(({ json }) => runScript("demo.ts", json === true ? ["--json"] : [])),
  );
}

async function runScript(name: string, args: readonly string[]): Promise<undefined> {
  const script = fileURLToPath(new URL(`../${name}`, import.meta.url));
  if (!existsSync(script)) throw new UsageError("this needs the repository: clone it, run `npm ci`, and try there");
  const child = spawn(process.execPath, [script, ...args], { stdio: "inherit" });
  // Ctrl-C reaches the child by itself, and it ends in order.
  const ignore = () => {};
  process.on("SIGINT", ignore);
  const [code] = (await once(child, "exit")) as [number | null];
  process.off("SIGINT", ignore);
  process.exitCode = code ?? 1;
}
