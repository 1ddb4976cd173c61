import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DemoResult } from "../../scripts/demo/run.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import type { SandboxDescription } from "../../scripts/sandbox/sandbox.ts";
import { createClient, mint } from "../../server/client/index.ts";
import { mintmark } from "../cli/cli.ts";
import { Npm } from "../npm.ts";
import { at } from "../settlement/fixture.ts";

/** `npm start` as a newcomer runs it, on any free port. */
const startProcess = (folder: string) =>
  new Npm(["start"], { MINTMARK_SANDBOX: folder, MINTMARK_PORT: "0", MINTMARK_CHAIN_PORT: "0" });
const STARTED = /Ctrl-C stops everything/;

describe("the sandbox, as a process", () => {
  let folder: string;
  let sandbox: Npm;
  let screen: string;
  let description: SandboxDescription;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-sandbox-"));
    sandbox = startProcess(folder);
    await sandbox.says(STARTED);
    screen = sandbox.said;
    description = JSON.parse(
      await readFile(join(folder, "sandbox.json"), "utf8"),
    ) as SandboxDescription;
  });

  afterAll(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  test("prints address, key, ids and curl lines that work when pasted", async () => {
    expect(screen).toContain(description.api);
    expect(screen).toContain(description.apiKey);
    for (const { assetId } of description.assets) expect(screen).toContain(assetId);
    const [, mint] = screen
      .split("\n\n")
      .flatMap((block) => (block.includes("/api/v1/mint") ? ["", block] : []));
    const shell = spawn("sh", ["-c", mint ?? ""]);
    let reply = "";
    shell.stdout.on("data", (chunk: Buffer) => {
      reply += chunk.toString();
    });
    await once(shell, "exit");
    const { vaults, transactions } = JSON.parse(reply) as {
      vaults: unknown[];
      transactions: unknown[];
    };
    expect(vaults).toHaveLength(3);
    expect(transactions).toHaveLength(3);
  });

  test("a second one on the same folder is refused and harms nothing", async () => {
    await using second = startProcess(folder);
    await second.says(/already runs.*stop it first/s);
    expect((await fetch(`${description.api}/healthz`)).status).toBe(200);
  });

  test("an owner's vaults of a token become one by `mintmark renew`", async () => {
    const { api, apiKey, rpcUrl, assets, users } = description;
    const client = createClient({ baseUrl: api, apiKey });
    const { assetId, contractAddress: token } = at(
      assets.filter(({ standard }) => standard === "erc20"),
      0,
    );
    const { userId } = at(users, 0);
    const modes = ["validium", "zk-rollup"] as const;
    const mints = modes.map((dataAvailabilityMode) => ({
      ...{ assetId, amount: "3", dataAvailabilityMode },
    }));
    const { vaults } = await mint(client, { users: [{ userId, mints }] });
    const ids = vaults.map(({ vaultId }) => vaultId);
    const stateOf = async (vaultId: string) =>
      (await client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId } } })).data;
    const polling = { interval: 200 };
    for (const id of ids)
      await expect.poll(async () => (await stateOf(id))?.status, polling).toBe("finalized");
    const key = toHex(at(USERS, 0).owner.getHdKey().privateKey ?? new Uint8Array());
    const owner = { MINTMARK_URL: api, MINTMARK_RPC_URL: rpcUrl, MINTMARK_OWNER_KEY: key };
    const renew = (...args: string[]) =>
      mintmark(["renew", ...args, "--confirmations", "0", "--json"], owner);
    const stranger = await renew("--token", description.contract);
    expect([stranger.code, stranger.stderr]).toEqual([
      1,
      expect.stringContaining("holds no vault of"),
    ]);
    const one = await renew("--token", token, "--wait");
    expect([one.code, one.stderr]).toEqual([0, expect.any(String)]);
    const [{ vaultId, amount }] = one.json();
    expect(BigInt(amount)).toBeGreaterThanOrEqual(6n);
    await expect.poll(async () => (await stateOf(vaultId))?.availableBalance, polling).toBe(amount);
    for (const id of ids) expect((await stateOf(id))?.availableBalance).toBe("0");
    const again = await renew("--token", token);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("nothing to renew")]);
    const anew = await renew(vaultId, "--wait");
    expect([anew.code, anew.json()]).toMatchObject([0, [{ amount, token }]]);
  });

  test("nobody commits beside its own settler", async () => {
    const commit = ["batches", "commit", "--store", join(folder, "engine"), "--from-block", "0"];
    const key = {
      MINTMARK_OPERATOR_KEY: `0x${"11".repeat(32)}`,
      MINTMARK_RPC_URL: description.rpcUrl,
    };
    const { code, stderr } = await mintmark(commit, key);
    expect([code, stderr]).toEqual([2, expect.stringContaining("settles by itself")]);
  });

  test("`npm run demo` passes every check against it, twice", async () => {
    for (const _ of [1, 2]) {
      await using demo = new Npm(["run", "demo", "--", "--json"], { MINTMARK_SANDBOX: folder });
      const { checks, mints, batches, withdrawals, ...gas } = (await demo.json()) as DemoResult;
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
      expect(checks).toHaveLength(14);
      expect(checks.map(({ what }) => what)).toEqual(
        expect.arrayContaining(["SWRD that bob bought", "PTN in the new vault"]),
      );
      for (const used of [gas.gasOfTrade, gas.gasOfEntry]) expect(used).toBeGreaterThan(50_000);
      expect(mints).toBe(126);
      expect(withdrawals).toBe(3);
      const { validium, blobs, calldata } = batches;
      expect([validium.mints, blobs.mints, calldata.mints]).toEqual([63, 63, 0]);
      expect([validium, blobs, calldata].map((kind) => kind.withdrawals)).toEqual([1, 2, 0]);
      expect([validium.blobGasPerMint, calldata.blobGasPerMint]).toEqual([0, 0]);
      expect(blobs.blobGasPerMint).toBe(Math.round((131_072 * blobs.batches) / blobs.mints));
    }
  });

  test("the demo ends at Ctrl-C", async () => {
    await using demo = new Npm(["run", "demo"], { MINTMARK_SANDBOX: folder });
    await demo.says(/One request mints/);
    await demo.interrupt();
    expect(demo.said).not.toContain("checks passed");
  });

  test("starts afresh on what a killed one left, with the same key and ids", async () => {
    const { apiKey, applicationId, users, assets, contract } = description;
    await sandbox[Symbol.asyncDispose]();
    sandbox = startProcess(folder);
    await sandbox.says(STARTED);
    description = JSON.parse(
      await readFile(join(folder, "sandbox.json"), "utf8"),
    ) as SandboxDescription;
    const answer = await fetch(`${description.api}/public/v1/state`);
    expect(await answer.json()).toMatchObject({ sealed: { countRollup: 0 } });
    expect(description).toMatchObject({ apiKey, applicationId, users, assets, contract });
    const [{ assetId } = { assetId: "" }] = assets;
    const known = await fetch(`${description.api}/api/v1/assets/${assetId}`, {
      headers: { "X-Api-Key": apiKey },
    });
    expect(known.status).toBe(200);
  });

  test("stops cleanly on SIGINT, leaving no lock and no open port", async () => {
    expect(await sandbox.stop("SIGINT")).toBe(0);
    await expect(readFile(join(folder, "lock"))).rejects.toThrow();
    await expect(readFile(join(folder, "sandbox.json"))).rejects.toThrow();
    await expect(fetch(`${description.api}/healthz`)).rejects.toThrow();
    await expect(fetch(description.rpcUrl)).rejects.toThrow();
  });
});
