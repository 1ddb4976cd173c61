/**
 * `npm start`: a local chain, contracts, an engine, a demo application and the HTTP server, until Ctrl-C. Every start is a fresh one.
 * Environment: MINTMARK_PORT (3000), MINTMARK_CHAIN_PORT (8545), MINTMARK_SANDBOX (folder, .mintmark/sandbox).
 */

import { stopSignal } from "../server/stop-signal.ts";
import { startSandbox } from "./sandbox/sandbox.ts";
import { screen } from "./sandbox/screen.ts";

/** A port from the environment; refused before anything is started when it is none. */
function portOf(variable: string, otherwise: number): number {
  const text = process.env[variable] ?? String(otherwise);
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new Error(`${variable} must be a port from 0 to 65535, not "${text}"`);
  return port;
}

const note = (line: string) => process.stderr.write(`${line}\n`);

try {
  const sandbox = await startSandbox({
    folder: process.env.MINTMARK_SANDBOX ?? ".mintmark/sandbox",
    port: portOf("MINTMARK_PORT", 3000),
    chainPort: portOf("MINTMARK_CHAIN_PORT", 8545),
    onProgress: (step) => note(`… ${step}`),
    onError: (error) => note(`settlement: ${error instanceof Error ? error.message : String(error)}; trying again`),
  });
  process.stdout.write(screen(sandbox.description));
  await stopSignal();
  note("stopping");
  await sandbox.stop();
  // Everything of ours is closed; the simulated chain keeps idle handles.
  process.exit(0);
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
