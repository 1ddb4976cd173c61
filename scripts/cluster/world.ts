import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { toHex } from "viem";
import { ClusterNode, PostgresJournal } from "../../core/cluster/index.ts";
import { Stack } from "../../core/stack.ts";
import { answer, createClient, everyEntry, type MintReply } from "../../server/client/index.ts";
import type { Deployment } from "../deploy/record.ts";
import { COMMITTEE, OPERATOR, THRESHOLD } from "../sandbox/accounts.ts";
import { startChain } from "../sandbox/chain.ts";
import { endOf, endProcess, freePort, startMintmark, untilAnswer } from "../sandbox/process.ts";
import { deployTo, seed } from "../sandbox/sandbox.ts";
import { PostgresServer } from "./postgres.ts";

/**
 * While a server's role changes, it does not listen, or it answers 503. Half a minute of retries is
 * more than that.
 */
const RETRIES = { retries: 12 };

export type ClusterServer = ReturnType<typeof startServer>;

/** Starts a server, which may end at any time. */
function startServer(name: string, url: string, settings: Readonly<Record<string, string>>) {
  let said = "";
  const start = () => {
    const started = startMintmark(["server"], settings);
    said = "";
    started.stdout.resume();
    started.stderr.on("data", (text) => (said = (said + text).slice(-2_000)));
    started.once("exit", (code) => {
      if (code) process.stderr.write(`${settings.MINTMARK_STORE} ended with ${code}: ${said}\n`);
    });
    return started;
  };
  let child = start();
  /** Resolves with its first response. */
  const answers = async () => {
    const given = AbortSignal.any([endOf(child), AbortSignal.timeout(120_000)]);
    await untilAnswer(`${url}/readyz`, () => true, given).catch((cause: unknown) => {
      throw new Error(`${url} does not answer`, { cause });
    });
  };
  const kill = () => endProcess(child, "SIGKILL");
  return {
    name,
    url,
    answers,
    kill,
    /** Null while it runs; else its exit code or signal, and its last standard error. */
    get end() {
      const code = child.exitCode ?? child.signalCode;
      return code === null ? null : { code, said };
    },
    async restart() {
      await kill();
      child = start();
      await answers();
    },
    freeze: (isFrozen: boolean) => child.kill(isFrozen ? "SIGSTOP" : "SIGCONT"),
  };
}

type Clients = Pick<Servers, "facts"> & { readonly members: readonly { readonly url: string }[] };
export type Minter = ReturnType<typeof minterOf>;

/**
 * A client that repeats each mint, at the next server, until acknowledged.
 *
 * @param from - the first token's id, which also separates the requests of several minters
 */
export function minterOf({ facts, members }: Clients, perRequest: number, from = 0) {
  const acknowledged: string[] = [];
  let position = "0";
  let tokenId = from;
  let requests = 0;
  let server = 0;
  const mint = async () => {
    const assetId = facts.assets.find(({ standard }) => standard === "erc721")?.assetId ?? "";
    const sword = { assetId, amount: 1, dataAvailabilityMode: "zk-rollup" } as const;
    const mints = Array.from({ length: perRequest }, () => ({
      ...sword,
      tokenId: String(++tokenId),
    }));
    const body = { users: [{ userId: facts.users[0]?.userId ?? "", mints }] };
    const headers = { "idempotency-key": `request ${from}-${requests++}` };
    for (;;) {
      const { url = "" } = members[server % members.length] ?? {};
      const client = createClient({ baseUrl: url, apiKey: facts.apiKey, retries: 0 });
      const signal = AbortSignal.timeout(15_000);
      const reply = await client.POST("/api/v1/mint", { body, headers, signal }).catch(() => null);
      if (reply?.data !== undefined) {
        acknowledged.push(...(reply.data as MintReply).vaults.map(({ vaultId }) => vaultId));
        position = reply.response.headers.get("mintmark-position") ?? "";
        return;
      }
      const code = reply?.error?.code;
      const isPassing =
        reply === null || reply.response.status === 503 || code === "idempotency_in_progress";
      // An engine that closes is no matter of a cluster's clients: another server leads, or soon
      // does.
      if (!isPassing || code === "engine_closed")
        throw new Error(`a mint was refused: ${JSON.stringify(reply?.error)}`);
      server++;
      await pause(100);
    }
  };
  return {
    acknowledged,
    mint,
    /** `Mintmark-Position` of the newest response. */
    get position() {
      return position;
    },
    async mintFor(ms: number) {
      const end = performance.now() + ms;
      while (performance.now() < end) await mint();
    },
  };
}

export type Servers = Awaited<ReturnType<typeof startServers>>;
export type World = Awaited<ReturnType<typeof startWorld>>;

/**
 * A server's own settings, besides the shared ones. MINTMARK_JOURNAL is its connection to the
 * journal.
 */
type OwnSettings = (
  name: string,
) => Readonly<Record<string, string>> & { readonly MINTMARK_JOURNAL: string };

