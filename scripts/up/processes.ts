import { createWriteStream, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { isLocalChain } from "../../server/process/settings/settings.ts";
import type { Deployment } from "../deploy/record.ts";
import { textIn, writeWhole } from "../files.ts";
import { endOf, endProcess, MAIN, startMintmark, untilAnswer } from "../sandbox/process.ts";
import { type Accounts, passwordFile, type Signing } from "./accounts.ts";
import type { UpOptions } from "./record.ts";
import type { Answers } from "./terms.ts";

type Settings = Readonly<Record<string, string>>;

export interface Process {
  /** The process's name, also that of its folder and its files. */
  readonly name: string;
  readonly command: readonly string[];
  readonly settings: Settings;
  /** Answers 200 when the process works; null for one that does not listen. */
  readonly readyUrl: string | null;
  /** The time between two runs, as systemd writes it, of a process that ends. */
  readonly every?: string;
}

interface Facts extends Pick<Accounts, "members" | "signers"> {
  readonly folder: string;
  readonly rpc: string;
  readonly deployment: Deployment;
  readonly terms: Answers;
  readonly isTest: boolean;
  /** The operator's wei below which its server warns. */
  readonly leastBalance: bigint;
}

/** The image listens everywhere, and Compose gives it the network of its host. */
const LOCAL = { MINTMARK_HOST: "127.0.0.1" };

/**
 * The processes of a deployment with their settings: a server, its own members, a watcher, and a
 * backup each hour. The profile `solo` has the server and the backup alone.
 */
export function processesOf(facts: Facts): Process[] {
  const { folder, rpc, deployment, terms, isTest, signers, leastBalance } = facts;
  const { address: contract, deployedAtBlock, threshold } = deployment.settlement;
  const chain = {
    MINTMARK_RPC_URL: rpc,
    MINTMARK_CONTRACT: contract,
    MINTMARK_FROM_BLOCK: `${deployedAtBlock}`,
    // A local chain makes no blocks by itself that would make others final.
    ...(isLocalChain(BigInt(deployment.chainId)) && {
      MINTMARK_CONFIRMATIONS: "0",
      MINTMARK_POLL_MS: "1000",
    }),
  };
  const isSolo = terms.profile === "solo";
  const serverUrl = `http://127.0.0.1:${terms.port}`;
  const members = facts.members.map((member, at) => ({ ...member, port: terms.port + 100 + at }));
  const committee = [
    ...members.map(({ address, port }) => `${address}=http://127.0.0.1:${port}`),
    ...terms.committee.map(({ address, url }) => `${address}=${url}`),
  ];
  const peers = [serverUrl, ...terms.committee.map(({ url }) => url)];
  const keyOf = (party: string, signing: Signing) => signingSettings(folder, party, signing);
  const store = join(folder, "server", "store");
  const { MINTMARK_POLL_MS: _, ...serverChain } = chain;
  const server: Process = {
    name: "server",
    command: ["server"],
    readyUrl: `${serverUrl}/readyz`,
    settings: {
      MINTMARK_STORE: store,
      MINTMARK_ENVIRONMENT: isTest ? "sandbox" : "live",
      MINTMARK_CHAIN_ID: `${deployment.chainId}`,
      ...serverChain,
      ...keyOf("OPERATOR", signers.operator),
      ...keyOf("RECEIPT", signers.receipt),
      ...(isSolo
        ? { MINTMARK_OWN_MEMBER: "yes", MINTMARK_ROLLUP_DATA: "calldata" }
        : { MINTMARK_MEMBERS: committee.join(), MINTMARK_THRESHOLD: `${threshold}` }),
      // Somebody who tries it waits for each seal.
      ...(isTest && { MINTMARK_SEAL_SECONDS: "5" }),
      MINTMARK_LEAST_BALANCE: `${leastBalance}`,
      ...LOCAL,
      MINTMARK_PORT: `${terms.port}`,
      MINTMARK_METRICS_PORT: `${terms.port + 1}`,
    },
  };
  const memberOf = (member: (typeof members)[number], at: number): Process => ({
    name: `member-${at + 1}`,
    command: ["member"],
    readyUrl: `http://127.0.0.1:${member.port}/readyz`,
    settings: {
      MINTMARK_MEMBER_STORE: join(folder, `member-${at + 1}`, "store"),
      ...chain,
      ...keyOf("MEMBER", member),
      MINTMARK_PEERS: peers.join(),
      ...LOCAL,
      MINTMARK_PORT: `${member.port}`,
    },
  });
  const watcher: Process = {
    name: "watcher",
    command: ["watch"],
    readyUrl: null,
    settings: {
      MINTMARK_STORE: join(folder, "watcher", "store"),
      ...chain,
      ...keyOf("WATCHER", signers.watcher),
      MINTMARK_PEERS: [...peers, ...members.map(({ port }) => `http://127.0.0.1:${port}`)].join(),
    },
  };
  const command = ["backup", join(folder, "backup", "journal")];
  const backup = {
    name: "backup",
    command,
    readyUrl: null,
    every: "1h",
    settings: { MINTMARK_STORE: store },
  };
  return [server, ...members.map(memberOf), ...(isSolo ? [] : [watcher]), backup];
}

function signingSettings(
  folder: string,
  party: string,
  { address, keystore, url }: Signing,
): Settings {
  if (url !== undefined) return { [`MINTMARK_${party}_SIGNER`]: `${address}=${url}` };
  return {
    [`MINTMARK_${party}_KEYSTORE`]: keystore ?? "",
    [`MINTMARK_${party}_PASSWORD_FILE`]: passwordFile(join(folder, "keys")),
  };
}

function settingsFile(folder: string, name: string): string {
  return join(folder, name, "settings.env");
}

/**
 * Writes settings, units of systemd and a file for Docker Compose. Only this user can read the
 * settings, because addresses of nodes often hold a key. An operator's own settings stay.
 *
 * @returns the files, as paths, and the processes with the settings that the files have now
 */
export async function writeFiles(folder: string, processes: readonly Process[]) {
  const files = new Map<string, string>();
  for (const process of processes) {
    const { name, settings, every } = process;
    const path = settingsFile(folder, name);
    files.set(path, envText(settings, (await textIn(path)) ?? ""));
    files.set(join(folder, "systemd", `mintmark-${name}.service`), unit(folder, process));
    if (every !== undefined)
      files.set(join(folder, "systemd", `mintmark-${name}.timer`), timer(name, every));
  }
  files.set(join(folder, "systemd", "mintmark.target"), target(processes));
  files.set(join(folder, "compose.yaml"), compose(folder, processes));
  for (const [path, text] of files) await writeWhole(path, text, 0o600);
  const written = processes.map((process): Process => {
    const settings = settingsIn(settingsFile(folder, process.name));
    const { readyUrl } = process;
    const url =
      readyUrl === null ? null : Object.assign(new URL(readyUrl), { port: settings.MINTMARK_PORT });
    return { ...process, settings, readyUrl: url?.href ?? null };
  });
  return { files: [...files.keys()], written };
}

const YOURS =
  "# Write your own settings below this line. They count before those above, and mintmark up keeps them.\n";

/** Settings, and below them what an operator has written into the file. */
function envText(settings: Settings, earlier: string): string {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  const [above = "", yours = ""] = earlier.split(YOURS);
  const added = Object.entries(parsed(above)).filter(([name]) => !(name in settings));
  return `${lines.join("")}${YOURS}${added.map(([name, value]) => `${name}=${value}\n`).join("")}${yours}`;
}

export function settingsIn(path: string): Record<string, string> {
  return parsed(readFileSync(path, "utf8"));
}

function parsed(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}

function unit(folder: string, { name, command, every }: Process): string {
  const words = [process.execPath, MAIN, ...command]
    .map((word) => quoted(word).replaceAll("$", "$$$$"))
    .join(" ");
  return `[Unit]
Description=Mintmark ${name}
PartOf=mintmark.target
Wants=network-online.target
After=network-online.target

[Service]
User=${userInfo().username}
WorkingDirectory=${plain(folder)}
EnvironmentFile=${plain(settingsFile(folder, name))}
Environment=NODE_ENV=production
ExecStart=${words}
${every === undefined ? "Restart=on-failure\nRestartSec=2\nTimeoutStopSec=60" : "Type=oneshot"}
LimitNOFILE=65536
NoNewPrivileges=true
UMask=0077
${every === undefined ? "\n[Install]\nWantedBy=mintmark.target\n" : ""}`;
}

function timer(name: string, every: string): string {
  return `[Unit]
Description=Run mintmark-${name} every ${every}
PartOf=mintmark.target

[Timer]
OnBootSec=${every}
OnUnitActiveSec=${every}

[Install]
WantedBy=mintmark.target
`;
}

function target(processes: readonly Process[]): string {
  const units = processes.map(
    ({ name, every }) => `mintmark-${name}.${every === undefined ? "service" : "timer"}`,
  );
  return `[Unit]
Description=Mintmark
Wants=${units.join(" ")}

[Install]
WantedBy=multi-user.target
`;
}

/** systemd reads `%` as the start of a specifier. */
const plain = (text: string) => text.replaceAll("%", "%%");
const quoted = (word: string) => plain(/^[\w./:=-]+$/.test(word) ? word : JSON.stringify(word));
const shellQuoted = (word: string) =>
  /^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
/** Compose reads `$` as the start of a variable. */
const composed = (value: unknown) => JSON.stringify(value).replaceAll("$", "$$$$");

/**
 * Host networking, the same path and the same user inside let settings, stores and keys serve
 * inside and outside of a container.
 */
function compose(folder: string, processes: readonly Process[]): string {
  const { uid, gid } = userInfo();
  const services = processes.map(({ name, command, every }) => {
    const words =
      every === undefined
        ? command
        : ["sh", "-c", `while mintmark ${command.map(shellQuoted).join(" ")}; do sleep 3600; done`];
    return `  ${name}:
    image: \${MINTMARK_IMAGE:-mintmark}
    ${every === undefined ? "command" : "entrypoint"}: ${composed(words)}
    env_file: ${composed(settingsFile(folder, name))}
    volumes: [${composed(`${folder}:${folder}`)}]
    working_dir: ${composed(folder)}
    user: "${uid}:${gid}"
    network_mode: host
    restart: unless-stopped
`;
  });
  return `# docker compose up -d   The image: examples/deploy/Dockerfile\nname: mintmark\nservices:\n${services.join("")}`;
}

/** Time beside the limits of a server's shutdown. */
const SLACK_MS = 20_000;
const HOUR_MS = 3_600_000;

/**
 * Starts the processes that do not end, with their settings alone, and resolves when each is ready.
 * `ended` aborts when one of them ends by itself. Those that run again and again start then, as the
 * timers of systemd do.
 */
export async function startProcesses(
  folder: string,
  processes: readonly Process[],
  { progress, signal }: Pick<UpOptions, "progress" | "signal">,
) {
  const logs = join(folder, "logs");
  await mkdir(logs, { recursive: true });
  const children: (readonly [child: ReturnType<typeof startMintmark>, mostMs: number])[] = [];
  const timers: NodeJS.Timeout[] = [];
  const start = ({ name, command, settings }: Process) => {
    const log = join(logs, `${name}.log`);
    const child = startMintmark(command, settings, true);
    const file = createWriteStream(log, { flags: "a", mode: 0o600 });
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    child.once("close", () => file.end());
    const { MINTMARK_DRAIN_SECONDS: drain = 0, MINTMARK_SHUTDOWN_SECONDS: shutdown = 10 } =
      settings;
    // Time to end in order.
    children.push([child, (Number(drain) + Number(shutdown)) * 1_000 + SLACK_MS]);
    return endOf(child, (how) => `the ${name} ended with ${how}; ${log} says why`);
  };
  const stop = async () => {
    timers.forEach(clearInterval);
    await Promise.all(children.map(([child, mostMs]) => endProcess(child, "SIGTERM", mostMs)));
  };
  const lasting = processes.filter(({ every }) => every === undefined);
  const ended = AbortSignal.any(lasting.map(start));
  try {
    for (const { name, readyUrl } of lasting) {
      if (readyUrl === null) continue;
      progress(`waiting until the ${name} is ready`);
      await untilAnswer(readyUrl, ({ ok }) => ok, AbortSignal.any([signal, ended]));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  for (const process of processes) {
    if (process.every === undefined) continue;
    start(process);
    timers.push(setInterval(start, HOUR_MS, process));
  }
  return { ended, stop };
}
