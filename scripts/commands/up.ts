import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { readConfig } from "../../server/process/settings/config.ts";
import { doctorSettings, upSettings } from "../../server/process/settings/process-settings.ts";
import { command } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { print } from "../cli/output.ts";
import type { Finding } from "../doctor/doctor.ts";
import { NETWORK_NAMES, networks } from "../up/networks.ts";
import type { GivenAnswers } from "../up/terms.ts";
import type { UpResult } from "../up/up.ts";

export const upCommand = command({
  examples: [
    "up --network sepolia --rpc https://rpc.example",
    "up --network base-sepolia --profile solo --rpc https://rpc.example --yes --start",
    "up --network https://rpc.example --answers answers.json --yes --start",
  ],
  settings: upSettings,
  isProcess: true,
  options: {
    "--yes": "spend without a question",
    "--start": "start the processes too, until Ctrl-C",
  },
  async work({ options, signal, progress }, settings) {
    const say = (line: string) => void process.stderr.write(`${line}\n`);
    const { MINTMARK_NETWORK: wanted, MINTMARK_RPC_URL: rpc, MINTMARK_ANSWERS: answers } = settings;
    const { MINTMARK_PROFILE: profile } = settings;
    const isKnown = NETWORK_NAMES.includes(wanted.toLowerCase());
    if (!isKnown && !/^https?:\/\//.test(wanted))
      throw new UsageError(
        `--network: give the URL of a node, or one of ${NETWORK_NAMES.join(", ")}`,
      );
    if (!isKnown && rpc !== undefined) throw new UsageError("--rpc: --network is a URL already");
    const known = await networks();
    const expected = known.find(({ name }) => name === wanted.toLowerCase());
    const folder = resolve(
      settings.MINTMARK_FOLDER ?? `mintmark-${expected?.name ?? new URL(wanted).hostname}`,
    );
    const isAllowed = options.yes === true;
    const [{ up }, { askTerms, confirm }] = await Promise.all([
      import("../up/up.ts"),
      import("../up/terms.ts"),
    ]);
    const result = await up({
      folder,
      expected,
      known,
      rpc: rpc ?? expected?.rpc ?? wanted,
      sourcify: settings.MINTMARK_SOURCIFY,
      given: answers as GivenAnswers | undefined,
      profile,
      isAttended: isAllowed || process.stdin.isTTY === true,
      ask: async (isSolo) => (isAllowed ? {} : askTerms(signal, isSolo)),
      allow: async (question) => isAllowed || confirm(question, signal),
      say,
      progress: process.stderr.isTTY ? progress : progressLines(say),
      signal,
      pollMs: settings.MINTMARK_POLL_MS,
    });
    if (options.start !== true) return options.json === true ? shown(result) : screen(result);
    // The processes are in no group of this terminal, so it must end them when the terminal closes.
    const closed = new AbortController();
    process.once("SIGHUP", () => closed.abort());
    const stop = AbortSignal.any([signal, closed.signal]);
    const { startProcesses } = await import("../up/processes.ts");
    const { ended, stop: stopAll } = await startProcesses(folder, result.processes, {
      progress,
      signal: stop,
    });
    if (options.json === true) print(shown(result), true);
    else screen(result);
    say("all processes are ready; Ctrl-C stops them");
    const over = AbortSignal.any([stop, ended]);
    if (!over.aborted) await once(over, "abort");
    await stopAll();
    if (!stop.aborted) throw ended.reason;
  },
});

/** Without a terminal each new step is a line of its own. */
function progressLines(say: (line: string) => void): (line: string) => void {
  let last = "";
  return (line) => {
    if (line !== last) say(`… ${line}`);
    last = line;
  };
}

function shown({ processes, ...result }: UpResult): unknown {
  return {
    ...result,
    processes: processes.map(({ name, command, readyUrl }) => ({ name, command, readyUrl })),
  };
}

function screen({
  contract,
  explorer,
  chainId,
  folder,
  assets,
  apiKeyFile,
  processes,
  spent,
}: UpResult): void {
  const rows = {
    contract: `${contract} on chain ${chainId}`,
    ...(explorer !== null && { explorer }),
    assets: assets.map(({ symbol, assetId }) => `${symbol} ${assetId}`).join(", ") || "none yet",
    "API key": `in ${apiKeyFile}`,
    server: new URL(processes[0]?.readyUrl ?? "").origin,
    settings: `${folder}/<process>/settings.env; systemd/ and compose.yaml use them`,
    cost: Object.entries(spent)
      .map(([step, ether]) => `${step} ${ether}`)
      .join(", "),
    "check it": `npx mintmark doctor --folder ${folder}`,
  };
  print(rows, false);
}

export const doctorCommand = command({
  examples: [
    "doctor --folder mintmark-sepolia",
    "doctor --json   # with the server's settings in the environment",
  ],
  settings: doctorSettings,
  options: { "--stopped": "the server is meant to be stopped" },
  /** A fault exits with 1; warnings and unanswered questions exit with 0. */
  failed(findings: readonly Finding[]) {
    const faults = findings.filter(({ status }) => status === "fault").length;
    return faults === 0
      ? null
      : `${faults} fault${faults === 1 ? "" : "s"}: do what stands beside each`;
  },
  async work({ options }, { MINTMARK_FOLDER: folder, MINTMARK_BACKUP: backup }) {
    const isStopped = options.stopped === true;
    const fileOf = (name: string) => join(resolve(folder ?? ""), name, "settings.env");
    if (folder !== undefined && !existsSync(fileOf("server")))
      throw new UsageError(
        `--folder: ${folder} has no server/settings.env; give a folder of mintmark up`,
      );
    const [{ examine }, { settingsIn }] = await Promise.all([
      import("../doctor/doctor.ts"),
      import("../up/processes.ts"),
    ]);
    if (folder === undefined) {
      const { MINTMARK_FOLDER: _, MINTMARK_BACKUP: __, ...environment } = process.env;
      return examine(readConfig(environment), { backup, members: null, watcher: null, isStopped });
    }
    const members = readdirSync(resolve(folder)).filter((name) => /^member-\d+$/.test(name));
    return examine(readConfig(settingsIn(fileOf("server"))), {
      backup: backup ?? join(resolve(folder), "backup", "journal"),
      members: members.map((name) => settingsIn(fileOf(name))),
      watcher: existsSync(fileOf("watcher")) ? settingsIn(fileOf("watcher")) : null,
      isStopped,
    });
  },
});