/** Starts PostgreSQL with a synchronous standby, and servers as {@link startServers} does. */
export async function startWorld(folder: string, onProgress: (step: string) => void) {
  await using stack = new Stack();
  await emptyFolder(folder);
  onProgress("starting PostgreSQL: a primary and a synchronous standby");
  const primary = stack.use(await PostgresServer.primary(resolve(folder, "primary")));
  const standby = stack.use(await primary.standby(resolve(folder, "standby"), "one"));
  const servers = stack.use(
    await startServers(folder, () => ({ MINTMARK_JOURNAL: primary.url }), onProgress),
  );
  const running = stack.move();
  return {
    ...servers,
    primary,
    standby,
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

/**
 * An empty folder that PostgreSQL can access, which runs as another user when this runs as root.
 */
export async function emptyFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
}

/** Three servers and a local chain on this machine. */
export async function startServers(
  folder: string,
  own: OwnSettings,
  onProgress: (step: string) => void,
) {
  await using stack = new Stack();
  onProgress("starting the local chain");
  const chain = await startChain("local", 0);
  stack.defer(() => chain.stop());
  const deployment = await deployTo(chain.rpcUrl, folder, onProgress);
  const { settlement } = deployment;
  const key = randomBytes(32).toString("hex");
  const environment = {
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
  const shard = `${deployment.chainId}-${settlement.address.slice(2, 18).toLowerCase()}`;
  const journal = { shard, key };
  const facts = await seedJournal(folder, own("a").MINTMARK_JOURNAL, journal, deployment);
  const members: ClusterServer[] = [];
  const started: ClusterServer[] = [];
  const join = async (name: string) => {
    const port = await freePort(0);
    const place = {
      MINTMARK_STORE: resolve(folder, name),
      MINTMARK_SERVER_NAME: name,
      MINTMARK_PORT: String(port),
    };
    const settings = { ...environment, ...own(name), ...place };
    const member = startServer(name, `http://127.0.0.1:${port}`, settings);
    started.push(member);
    await member.answers();
    return member;
  };
  stack.defer(async () => void (await Promise.all(started.map((member) => member.kill()))));
  for (const name of ["a", "b", "c"]) {
    onProgress(`starting server ${name}`);
    members.push(await join(name));
  }

  const running = stack.move();
  const disposable = { [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
  return { members, rpcUrl: chain.rpcUrl, facts, journal, join, ...disposable };
}

/** The demo application, created by a node that leads for a moment. */
async function seedJournal(
  folder: string,
  url: string,
  at: { shard: string; key: string },
  deployment: Deployment,
) {
  const journal = await PostgresJournal.open({
    url,
    shard: at.shard,
    keys: [Buffer.from(at.key, "hex")],
  });
  const settlement = {
    chainId: BigInt(deployment.chainId),
    contract: deployment.settlement.address,
    engineVersion: 5,
  };
  const server = { name: "seed", url: "http://127.0.0.1:1" };
  const opening = {
    store: join(folder, "seed"),
    environment: "sandbox",
    settlement,
    createIfMissing: true,
  } as const;
  await using node = await ClusterNode.join({ ...opening, journal, server });
  return await seed((await node.next()).engine, deployment);
}

export async function vaultsOf(
  url: string,
  apiKey: string,
  userId: string,
): Promise<ReadonlySet<string>> {
  const client = createClient({ baseUrl: url, apiKey, ...RETRIES });
  const page = (cursor: string | undefined) =>
    client.GET("/api/v1/vaults", {
      params: { query: { userId, limit: 100, ...(cursor && { cursor }) } },
    });
  return new Set((await Array.fromAsync(everyEntry(page))).map(({ vaultId }) => vaultId));
}

export async function leaderOf(members: readonly ClusterServer[]): Promise<ClusterServer> {
  for (let left = 600; left > 0; left--) {
    for (const member of members) {
      const reply = await fetch(`${member.url}/healthz`).catch(() => null);
      await reply?.body?.cancel();
      if (reply?.headers.get("mintmark-role") === "leader") return member;
    }
    await pause(100);
  }
  throw new Error("nobody leads the cluster");
}

export function stateOf(url: string) {
  return answer(createClient({ baseUrl: url, ...RETRIES }).GET("/public/v1/state"));
}

/**
 * The state commitment of each server, once they are equal, and L1 has every batch, of which there
 * is one.
 */
export async function settled(members: readonly ClusterServer[]): Promise<string[]> {
  for (let left = 900; ; left--) {
    const states = await Promise.all(members.map(({ url }) => stateOf(url)));
    const commitments = states.map(({ sealed }) => sealed.commitment);
    const onL1 = states.map(({ committed }) => committed.commitment);
    const isAny = states.every(({ committed }) => committed.countRollup > 0);
    if (left === 0 || (isAny && new Set([...commitments, ...onL1]).size === 1)) return commitments;
    await pause(200);
  }
}
