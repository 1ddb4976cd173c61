import { existsSync } from "node:fs";
import type { Command } from "commander";
import { chainSettings, demoSettings, sandboxSettings } from "../../server/process/settings/process-settings.ts";
import { SETTINGS, settings as serverSettings } from "../../server/process/settings/settings.ts";
import { stopSignal, stopSignalFromStart } from "../../server/process/shutdown.ts";
import { configured } from "../cli/command.ts";
import { EXIT, messageOf } from "../cli/errors.ts";
import { missingHardhat } from "../sandbox/chain.ts";

/** Commands with a chain in this process. Only a clone has PostgreSQL for a cluster. */
export function addLocal(program: Command): void {
  const missing = missingHardhat();
  const needs = missing === null ? "" : `; needs Hardhat (${missing})`;
  configured(
    program,
    "sandbox",
    `a local chain, contracts, an engine, a demo application and the HTTP server, fresh at each start, until Ctrl-C${needs}`,
    ["sandbox", "sandbox --port 4000"],
    sandboxSettings,
    async (settings) => {
      const untilStopped = stopSignalFromStart();
      const { MINTMARK_SANDBOX: folder, MINTMARK_PORT: port, MINTMARK_CHAIN_PORT: chainPort } = settings;
      const [{ startSandbox }, { screen }, { buildGuide }] = await Promise.all([
        import("../sandbox/sandbox.ts"),
        import("../sandbox/screen.ts"),
        import("../../server/pages/guide.ts"),
      ]);
      buildGuide().catch((error: unknown) => note(messageOf(error)));
      const sandbox = await startSandbox({
        folder,
        port,
        chainPort,
        rollupData: settings.MINTMARK_ROLLUP_DATA,
        ...told,
      });
      process.stdout.write(screen(sandbox.description));
      await untilStopped();
      note("stopping");
      await sandbox.stop();
      // Everything of ours is closed, but the simulated chain keeps idle handles.
      process.exit(EXIT.ok);
    },
  );
  configured(
    program,
    "demo",
    `the main job end to end, checked: mint over HTTP, commit, withdraw, own on L1; on the running sandbox, or one of its own${needs}`,
    ["demo", "demo --json"],
    demoSettings,
    async ({ MINTMARK_SANDBOX: folder }, { options }) => {
      const { demo } = await import("../demo/run.ts");
      process.exit((await demo(folder, options.json === true, told)) ? EXIT.ok : EXIT.refused);
    },
  );
  configured(
    program,
    "chain",
    `a bare local chain in memory, chain id 31337, until Ctrl-C${needs}`,
    ["chain", "chain --chain-port 9545"],
    chainSettings,
    async ({ MINTMARK_CHAIN_PORT: port }) => {
      const untilStopped = stopSignalFromStart();
      const { startChain } = await import("../sandbox/chain.ts");
      const chain = await startChain("local", port);
      process.stdout.write(`local chain ${chain.rpcUrl} (chain id 31337, in memory); Ctrl-C stops it\n`);
      await untilStopped();
      await chain.stop();
    },
  );
  if (existsSync(new URL("../../hardhat.config.ts", import.meta.url))) addCluster(program);
}

function addCluster(program: Command): void {
  configured(
    program,
    "cluster",
    "three servers over PostgreSQL on this machine: mint, kill the leader, and see that nothing was lost",
    ["cluster", "cluster --json"],
    demoSettings,
    async ({ MINTMARK_SANDBOX: folder }, { options }) => {
      const { runCluster, clusterScreen, isWhole } = await import("../cluster/cluster.ts");
      const report = await runCluster(`${folder}-cluster`, { seconds: 5, onProgress: told.onProgress });
      process.stdout.write(options.json === true ? `${JSON.stringify(report)}\n` : clusterScreen(report));
      process.exit(isWhole(report) ? EXIT.ok : EXIT.refused);
    },
  );
}

const note = (line: string) => process.stderr.write(`${line}\n`);
const told = {
  onProgress: (step: string) => note(`… ${step}`),
  onError: (error: unknown) => note(`settlement: ${messageOf(error)}; trying again`),
};

export function addServer(program: Command): void {
  configured(
    program,
    "server",
    "one server on one store, until SIGINT or SIGTERM",
    ["server", "server --config mintmark.json --port 4000"],
    serverSettings,
    async (config) => {
      // First of all, because nothing else handles a signal while the server starts.
      const stopped = stopSignal();
      await (await import("../../server/main.ts")).run(config, stopped);
    },
    { known: Object.keys(SETTINGS) },
  );
}
