/**
 * `npm run demo [-- --json]`: the main job, end to end and checked: mint over HTTP, commit, withdraw, own on L1. Uses the sandbox that runs in
 * MINTMARK_SANDBOX (.mintmark/sandbox), or starts one of its own. Exits with 1 if any check fails.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { answerHelp } from "./command.ts";
import { type DemoResult, runDemo } from "./demo/run.ts";
import { type SandboxDescription, startSandbox } from "./sandbox/sandbox.ts";

answerHelp(`Usage: npm run demo [-- --json]

The main job, end to end and checked: mint over HTTP, commit, withdraw, own on L1. Uses the sandbox that runs, or starts
one of its own. Exits with 1 if any check fails. By the environment:

  MINTMARK_SANDBOX  the sandbox's folder, .mintmark/sandbox
`);
const asJson = process.argv.includes("--json");
const say = (line: string) => (asJson ? process.stderr : process.stdout).write(`${line}\n`);
const note = (line: string) => process.stderr.write(`${line}\n`);

/** The sandbox of another process, if its description is there and its API answers. */
async function runningSandbox(folder: string): Promise<SandboxDescription | null> {
  try {
    const description = JSON.parse(await readFile(resolve(folder, "sandbox.json"), "utf8")) as SandboxDescription;
    const health = await fetch(`${description.api}/healthz`);
    return health.ok ? description : null;
  } catch {
    return null;
  }
}

async function demo(): Promise<DemoResult> {
  const running = await runningSandbox(process.env.MINTMARK_SANDBOX ?? ".mintmark/sandbox");
  if (running !== null) {
    say(`using the sandbox at ${running.api}`);
    return runDemo(running, say);
  }
  const sandbox = await startSandbox({
    folder: ".mintmark/demo",
    port: 0,
    chainPort: 0,
    onProgress: (step) => note(`… ${step}`),
    onError: (error) => note(`settlement: ${error instanceof Error ? error.message : String(error)}; trying again`),
  });
  try {
    return await runDemo(sandbox.description, say);
  } finally {
    await sandbox.stop();
  }
}

function table({ mints, vaults, batches, withdrawals, gasPerWithdrawal }: DemoResult): string {
  const { validium, "zk-rollup": rollup } = batches;
  const rows = [
    ["", "validium", "zk-rollup", "both"],
    ["mints", validium.mints, rollup.mints, mints],
    ["vaults", "", "", vaults],
    ["batches", validium.batches, rollup.batches, validium.batches + rollup.batches],
    ["gas per mint", validium.gasPerMint, rollup.gasPerMint, ""],
    ["withdrawals", "", "", withdrawals],
    ["gas per withdrawal", "", "", gasPerWithdrawal],
  ];
  return rows
    .map(([name, ...cells]) => `${String(name).padEnd(20)}${cells.map((cell) => String(cell).padStart(12)).join("")}`)
    .join("\n");
}

try {
  const result = await demo();
  const failed = result.checks.filter(({ ok }) => !ok).length;
  if (asJson) process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  else say(`\n${table(result)}\n\n${result.checks.length - failed} of ${result.checks.length} checks passed`);
  process.exit(failed === 0 ? 0 : 1);
} catch (error) {
  note(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
