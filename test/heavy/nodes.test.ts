import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { http, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deriveBatch } from "../../core/archive/derive.ts";
import type { Mode, Uuid } from "../../core/index.ts";
import { readMirror } from "../../core/l1/index.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { packVaultId, unpackBatchVaultId } from "../../core/protocol/vault.ts";
import { readExitKit } from "../../scripts/commands/exit.ts";
import { readRecord, recordPath } from "../../scripts/deploy/record.ts";
import { ADMIN, COMMITTEE, OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { type LocalChain, startChain } from "../../scripts/sandbox/chain.ts";
import { openTest } from "../core/engine/fixture.ts";
import { MemberProcess } from "../e2e/member-process.ts";
import { type MembersWorld, operatorOf, startMembersWorld } from "../e2e/member-world.ts";
import { OperatorProcess } from "../e2e/operator-process.ts";
import { run } from "../e2e/script.ts";
import { FaultyNode, type NodeFaults } from "../faulty-node.ts";
import { Npm } from "../npm.ts";
import { at, type Request, seed } from "../settlement/fixture.ts";

const LONG = { interval: 500 };
const keyOf = (account: typeof ADMIN) => toHex(account.getHdKey().privateKey ?? new Uint8Array());
const requestOf = (url: string) => http(url, { retryCount: 0 })({}).request as Request;

/** Faults of a node with which every process works on. */
const ENOUGH: readonly (readonly [string, NodeFaults])[] = [
  ["keeps the state of few blocks", { pruned: 8 }],
  ["speaks as Erigon", { client: "erigon" }],
  ["speaks as Nethermind", { client: "nethermind" }],
  ["speaks as no client that is known", { client: "unheard" }],
  ["answers 504 to a question for logs of many blocks", { logs: { blocks: 5, wider: "gateway" } }],
  ["refuses logs of many blocks as Infura", { logs: { blocks: 5, wider: "infura" } }],
  ["has no methods for fees", { noFees: true }],
  ["is some blocks behind", { lag: 2 }],
  ["does not know the tag finalized", { noFinalized: true }],
  ["has no receipts for a while", { nullReceipts: true }],
];

/** Faults with which the server tells what it lacks, and goes on once the node has it again. */
const LACKING: readonly (readonly [
  string,
  Omit<NodeFaults, "otherChain"> & { readonly otherChain?: true },
  RegExp,
])[] = [
  ["cuts connections", { down: true }, /HTTP request failed|no answer/i],
  ["never answers", { silent: true }, /took too long|no answer|time/i],
  ["answers with a gateway's page", { status: 504 }, /Gateway|HTTP request failed|no answer/i],
  ["leaves out all logs", { emptyLogs: true }, /leaves out events|disagree|has not|behind/i],
  ["answers for another chain", { otherChain: true }, /differs|ends before|is chain|replaced/i],
];

describe("server, member, watcher, relay and rebuild behind one node", () => {
  let world: MembersWorld;
  let far: LocalChain;
  let node: FaultyNode;
  let server: OperatorProcess;
  let member: MemberProcess;
  let watch: Npm;
  let key: string;
  let assetId: Uuid;
  let settings: Record<string, string>;
  let mirror: { readonly address: `0x${string}`; readonly rpc: string };
  const stack = new AsyncDisposableStack();

  beforeAll(async () => {
    world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
    stack.defer(() => world.close());
    far = await startChain("other", 0);
    stack.defer(() => far.stop());
    node = new FaultyNode({ request: requestOf(world.rpcUrl) });
    const rpcUrl = await node.listen();
    stack.defer(() => node.close());
    const deployed = await run("deploy", ["--json"], {
      MINTMARK_RPC_URL: world.rpcUrl,
      MINTMARK_DEPLOYER_KEY: keyOf(ADMIN),
      MINTMARK_COMMITTEE: at(COMMITTEE, 0).address,
      MINTMARK_THRESHOLD: "1",
      MINTMARK_DEPLOYMENTS: world.folder,
      MINTMARK_MIRROR_RPC_URL: far.rpcUrl,
    });
    expect(deployed).toMatchObject({ code: 0 });
    const record = await readRecord(recordPath(world.folder, 31_337));
    mirror = { address: at(record?.mirrors ?? [], 0).address, rpc: far.rpcUrl };
    const store = join(world.folder, "operator");
    {
      await using engine = await openTest(store, { settlement: world.l1.settlement });
      const { principal, assets } = await seed(engine, world);
      key = (await engine.keys.issue(principal.applicationId)).secret;
      assetId = assets.get("erc721") ?? "";
    }
    const { address: contract, deployedAtBlock: fromBlock } = world.settlement;
    member = await MemberProcess.start({
      key: keyOf(at(COMMITTEE, 0)),
      store: join(world.folder, "member"),
      rpcUrl,
      contract,
      fromBlock,
      port: 0,
      peers: [],
    });
    stack.defer(async () => void (await member.stop()));
    server = await OperatorProcess.start({
      ...operatorOf(world, store),
      rpcUrl,
      members: [member.url],
      settings: {
        MINTMARK_THRESHOLD: "1",
        MINTMARK_CONFIRMATIONS: "2",
        MINTMARK_ROLLUP_DATA: "calldata",
      },
    });
    stack.use(server);
    settings = {
      MINTMARK_RPC_URL: rpcUrl,
      MINTMARK_CONTRACT: contract,
      MINTMARK_POLL_MS: "500",
      MINTMARK_FROM_BLOCK: `${fromBlock}`,
      MINTMARK_CONFIRMATIONS: "0",
      MINTMARK_PEERS: member.url,
    };
    const start = (command: string, more: Record<string, string>, account: typeof ADMIN) =>
      stack.use(
        new Npm(["exec", "--", "mintmark", command], { ...settings, ...more }, keyOf(account)),
      );
    watch = start("watch", { MINTMARK_STORE: join(world.folder, "watcher") }, ADMIN);
    const there = { MINTMARK_MIRROR_RPC_URL: far.rpcUrl, MINTMARK_MIRROR: mirror.address };
    const members = `${at(COMMITTEE, 0).address}=${member.url}`;
    start("relay", { ...there, MINTMARK_MEMBERS: members, MINTMARK_THRESHOLD: "1" }, OPERATOR);
  });
  afterAll(() => stack.disposeAsync());

  let minted = 0;
  const headers = () => ({ "x-api-key": key, "content-type": "application/json" });
  async function mint(mode: Mode): Promise<bigint> {
    const { userId } = USERS[0];
    const mintingBlob = toHex(`${++minted}`);
    const mints = [{ mintingBlob, assetId, amount: 1, dataAvailabilityMode: mode }];
    const body = JSON.stringify({ users: [{ userId, mints }] });
    const reply = await fetch(`${server.url}/api/v1/mint`, {
      method: "POST",
      headers: headers(),
      body,
    });
    const { vaults } = (await reply.json()) as { vaults: { vaultId: string }[] };
    return BigInt(at(vaults, 0).vaultId);
  }
  async function statusOf(vaultId: bigint): Promise<string> {
    const reply = await fetch(`${server.url}/api/v1/vaults/${vaultId}`, { headers: headers() });
    return ((await reply.json()) as { status: string }).status;
  }
  /** Waits until every process has what was minted: on L1, signed, watched, relayed, rebuilt. */
  async function expectDone(vaults: readonly bigint[]): Promise<void> {
    for (const vaultId of vaults) {
      await expect.poll(() => statusOf(vaultId), LONG).toMatch(/settled|finalized/);
      await world.client.request({ method: "evm_mine" } as never);
      const { mode, batchNumber } = unpackBatchVaultId(vaultId);
      const reader = await readMirror({ rpc: mirror.rpc, contract: mirror.address });
      await expect.poll(() => reader.isImported(mode, batchNumber), LONG).toBe(true);
    }
    await expect.poll(async () => (await member.status()).inStepWithL1, LONG).toBe(true);
  }
  let rebuilds = 0;
  const rebuilt = () => run("rebuild", [join(world.folder, `rebuilt-${++rebuilds}`)], settings);

  test.each(ENOUGH)("that %s: all work on", async (_, faults) => {
    node.faults = faults;
    await expectDone([await mint("validium"), await mint("zk-rollup")]);
    expect(await rebuilt()).toMatchObject({ code: 0 });
    node.heal();
  });

  test.each(LACKING)("that %s: it is told, and all go on with it", async (_, faults, said) => {
    const { otherChain, ...others } = faults;
    node.faults = otherChain
      ? { otherChain: { request: requestOf(far.rpcUrl) } }
      : (others as NodeFaults);
    const vaults = [await mint("validium"), await mint("zk-rollup")];
    const readiness = async () =>
      JSON.stringify(await (await fetch(`${server.url}/readyz`)).json());
    const told = async () => `${await readiness()} ${server.output.slice(-20_000)}`;
    await expect.poll(told, LONG).toMatch(said);
    node.heal();
    await expectDone(vaults);
    expect(await rebuilt()).toMatchObject({ code: 0 });
  });

  test("the watcher has lived through all, and voids what the operator mints again", async () => {
    const vaultId = await mint("zk-rollup");
    await expectDone([vaultId]);
    await server.stop();
    // Members void duplicates too, and one of them would often be the first.
    for (const each of [member, ...world.processes]) await each.stop();
    const file = join(world.folder, "kit.json");
    const kit = await run("exit-kit", [`${vaultId}`, "--out", file], settings);
    expect(kit).toMatchObject({ code: 0 });
    const { vault } = await readExitKit(file);
    const owner = at(COMMITTEE, 1).address.toLowerCase() as `0x${string}`;
    const data = encodeBatchData([{ ...vault, owner }]);
    const { countRollup: batchNumber, history } = await world.l1.state();
    const derived = deriveBatch("zk-rollup", batchNumber, data);
    await world.l1.commit({ mode: "zk-rollup", batchNumber, data, ...derived }, history, "0x");
    const later = packVaultId({ mode: "zk-rollup", batchNumber, slot: 0 });
    await watch.says(new RegExp(`voided vault ${later}, a duplicate of ${vaultId}`));
  });
});

test("an idle server with a block each 12 seconds asks little of its node, whoever probes it", async () => {
  await using stack = new AsyncDisposableStack();
  const world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
  stack.defer(() => world.close());
  const node = new FaultyNode({ request: requestOf(world.rpcUrl) });
  const rpcUrl = await node.listen();
  stack.defer(() => node.close());
  const store = join(world.folder, "operator");
  await (await openTest(store, { settlement: world.l1.settlement })).close();
  const defaults = { MINTMARK_SEAL_SECONDS: "60", MINTMARK_SETTLE_SECONDS: "2" };
  const { url } = stack.use(
    await OperatorProcess.start({
      ...operatorOf(world, store),
      rpcUrl,
      settings: { ...defaults, MINTMARK_THRESHOLD: "1" },
    }),
  );
  // A proxy probes as often as that of examples/deploy.
  const probes = setInterval(() => void fetch(`${url}/readyz`).catch(() => {}), 500);
  stack.defer(() => clearInterval(probes));
  const all = () => [...node.asked.values()].reduce((sum, count) => sum + count, 0);
  await world.client.request({ method: "evm_setIntervalMining", params: [12_000] } as never);
  await pause(15_000);
  const before = all();
  await pause(60_000);
  const aDay = (all() - before) * 24 * 60;
  expect(aDay).toBeLessThan(276_000);
});
