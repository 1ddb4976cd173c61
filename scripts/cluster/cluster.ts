import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { toHex } from "viem";
import { ClusterNode, PostgresJournal } from "../../core/cluster/index.ts";
import { COMMITTEE, OPERATOR, THRESHOLD } from "../sandbox/accounts.ts";
import { compileContracts, startChain } from "../sandbox/chain.ts";
import { freePort } from "../sandbox/port.ts";
import { deployTo, seed } from "../sandbox/sandbox.ts";
import { PostgresServer } from "./postgres.ts";

const MAIN = fileURLToPath(new URL("../mintmark.ts", import.meta.url));
/** Mints of one request. */
const MINTS = 100;

export interface ClusterReport {
  /** Servers of the cluster before the kill. */
  readonly servers: number;
  readonly killed: string;
  readonly leader: string;
  /** Seconds from the SIGKILL to the next acknowledged mint. */
  readonly gapSeconds: number;
  readonly acknowledged: number;
  /** Acknowledged vaults that the new leader holds. */
  readonly found: number;
  /** Vaults of the application. */
  readonly vaults: number;
  /** State commitments of all servers that live, once each holds everything. */
  readonly commitments: readonly string[];
  readonly batchesOnL1: number;
}

/** What the script reads of a server's state. */
interface StateReply {
  readonly sealed: { readonly commitment: string };
  readonly committed: { readonly countRollup: number; readonly commitment: string };
}

interface Member {
  readonly name: string;
  readonly url: string;
  readonly process: ChildProcess;
}

/**
 * A cluster on this machine, with a real PostgreSQL primary and a synchronous standby: mints through the router, kills the leader, and
 * reports what became of each mint.
 */
