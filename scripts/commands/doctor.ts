import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { readConfig } from "../../server/process/settings/config.ts";
import { doctorSettings } from "../../server/process/settings/process-settings.ts";
import { configured } from "../cli/command.ts";
import { UsageError } from "../cli/errors.ts";
import { examine, type Finding, settingsIn } from "../doctor/doctor.ts";

export function addDoctor(program: Command): void {
  configured(
    program,
    "doctor",
    "look at a running or a stopped deployment, and say what is wrong and what to do",
    ["doctor --folder mintmark-sepolia", "doctor --json   # with the server's settings in the environment"],
    doctorSettings,
    async ({ MINTMARK_FOLDER: folder, MINTMARK_BACKUP: backup }) => {
      if (folder === undefined) {
        const { MINTMARK_FOLDER: _, MINTMARK_BACKUP: __, ...environment } = process.env;
        return examine(readConfig(environment), { backup, members: null });
      }
      const fileOf = (name: string) => join(resolve(folder), name, "settings.env");
      if (!existsSync(fileOf("server")))
        throw new UsageError(`--folder: ${folder} has no server/settings.env; give a folder of mintmark up`);
      const members = readdirSync(resolve(folder)).filter((name) => /^member-\d+$/.test(name));
      return examine(readConfig(settingsIn(fileOf("server"))), {
        backup: backup ?? join(resolve(folder), "backup", "journal"),
        members: members.map((name) => settingsIn(fileOf(name))),
      });
    },
    { failed: (answer) => adviceOf(answer as readonly Finding[]) },
  );
}

/** Exit code 1 for a fault. Warnings and what could not be asked do not wake anybody. */
function adviceOf(findings: readonly Finding[]): string | null {
  const faults = findings.filter(({ status }) => status === "fault").length;
  return faults === 0 ? null : `${faults} fault${faults === 1 ? "" : "s"}: do what stands beside each`;
}
