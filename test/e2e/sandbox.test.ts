import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runDemo } from "../../scripts/demo/run.ts";
import type { SandboxDescription } from "../../scripts/sandbox/sandbox.ts";
import { mintmark } from "../cli/cli.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** `npm start` as a newcomer runs it: a process of its own, on any free port. */
function startProcess(folder: string): ChildProcess {
  return spawn(process.execPath, ["scripts/mintmark.ts", "sandbox"], {
    cwd: ROOT,
    env: { ...process.env, MINTMARK_SANDBOX: folder, MINTMARK_PORT: "0", MINTMARK_CHAIN_PORT: "0" },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Resolves with what the process has printed once it prints `marker`. */
function printed(child: ChildProcess, marker: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const read = (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes(marker)) resolve(text);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("exit", (code) => reject(new Error(`exit ${code} before "${marker}":\n${text}`)));
  });
}

describe("the sandbox, as a process", () => {
  let folder: string;
  let child: ChildProcess;
  let screen: string;
  let description: SandboxDescription;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-sandbox-"));
    child = startProcess(folder);
    screen = await printed(child, "Ctrl-C stops everything");
    description = JSON.parse(await readFile(join(folder, "sandbox.json"), "utf8")) as SandboxDescription;
  });

  afterAll(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });

  test("prints address, key, ids and curl lines that work when pasted", async () => {
    expect(screen).toContain(description.api);
    expect(screen).toContain(description.apiKey);
    for (const { assetId } of description.assets) expect(screen).toContain(assetId);
    const [, mint] = screen.split("\n\n").flatMap((block) => (block.includes("/api/v1/mint") ? ["", block] : []));
    const shell = spawn("sh", ["-c", mint ?? ""]);
    let reply = "";
    shell.stdout.on("data", (chunk: Buffer) => {
      reply += chunk.toString();
    });
    await once(shell, "exit");
    const { vaults, transactions } = JSON.parse(reply) as { vaults: unknown[]; transactions: unknown[] };
    expect(vaults).toHaveLength(3);
    expect(transactions).toHaveLength(3);
  });

  test("a second one on the same folder is refused and harms nothing", async () => {
    const second = startProcess(folder);
    const text = await printed(second, "already runs");
    expect(text).toContain("stop it first");
    expect((await fetch(`${description.api}/healthz`)).status).toBe(200);
  });

  test("nobody commits beside its own settler", async () => {
    const commit = ["batches", "commit", "--store", join(folder, "engine"), "--from-block", "0"];
    const key = { MINTMARK_OPERATOR_KEY: `0x${"11".repeat(32)}`, MINTMARK_RPC_URL: description.rpcUrl };
    const { code, stderr } = await mintmark(commit, key);
    expect([code, stderr]).toEqual([2, expect.stringContaining("settles by itself")]);
  });

  test("the demo passes every check against it, twice", async () => {
    for (const _ of [1, 2]) {
      const { checks, mints, batches, withdrawals } = await runDemo(description, () => {});
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
      expect(checks.length).toBeGreaterThanOrEqual(7);
      expect(mints).toBe(126);
      expect(withdrawals).toBe(3);
      const { validium, blobs, calldata } = batches;
      expect([validium.mints, blobs.mints, calldata.mints]).toEqual([63, 33, 30]);
      expect([validium, blobs, calldata].map((kind) => kind.withdrawals)).toEqual([1, 1, 1]);
      expect([validium.blobGasPerMint, calldata.blobGasPerMint]).toEqual([0, 0]);
      expect(blobs.blobGasPerMint).toBe(Math.round((131_072 * blobs.batches) / blobs.mints));
    }
  });

  test("starts afresh on what a killed one left", async () => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    child = startProcess(folder);
    await printed(child, "Ctrl-C stops everything");
    description = JSON.parse(await readFile(join(folder, "sandbox.json"), "utf8")) as SandboxDescription;
    const answer = await fetch(`${description.api}/public/v1/state`);
    expect(await answer.json()).toMatchObject({ sealed: { countRollup: 0 } });
  });

  test("stops cleanly on SIGINT, leaving no lock and no open port", async () => {
    const exited = once(child, "exit");
    child.kill("SIGINT");
    const [code] = (await exited) as [number | null];
    expect(code).toBe(0);
    await expect(readFile(join(folder, "lock"))).rejects.toThrow();
    await expect(readFile(join(folder, "sandbox.json"))).rejects.toThrow();
    await expect(fetch(`${description.api}/healthz`)).rejects.toThrow();
    await expect(fetch(description.rpcUrl)).rejects.toThrow();
  });
});
