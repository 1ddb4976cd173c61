/** `npm start`; see the help below. */

import { stopSignal } from "../server/stop-signal.ts";
import { portOf } from "./port.ts";
import { startSandbox } from "./sandbox/sandbox.ts";
import { screen } from "./sandbox/screen.ts";

const HELP = `Usage: npm start

A local chain, contracts, an engine, a demo application and the HTTP server, until Ctrl-C. Every start is a fresh one.
By the environment:

  MINTMARK_PORT        the server's port, 3000
  MINTMARK_CHAIN_PORT  the chain's port, 8545
  MINTMARK_SANDBOX     the folder, .mintmark/sandbox
`;

const note = (line: string) => process.stderr.write(`${line}\n`);

if (process.argv.length > 2) {
  process.stdout.write(HELP);
  process.exit(process.argv[2] === "--help" ? 0 : 2);
}

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
