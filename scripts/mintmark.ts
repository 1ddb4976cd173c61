#!/usr/bin/env node
/** The command line: `npx mintmark --help`. */
import { runCli } from "./cli/program.ts";

// A reader such as `head` may have seen enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
await runCli(process.argv.slice(2));
