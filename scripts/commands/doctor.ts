import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { readConfig } from "../../server/process/settings/config.ts";
import { doctorSettings } from "../../server/process/settings/process-settings.ts";
import { configured } from "../cli/command.ts";
import { UsageError } from "../cli/errors.ts";
import { examine, type Finding } from "../doctor/doctor.ts";
import { settingsIn } from "../up/processes.ts";

export function addDoctor(program: Command): void {
  configured(
    program,
    "doctor",
    "look at a running or a stopped deployment, and say what is wrong and what to do",
    ["doctor --folder mintmark-sepolia", "doctor --json   # with the server's settings in the environment"],
    doctorSettings,
    async ({ MINTMARK_FOLDER: folder, MINTMARK_BACKUP: backup }, { options }) => {
      const isStopped = options.stopped === true;
      if (folder === undefined) {
        const { MINTMARK_FOLDER: _, MINTMARK_BACKUP: __, ...environment } = process.env;
        return examine(readConfig(environment), { backup, members: null, watcher: null, isStopped });
      }
      const fileOf = (name: string) => join(resolve(folder), name, "settings.env");
      if (!existsSync(fileOf("server")))
        throw new UsageError(`--folder: ${folder} has no server/settings.env; give a folder of mintmark up`);
      const members = readdirSync(resolve(folder)).filter((name) => /^member-\d+$/.test(name));
      return examine(readConfig(settingsIn(fileOf("server"))), {
        backup: backup ?? join(resolve(folder), "backup", "journal"),
        members: members.map((name) => settingsIn(fileOf(name))),
        watcher: existsSync(fileOf("watcher")) ? settingsIn(fileOf("watcher")) : null,
        isStopped,
      });
    },
    { failed: (answer) => adviceOf(answer as readonly Finding[]) },
  ).option("--stopped", "the server is meant to be stopped");
}

/** Exit code 1 for a fault. Warnings and unanswered questions exit with 0. */
function adviceOf(findings: readonly Finding[]): string | null {
  const faults = findings.filter(({ status }) => status === "fault").length;
  return faults === 0 ? null : `${faults} fault${faults === 1 ? "" : "s"}: do what stands beside each`;
}
