import * as processes from "../../server/process/settings/process-settings.ts";
import { SETTINGS, settings as serverSettings } from "../../server/process/settings/settings.ts";
import { stopSignal, stopSignalFromStart } from "../../server/process/shutdown.ts";
import { command } from "../cli/command.ts";
import { messageOf } from "../cli/errors.ts";
import { EXIT } from "../cli/exit.ts";

const note = (line: string) => process.stderr.write(`${line}\n`);
const told = {
  onProgress: (step: string) => note(`… ${step}`),
  onError: (error: unknown) => note(`settlement: ${messageOf(error)}; trying again`),
};

export const sandbox = command({
  examples: ["sandbox", "sandbox --port 4000"],
  settings: processes.sandboxSettings,
  isProcess: true,
  async work(
    _,
    { MINTMARK_SANDBOX: folder, MINTMARK_PORT: port, MINTMARK_CHAIN_PORT: chainPort, ...settings },
  ) {
    const untilStopped = stopSignalFromStart();
    const [{ startSandbox }, { screen }, { buildGuide }] = await Promise.all([
      import("../sandbox/sandbox.ts"),
      import("../sandbox/screen.ts"),
      import("../../server/pages/guide.ts"),
    ]);
    buildGuide().catch((error: unknown) => note(messageOf(error)));
    const rollupData = settings.MINTMARK_ROLLUP_DATA;
    const sandbox = await startSandbox({ folder, port, chainPort, rollupData, ...told });
    process.stdout.write(screen(sandbox.description));
    await untilStopped();
    note("stopping");
    await sandbox.stop();
    // Everything of ours is closed, but the simulated chain keeps idle handles.
    process.exit(EXIT.ok);
  },
});

export const demo = command({
  examples: ["demo", "demo --json"],
  settings: processes.demoSettings,
  async work({ options }, { MINTMARK_SANDBOX: folder }) {
    const { demo } = await import("../demo/run.ts");
    process.exit((await demo(folder, options.json === true, told)) ? EXIT.ok : EXIT.refused);
  },
});

export const chain = command({
  examples: ["chain", "chain --chain-port 9545"],
  settings: processes.chainSettings,
  isProcess: true,
  async work(_, { MINTMARK_CHAIN_PORT: port }) {
    const untilStopped = stopSignalFromStart();
    const { startChain } = await import("../sandbox/chain.ts");
    const chain = await startChain("local", port);
    process.stdout.write(
      `local chain ${chain.rpcUrl} (chain id 31337, in memory); Ctrl-C stops it\n`,
    );
    await untilStopped();
    await chain.stop();
  },
});

export const cluster = command({
  examples: ["cluster", "cluster --json"],
  settings: processes.demoSettings,
  isProcess: true,
  async work({ options, signal }, { MINTMARK_SANDBOX: folder }) {
    const { runCluster, clusterScreen, isWhole } = await import("../cluster/cluster.ts");
    const report = await runCluster(`${folder}-cluster`, 5, told.onProgress, signal);
    process.stdout.write(
      options.json === true ? `${JSON.stringify(report)}\n` : clusterScreen(report),
    );
    process.exit(isWhole(report) ? EXIT.ok : EXIT.refused);
  },
});

export const serverCommand = command({
  examples: ["server", "server --config mintmark.json --port 4000"],
  settings: serverSettings,
  known: Object.keys(SETTINGS),
  isProcess: true,
  async work(_, config) {
    // First of all, because nothing else handles a signal while the server starts.
    const stopped = stopSignal();
    await (await import("../../server/main.ts")).run(config, stopped);
  },
});
