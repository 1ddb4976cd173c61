import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createWalletClient, http, toHex } from "viem";
import { hardhat } from "viem/chains";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Hex, Uuid } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/index.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { ADMIN, COMMITTEE, OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { freePort } from "../../scripts/sandbox/process.ts";
import { openTest } from "../core/engine/fixture.ts";
import { listOfOne } from "../one-withdrawal.ts";
import { at, seed } from "../settlement/fixture.ts";
import { type MembersWorld, operatorOf, startMembersWorld } from "./member-world.ts";
import { OperatorProcess } from "./operator-process.ts";

const LONG = { interval: 200 };
const { userId, owner } = USERS[0];

let world: MembersWorld;
let server: OperatorProcess;
let key: string;
let assetId: Uuid;
let settings = {
  MINTMARK_THRESHOLD: "2",
  MINTMARK_CONFIRMATIONS: "0",
  MINTMARK_SEAL_SECONDS: "1",
  MINTMARK_SETTLE_SECONDS: "1",
  MINTMARK_METRICS_PORT: "",
};

beforeAll(async () => {
  world = await startMembersWorld({ members: COMMITTEE.slice(0, 2), threshold: 2 });
  const store = join(world.folder, "operator");
  {
    await using engine = await openTest(store, { settlement: world.l1.settlement });
    const { principal, assets } = await seed(engine, world);
    key = (await engine.keys.issue(principal.applicationId)).secret;
    assetId = assets.get("erc20") ?? "";
  }
  settings = { ...settings, MINTMARK_METRICS_PORT: `${await freePort(9464)}` };
  server = await OperatorProcess.start({ ...operatorOf(world, store), settings });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await world?.close();
});

// biome-ignore lint/suspicious/noExplicitAny: whatever the server answered.
async function send(path: string, body?: unknown): Promise<{ status: number; body: any }> {
  const post = { method: "POST", body: JSON.stringify(body) };
  const headers = {
    "x-api-key": key,
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const reply = await fetch(`${server.url}${path}`, { headers, ...(body !== undefined && post) });
  return { status: reply.status, body: await reply.json() };
}
/** The faults that keep the server from being ready, by check. */
async function wrong(): Promise<Record<string, string>> {
  const { body } = await send("/readyz");
  const found: readonly { pointer: string; detail: string }[] = body.errors ?? [];
  return Object.fromEntries(
    found.map(({ pointer, detail }) => [pointer.replace("/checks/", ""), detail]),
  );
}
async function mint(mode: "validium" | "zk-rollup"): Promise<string> {
  const mints = [{ mintingBlob: "", assetId, amount: 9, dataAvailabilityMode: mode }];
  const { body } = await send("/api/v1/mint", { users: [{ userId, mints }] });
  return at(body.vaults as { vaultId: string }[], 0).vaultId;
}
async function withdraw(vaultId: string, recipient: Hex = owner.address) {
  const deadline = BigInt(Math.floor(Date.now() / 1000) + 86_400);
  const message = {
    vaultId: BigInt(vaultId),
    withdrawnBefore: 0n,
    quantity: 9n,
    recipient,
    deadline,
  };
  const signature = await owner.signTypedData(
    withdrawalListTypedData(world.l1.settlement, listOfOne(message)),
  );
  const { status, body } = await send("/api/v1/withdrawals", {
    vaults: [{ vaultId, quantity: "9" }],
    recipient,
    deadline: `${deadline}`,
    signature,
  });
  return { status, body: status === 202 ? body.vaults[0].withdrawal : body };
}
/** The log's lines with a message. */
function lines(msg: string): Record<string, unknown>[] {
  return server.output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line.msg === msg);
}
const ask = (method: string, ...params: unknown[]) =>
  world.client.request({ method, params } as never);
async function asAdmin(functionName: "revokeOperator" | "pauseCommits", arg: never): Promise<void> {
  const wallet = createWalletClient({
    account: ADMIN,
    chain: hardhat,
    transport: http(world.rpcUrl),
  });
  const { address } = world.settlement;
  const hash = await wallet.writeContract({
    abi: stateCommitmentAbi,
    address,
    functionName,
    args: [arg],
  });
  await world.client.waitForTransactionReceipt({ hash });
}

const WORK = ["follow", "seal", "assets", "consents", "commit", "withdraw", "fills"];

test("a healthy server is ready, and lists its checks", async () => {
  await expect.poll(wrong, LONG).toEqual({});
  const { status, body } = await send("/readyz");
  expect([status, Object.keys(body.checks)]).toEqual([
    200,
    [
      "memory",
      "store",
      "clock",
      "kzg",
      "threads",
      "openBatches",
      "settlement",
      ...WORK,
      "operator",
      "operatorBalance",
      "l1Lag",
      "l1Clock",
      "committee",
      "issuers",
    ],
  ]);
  const [, page = ""] = readFileSync("docs/operating.md", "utf8").split(
    "## What the server tells its operator",
  );
  expect(Object.keys(body.checks).filter((check) => !page.includes(`\`${check}\``))).toEqual([]);
  expect(body.checks.issuers).toBe("no batch waits for a consent");
  expect(body.checks.committee).toMatch(
    /^2 of 2 can sign, 2 must; 0x\w{40} answers; 0x\w{40} answers$/,
  );
});

test("the log has one line for each batch sealed, committed and final, and for each withdrawal paid", async () => {
  const vaults = { validium: await mint("validium"), "zk-rollup": await mint("zk-rollup") };
  for (const [mode, vaultId] of Object.entries(vaults)) {
    await expect
      .poll(async () => (await send(`/api/v1/vaults/${vaultId}`)).body.status, LONG)
      .toBe("finalized");
    for (const step of ["batch sealed", "batch committed", "batch final"]) {
      const told = lines(step).filter((line) => line.mode === mode);
      expect(told).toEqual([
        expect.objectContaining({ level: 30, mode, batchNumber: 0, vaults: 1 }),
      ]);
    }
    const { body: batch } = await send(`/public/v1/batches/${mode}-0`);
    const [committed] = lines("batch committed").filter((line) => line.mode === mode);
    const { gasUsed } = await world.client.getTransactionReceipt({ hash: batch.l1TxHash });
    expect(committed).toMatchObject({
      txHash: batch.l1TxHash,
      block: batch.l1BlockNumber,
      gas: `${gasUsed}`,
    });
  }
  const { body } = await withdraw(vaults.validium);
  const withdrawal = async () => (await send(`/api/v1/withdrawals/${body.withdrawalId}`)).body;
  await expect.poll(async () => (await withdrawal()).status, LONG).toMatch(/settled|finalized/);
  const { l1TxHash } = await withdrawal();
  const { gasUsed } = await world.client.getTransactionReceipt({ hash: l1TxHash });
  const paid = {
    vaultId: vaults.validium,
    quantity: "9",
    chainId: "31337",
    txHash: l1TxHash,
    gas: `${gasUsed}`,
  };
  await expect
    .poll(() => lines("withdrawal paid"), LONG)
    .toEqual([expect.objectContaining({ level: 30, ...paid })]);
  const metrics = await (
    await fetch(`http://127.0.0.1:${settings.MINTMARK_METRICS_PORT}/metrics`)
  ).text();
  const commits = lines("batch committed").reduce((sum, { gas }) => sum + Number(gas), 0);
  for (const line of [
    `mintmark_l1_gas_total{chain="31337",work="commit"} ${commits}`,
    `mintmark_l1_gas_total{chain="31337",work="withdrawal"} ${gasUsed}`,
    'mintmark_withdrawals_total{chain="31337",step="settled"} 1',
    'mintmark_check_ok{check="committee"} 1',
  ]) {
    expect(metrics.split("\n")).toContain(line);
  }
});

test("each refusal of a withdrawal has one line, with the reason", async () => {
  const vaultId = await mint("zk-rollup");
  await expect
    .poll(async () => (await send(`/api/v1/vaults/${vaultId}`)).body.status, LONG)
    .toBe("finalized");
  const token = at(world.tokens, 0).address;
  const code = await world.client.getCode({ address: token });
  // PUSH1 0, PUSH1 0, REVERT: a token that pays nobody.
  await ask("hardhat_setCode", token, "0x60006000fd");
  const { body } = await withdraw(vaultId);
  await expect
    .poll(() => lines("withdrawal refused by L1; trying again"), LONG)
    .toEqual([
      expect.objectContaining({
        level: 40,
        withdrawalId: body.withdrawalId,
        vaultId,
        reason: expect.any(String),
      }),
    ]);
  await ask("hardhat_setCode", token, code);
  await expect.poll(() => lines("withdrawal paid").length, LONG).toBe(2);
});

test("too few members make it unready: it reports how many can sign, and which cannot", async () => {
  const restart = await at(world.processes, 1).kill();
  const second = at(COMMITTEE, 1).address.toLowerCase();
  const told = expect.stringMatching(
    new RegExp(`^1 of 2 can sign, 2 must; .*${second} does not answer`),
  );
  await expect.poll(wrong, LONG).toMatchObject({ committee: told });
  world.processes[1] = await restart();
  await expect.poll(wrong, LONG).toEqual({});
});

test("a pause of commits has the contract's error name, without addresses of nodes or members", async () => {
  await asAdmin("pauseCommits", true as never);
  await mint("zk-rollup");
  const commit = "commitBlobBatch: the contract refused with CommittingPaused; the log has more";
  await expect.poll(async () => (await wrong()).commit, LONG).toBe(commit);
  expect(JSON.stringify(await wrong())).not.toMatch(/https?:|127\.0\.0\.1/);
  await asAdmin("pauseCommits", false as never);
  await expect.poll(wrong, LONG).toEqual({});
});

test("a clock behind L1 makes it unready", async () => {
  await ask("evm_increaseTime", toHex(900));
  await ask("evm_mine");
  const told = expect.stringMatching(/^this clock is \d{3} s behind L1's newest block: set it$/);
  await expect.poll(wrong, LONG).toMatchObject({ l1Clock: told });
});

test("an account without the role makes it unready, and is refused at the next start", async () => {
  await asAdmin("revokeOperator", OPERATOR.address as never);
  const told = expect.stringContaining(
    `does not hold the operator role of ${world.settlement.address}`,
  );
  await expect.poll(wrong, LONG).toMatchObject({ operator: told });
  const sealed = lines("batch sealed").length;
  await mint("zk-rollup");
  await expect.poll(() => lines("batch sealed").length, LONG).toBe(sealed + 1);
  const again = await server.kill();
  const refusal = await again().then(String, (error: Error) => error.message);
  expect(refusal).toMatch(
    /ended with 1:\nMINTMARK_OPERATOR_KEY: 0x\w{40} does not hold the operator role/,
  );
  expect(refusal).toMatch(
    /calls\s+scheduleOperator\(0x\w{40}\), and anyone calls activateOperator/,
  );
  expect(refusal).not.toContain("    at ");
});

test("without a key it is not ready while sealed batches wait, and says so", async () => {
  const store = join(world.folder, "operator");
  const none = {
    MINTMARK_OPERATOR_KEY: undefined,
    MINTMARK_MEMBERS: undefined,
    MINTMARK_THRESHOLD: undefined,
  };
  const keyless = { ...settings, ...none } as unknown as Record<string, string>;
  server = await OperatorProcess.start({ ...operatorOf(world, store), settings: keyless });
  expect(await wrong()).toEqual({
    settlement: expect.stringMatching(/^1 sealed batch waits for L1, .*OPERATOR_KEY/),
  });
});
