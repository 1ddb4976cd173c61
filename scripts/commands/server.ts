import type { Command } from "commander";
import { SETTINGS, settings } from "../../server/process/settings/settings.ts";
import { stopSignal } from "../../server/process/stop-signal.ts";
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
}
