#!/usr/bin/env node
/** The command line: `npx mintmark --help`. */
import module from "node:module";
import { fileURLToPath } from "node:url";

// The sources need a newer one than the compiled package.
const NODE = import.meta.url.endsWith(".ts") ? 24 : 22;
if (Number.parseInt(process.versions.node, 10) < NODE) {
  process.stderr.write(
    `error: Mintmark needs Node ${NODE}; this is Node ${process.versions.node}\n`,
  );
  process.exit(1);
}
// Halves the start time. The cache is in the package's own folder, because other users could write
// to a temporary one.
module.enableCompileCache?.(fileURLToPath(new URL("../cache/compiled", import.meta.url)));
const { runCli } = await import("./commands/program.ts");

// A reader such as `head` may stop reading.
process.stdout.on("error", (error: NodeJS.ErrnoException) =>
  process.exit(error.code === "EPIPE" ? 0 : 1),
);
await runCli(process.argv.slice(2));
