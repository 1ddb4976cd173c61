import { userInfo } from "node:os";
import { join } from "node:path";
import { writeWhole } from "../files.ts";
import { MAIN } from "../sandbox/process.ts";

export type Settings = Readonly<Record<string, string>>;

/** A process of a deployment. */
export interface Process {
  /** Also the names of its folder and its files. */
  readonly name: string;
  readonly command: readonly string[];
  readonly settings: Settings;
  /** Answers 200 when the process works; null for one that does not listen. */
  readonly readyUrl: string | null;
  /** The time between two runs, as systemd writes it, of a process that ends. */
  readonly every?: string;
}

export function settingsFile(folder: string, name: string): string {
  return join(folder, name, "settings.env");
}

/**
 * Writes settings, units of systemd and a file for Docker Compose. Only this user can read the settings, because
 * addresses of nodes often hold a key.
 *
 * @returns the files, as paths
 */
export async function writeFiles(folder: string, processes: readonly Process[]): Promise<string[]> {
  const files = new Map<string, string>();
  for (const process of processes) {
    const { name, settings, every } = process;
    files.set(settingsFile(folder, name), envText(settings));
    files.set(join(folder, "systemd", `mintmark-${name}.service`), unit(folder, process));
    if (every !== undefined) files.set(join(folder, "systemd", `mintmark-${name}.timer`), timer(name, every));
  }
  files.set(join(folder, "compose.yaml"), compose(folder, processes));
  for (const [path, text] of files) {
    await writeWhole(path, text, 0o600);
  }
  return [...files.keys()];
}

function envText(settings: Settings): string {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  return `${lines.join("\n")}\n`;
}

function unit(folder: string, { name, command, every }: Process): string {
  const words = [process.execPath, MAIN, ...command].map(quoted).join(" ");
  return `[Unit]
Description=Mintmark ${name}
Wants=network-online.target
After=network-online.target

[Service]
User=${userInfo().username}
WorkingDirectory=${folder}
EnvironmentFile=${settingsFile(folder, name)}
Environment=NODE_ENV=production
ExecStart=${words}
${every === undefined ? "Restart=on-failure\nRestartSec=2\nTimeoutStopSec=60" : "Type=oneshot"}
LimitNOFILE=65536
NoNewPrivileges=true
UMask=0077
${every === undefined ? "\n[Install]\nWantedBy=multi-user.target\n" : ""}`;
}

function timer(name: string, every: string): string {
  return `[Unit]
Description=Run mintmark-${name} every ${every}

[Timer]
OnBootSec=${every}
OnUnitActiveSec=${every}

[Install]
WantedBy=timers.target
`;
}

const quoted = (word: string) => (/^[\w./:=-]+$/.test(word) ? word : JSON.stringify(word));

/** Host networking and the same path inside let the settings serve inside and outside of a container. */
function compose(folder: string, processes: readonly Process[]): string {
  const services = processes.map(({ name, command, every }) => {
    const words =
      every === undefined ? command : ["sh", "-c", `while mintmark ${command.join(" ")}; do sleep 3600; done`];
    return `  ${name}:
    image: \${MINTMARK_IMAGE:-mintmark}
    ${every === undefined ? "command" : "entrypoint"}: ${JSON.stringify(words)}
    env_file: ${JSON.stringify(settingsFile(folder, name))}
    volumes: [${JSON.stringify(`${folder}:${folder}`)}]
    working_dir: ${JSON.stringify(folder)}
    network_mode: host
    restart: unless-stopped
`;
  });
  return `# docker compose up -d   The image: examples/deploy/Dockerfile\nname: mintmark\nservices:\n${services.join("")}`;
}
