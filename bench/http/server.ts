import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import packageJson from "../../package.json" with { type: "json" };
import { endOf, endProcess, freePort, MAIN, untilAnswer } from "../../scripts/sandbox/process.ts";
import { SETTLEMENT, type World } from "../engine-workload.ts";

/**
 * Units of rate a second that no run reaches; the most that the server takes. The limiter still
 * counts.
 */
export const UNLIMITED = 999_999_999;

const SCRIPTS = {
  engine: [MAIN, "server"],
  bare: [fileURLToPath(new URL("./bare-server.ts", import.meta.url))],
  watched: [fileURLToPath(new URL("./watched-server.ts", import.meta.url))],
} as const;

/** Node's options of `npm run server`. */
const OPTIONS = packageJson.scripts.server.split(" ").filter((word) => word.startsWith("--"));

/**
 * Limits that no measurement reaches. When the machine stalls, more requests wait than one key may
 * hold.
 */
const ROOMY = {
  MINTMARK_RATE_UNITS: String(UNLIMITED),
  MINTMARK_RATE_WINDOW_SECONDS: "1",
  MINTMARK_MEMORY_MIB: "16384",
};

/**
 * Starts the server like `npm run server`, or without an engine. Its log goes to /dev/null at the
 * usual level.
 */
export async function startServer(
  which: keyof typeof SCRIPTS,
  store: string,
  { apiKey }: Pick<World, "apiKey">,
  options: readonly string[] = [],
  limits: Readonly<Record<string, string>> = ROOMY,
) {
  const port = await freePort(0);
  const settings = {
    MINTMARK_STORE: store,
    MINTMARK_ENVIRONMENT: "sandbox",
    MINTMARK_CHAIN_ID: String(SETTLEMENT.chainId),
    MINTMARK_CONTRACT: SETTLEMENT.contract,
    MINTMARK_ENGINE_VERSION: String(SETTLEMENT.engineVersion),
    MINTMARK_PORT: String(port),
    ...limits,
  };
  const child = spawn(process.execPath, [...OPTIONS, ...options, ...SCRIPTS[which]], {
    env: { PATH: process.env.PATH, ...settings, ...(which === "bare" && { BENCH_KEY: apiKey }) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  await untilAnswer(`http://127.0.0.1:${port}/healthz`, ({ ok }) => ok, endOf(child));
  return { pid: child.pid ?? 0, port, [Symbol.asyncDispose]: () => endProcess(child, "SIGTERM") };
}