export async function runCluster(
  folder: string,
  options: { readonly seconds: number; readonly onProgress: (step: string) => void },
): Promise<ClusterReport> {
  const { onProgress, seconds } = options;
  await using stack = new AsyncDisposableStack();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  // PostgreSQL runs as another user when this runs as root.
  await chmod(folder, 0o755);
  onProgress("compiling contracts (the first time takes half a minute)");
  await compileContracts();
  onProgress("starting PostgreSQL: a primary and a synchronous standby");
  const primary = stack.use(await PostgresServer.primary(resolve(folder, "primary")));
  stack.use(await primary.standby(resolve(folder, "standby"), "one"));
  onProgress("starting the local chain");
  const chain = await startChain("local", 0);
  stack.defer(() => chain.stop());
  const deployment = await deployTo(chain.rpcUrl, folder, onProgress);
  const { settlement } = deployment;
  const key = randomBytes(32).toString("hex");
  const environment = {
    MINTMARK_JOURNAL: primary.url,
    MINTMARK_JOURNAL_KEYS: key,
    MINTMARK_ENVIRONMENT: "sandbox",
    MINTMARK_CHAIN_ID: String(deployment.chainId),
    MINTMARK_CONTRACT: settlement.address,
    MINTMARK_RPC_URL: chain.rpcUrl,
    MINTMARK_FROM_BLOCK: String(settlement.deployedAtBlock),
    MINTMARK_CONFIRMATIONS: "2",
    MINTMARK_OPERATOR_KEY: toHex(OPERATOR.getHdKey().privateKey ?? new Uint8Array()),
    MINTMARK_MEMBERS: COMMITTEE.map(({ address }) => `${address}=http://127.0.0.1:1`).join(),
    MINTMARK_THRESHOLD: String(THRESHOLD),
    MINTMARK_SEAL_SECONDS: "1",
    MINTMARK_SETTLE_SECONDS: "1",
    MINTMARK_LEASE_SECONDS: "2",
    MINTMARK_RATE_UNITS: "10000000",
  };
  onProgress("creating the application in the journal");
  const facts = await seedJournal(folder, primary.url, key, deployment);
  const members: Member[] = [];
  for (const name of ["a", "b", "c"]) {
    onProgress(`starting server ${name}`);
    const port = await freePort(0);
    const url = `http://127.0.0.1:${port}`;
    const child = run(["server"], folder, name, {
      ...environment,
      MINTMARK_STORE: resolve(folder, name),
      MINTMARK_SERVER_NAME: name,
      MINTMARK_PORT: String(port),
    });
    stack.defer(() => stop(child));
    members.push({ name, url, process: child });
    await answers(`${url}/readyz`, child);
  }
  onProgress("starting the router");
  const routerPort = await freePort(0);
  const router = `http://127.0.0.1:${routerPort}`;
  const routing = run(["router"], folder, "router", {
    MINTMARK_SHARDS: members.map(({ url }) => url).join(),
    MINTMARK_PORT: String(routerPort),
  });
  stack.defer(() => stop(routing));
  await answers(`${router}/readyz`, routing);

  const [user] = facts.users;
  const swords = facts.assets.find(({ standard }) => standard === "erc721");
  const acknowledged: string[] = [];
  let tokenId = 0;
  let request = 0;
  const mint = async (): Promise<void> => {
    const mints = Array.from({ length: MINTS }, () => ({
      assetId: swords?.assetId,
      tokenId: String(++tokenId),
      amount: 1,
      dataAvailabilityMode: "zk-rollup",
    }));
    const body = JSON.stringify({ users: [{ userId: user?.userId, mints }] });
    const headers = {
      "x-api-key": facts.apiKey,
      "content-type": "application/json",
      "idempotency-key": `${request++}`,
    };
    for (;;) {
      const reply = await fetch(`${router}/api/v1/mint`, { method: "POST", headers, body }).catch(() => null);
      if (reply?.ok) {
        const { vaults } = (await reply.json()) as { vaults: { vaultId: string }[] };
        acknowledged.push(...vaults.map(({ vaultId }) => vaultId));
        return;
      }
      const said = await reply?.text();
      if (reply !== null && reply.status !== 503) throw new Error(`a mint was refused: ${said}`);
      await pause(100);
    }
  };
  onProgress("minting through the router");
  const before = performance.now() + seconds * 1_000;
  while (performance.now() < before) await mint();
  const leader = await leaderOf(members);
  onProgress(`killing the leader, ${leader.name}, after ${acknowledged.length} acknowledged mints`);
  const killedAt = performance.now();
  leader.process.kill("SIGKILL");
  await mint();
  const gapSeconds = (performance.now() - killedAt) / 1_000;
  onProgress(`the next mint was acknowledged ${gapSeconds.toFixed(1)} s later; minting on`);
  const after = performance.now() + seconds * 1_000;
  while (performance.now() < after) await mint();

  onProgress("looking for each acknowledged mint, and comparing the servers");
  const living = members.filter((member) => member !== leader);
  const held = await vaultsOf(living[0]?.url ?? "", facts.apiKey, user?.userId ?? "");
  const commitments = await settled(living);
  const { committed } = await stateOf(living[0]?.url ?? "");
  return {
    servers: members.length,
    killed: leader.name,
    leader: (await leaderOf(living)).name,
    gapSeconds,
    acknowledged: acknowledged.length,
    found: acknowledged.filter((vaultId) => held.has(vaultId)).length,
    vaults: held.size,
    commitments,
    batchesOnL1: committed.countRollup,
  };
}

/** What `npm run cluster` prints. */
export function clusterScreen(report: ClusterReport): string {
  const { servers, killed, leader, gapSeconds, acknowledged, found, vaults, commitments, batchesOnL1 } = report;
  const isSame = new Set(commitments).size === 1;
  return [
    "",
    `  ${servers} servers, PostgreSQL with a synchronous standby; SIGKILL to the leader, ${killed}`,
    `  ${leader} took over     ${gapSeconds.toFixed(1)} s from the kill to the next acknowledged mint`,
    `  acknowledged      ${acknowledged} mints`,
    `  found             ${found} of them, and ${vaults - found} others`,
    `  state             ${isSame ? "equal on all servers" : "DIFFERENT"}: ${commitments.join(" ")}`,
    `  on L1             ${batchesOnL1} batches`,
    "",
    isWhole(report) ? "Nothing was lost, nothing was minted twice." : "SOMETHING WENT WRONG.",
    "",
  ].join("\n");
}

