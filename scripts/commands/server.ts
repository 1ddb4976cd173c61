import type { Command } from "commander";
import { stopSignal } from "../../server/process/stop-signal.ts";
import { routerSettings } from "../../server/settings/process-settings.ts";
import { SETTINGS, settings } from "../../server/settings/settings.ts";
import { configured } from "../cli/command.ts";

/** The processes that serve HTTP to applications. */
export function addServer(program: Command): void {
  configured(
    program,
    "server",
    "one server on one store, until SIGINT or SIGTERM",
    ["server", "server --config mintmark.json --port 4000"],
    settings,
    async (config) => {
      // First of all, because nothing else handles a signal while the server starts.
      const stopped = stopSignal();
      await (await import("../../server/main.ts")).run(config, stopped);
    },
    { known: Object.keys(SETTINGS) },
  );
  configured(
    program,
    "router",
    "the router before several servers, each with a store of its own, until SIGINT or SIGTERM",
    ["router --shards http://10.0.0.1:3000,http://10.0.0.2:3000"],
    routerSettings,
    async (config) => (await import("../../server/shards/router.ts")).serveRouter(config),
  );
}
