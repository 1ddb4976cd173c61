import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { jsonText } from "../files.ts";
import { type SandboxDescription, type SandboxOptions, startSandbox } from "../sandbox/sandbox.ts";
import { type DemoResult, runDemo } from "./run.ts";

/**
 * Runs the demo on a running sandbox, or on its own, and prints the results. Resolves with whether all checks passed.
 */
export async function demo(
  folder: string,
  isJson: boolean,
  told: Pick<SandboxOptions, "onProgress" | "onError">,
): Promise<boolean> {
  const say = (line: string) => (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  const result = await resultOf(folder, say, told);
  const failed = result.checks.filter(({ ok }) => !ok).length;
  if (isJson) process.stdout.write(jsonText(result));
  else say(`\n${table(result)}\n\n${result.checks.length - failed} of ${result.checks.length} checks passed`);
  return failed === 0;
}

async function resultOf(
  folder: string,
  say: (line: string) => void,
  told: Pick<SandboxOptions, "onProgress" | "onError">,
): Promise<DemoResult> {
  const running = await runningSandbox(folder);
  if (running !== null) {
    say(`using the sandbox at ${running.api}`);
    return runDemo(running, say);
  }
  const sandbox = await startSandbox({ folder: ".mintmark/demo", port: 0, chainPort: 0, ...told });
  try {
    return await runDemo(sandbox.description, say);
  } finally {
    await sandbox.stop();
  }
}

/** The sandbox of another process, if its description exists and its API responds. */
async function runningSandbox(folder: string): Promise<SandboxDescription | null> {
  try {
    const description = JSON.parse(await readFile(resolve(folder, "sandbox.json"), "utf8")) as SandboxDescription;
    const health = await fetch(`${description.api}/healthz`);
    return health.ok ? description : null;
  } catch {
    return null;
  }
}

function table({ mints, vaults, batches, withdrawals, gasPerWithdrawal }: DemoResult): string {
  const { validium, blobs, calldata } = batches;
  const kinds = [validium, blobs, calldata];
  const counts = kinds.map((kind) => kind.batches);
  const rows = [
    ["", "validium", "blobs", "calldata", "all"],
    ["mints", ...kinds.map((kind) => kind.mints), mints],
    ["vaults", "", "", "", vaults],
    ["batches", ...counts, counts.reduce((sum, count) => sum + count, 0)],
    ["gas per mint", ...kinds.map((kind) => kind.gasPerMint), ""],
    ["blob gas per mint", ...kinds.map((kind) => kind.blobGasPerMint), ""],
    ["withdrawals", ...kinds.map((kind) => kind.withdrawals), withdrawals],
    ["gas per withdrawal", "", "", "", gasPerWithdrawal],
  ];
  return rows
    .map(([name, ...cells]) => `${String(name).padEnd(20)}${cells.map((cell) => String(cell).padStart(12)).join("")}`)
    .join("\n");
}