/** Whether the cluster kept its promises. */
export function isWhole({ acknowledged, found, vaults, commitments, batchesOnL1 }: ClusterReport): boolean {
  return found === acknowledged && vaults === found && new Set(commitments).size === 1 && batchesOnL1 > 0;
}

/** The demo application, made by a node that leads for a moment. */
async function seedJournal(folder: string, url: string, key: string, deployment: Awaited<ReturnType<typeof deployTo>>) {
  const shard = `${deployment.chainId}-${deployment.settlement.address.slice(2, 18).toLowerCase()}`;
  const journal = await PostgresJournal.open({ url, shard, keys: [Buffer.from(key, "hex")] });
  const settlement = {
    chainId: BigInt(deployment.chainId),
    contract: deployment.settlement.address,
    engineVersion: 5,
  };
  await using node = await ClusterNode.join({
    store: join(folder, "seed"),
    journal,
    server: { name: "seed", url: "http://127.0.0.1:1" },
    environment: "sandbox",
    settlement,
    createIfMissing: true,
  });
  return await seed((await node.next()).engine, deployment);
}

function run(args: readonly string[], folder: string, name: string, settings: Record<string, string>): ChildProcess {
  const others = Object.entries(process.env).filter(([key]) => !key.startsWith("MINTMARK_"));
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN, ...args], {
    env: { ...Object.fromEntries(others), ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stdout?.resume();
  child.stderr?.on("data", (text) => (said = (said + text).slice(-2_000)));
  child.once("exit", (code) => {
    if (code !== 0 && code !== null) process.stderr.write(`${name} of ${folder} ended with ${code}: ${said}\n`);
  });
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await ended;
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  for (let left = 600; left > 0 && child.exitCode === null; left--) {
    const reply = await fetch(url).catch(() => null);
    await reply?.body?.cancel();
    if (reply !== null) return;
    await pause(50);
  }
  throw new Error(`${url} does not answer`);
}

async function vaultsOf(url: string, apiKey: string, userId: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let cursor = ""; ; ) {
    const page = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const reply = await fetch(`${url}/api/v1/vaults?userId=${userId}&limit=100${page}`, {
      headers: { "x-api-key": apiKey },
    });
    const { data, pagination } = (await reply.json()) as {
      data: { vaultId: string }[];
      pagination: { nextCursor: string | null };
    };
    for (const { vaultId } of data) found.add(vaultId);
    if (pagination.nextCursor === null) return found;
    cursor = pagination.nextCursor;
  }
}

async function leaderOf(members: readonly Member[]): Promise<Member> {
  for (let left = 100; left > 0; left--) {
    for (const member of members) {
      const reply = await fetch(`${member.url}/healthz`).catch(() => null);
      await reply?.body?.cancel();
      if (reply?.headers.get("mintmark-role") === "leader") return member;
    }
    await pause(100);
  }
  throw new Error("nobody leads the cluster");
}

async function stateOf(url: string): Promise<StateReply> {
  return (await (await fetch(`${url}/public/v1/state`)).json()) as StateReply;
}

/** The state commitment of each server, once they are the same, and L1 has every batch. */
async function settled(members: readonly Member[]): Promise<string[]> {
  for (let left = 150; ; left--) {
    const states = await Promise.all(members.map(({ url }) => stateOf(url)));
    const commitments = states.map(({ sealed }) => sealed.commitment);
    const onL1 = states.map(({ committed }) => committed.commitment);
    if (left === 0 || new Set([...commitments, ...onL1]).size === 1) return commitments;
    await pause(200);
  }
}
