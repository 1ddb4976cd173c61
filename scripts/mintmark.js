#!/usr/bin/env node
/**
 * The command line: `npx mintmark --help`. It is JavaScript, because Node would load its compiler
 * for a first file in TypeScript; those below come from the cache.
 */
import { existsSync } from "node:fs";
import module from "node:module";
import { fileURLToPath } from "node:url";

// The sources need a newer one than the compiled package.
const NODE = existsSync(new URL("commands/program.ts", import.meta.url)) ? 24 : 22;
if (Number.parseInt(process.versions.node, 10) < NODE) {
  process.stderr.write(
    `error: Mintmark needs Node ${NODE}; this is Node ${process.versions.node}\n`,
  );
  process.exit(1);
}
// Halves the start time. The cache is in the package's own folder, because other users could write
// to a temporary one.
module.enableCompileCache?.(fileURLToPath(new URL("../cache/compiled", import.meta.url)));
const [{ runCli }, { EXIT }] = await Promise.all([
  import("./commands/program.ts"),
  import("./cli/exit.ts"),
]);

// A reader such as `head` may stop reading. The work goes on, and its own result is the exit code: a
// server serves without a log, and `verify | head` still says whether it found something.
process.stdout.on("error", (error) => {
  if (!("code" in error) || error.code !== "EPIPE") process.exitCode = 1;
});
process.stderr.on("error", () => {});
await runCli(process.argv.slice(2));
// An interrupted command may leave an unanswered request, which would keep the process.
if (process.exitCode === EXIT.interrupted) process.exit();
// Only a process that runs until a signal still listens for one. It waits for a reader of its last
// lines for a second; a command's result waits until it is read.
if (process.listenerCount("SIGTERM") > 0) setTimeout(() => process.exit(), 1_000).unref();
