import { createWriteStream } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createPublicClient, http } from "viem";
import { HttpBatchSource, Watcher } from "../../core/archive/index.ts";
import { pause } from "../../core/backoff.ts";
import { CommitteeMember } from "../../core/committee/member.ts";
import { type Engine, KzgThread, openEngine, type Uuid } from "../../core/index.ts";
import { connectL1, signatureChecks } from "../../core/l1/index.ts";
import type { RollupData } from "../../core/settlement/index.ts";
import { Stack } from "../../core/stack.ts";
import { buildServer } from "../../server/app.ts";
import { BACKLOG } from "../../server/http/connections.ts";
import { gasOf } from "../../server/jobs/chain.ts";
import { logProgress } from "../../server/jobs/progress-log.ts";
import { serveOperator } from "../../server/process/operator/socket.ts";
import {
  reserveSettling,
  SETTLES_BY_ITSELF,
  startSettling,
} from "../../server/process/settling.ts";
import { shutDown } from "../../server/process/shutdown.ts";
import { openLevel } from "../cli/l1.ts";
import { deploy } from "../deploy/deploy.ts";
import { type Deployer, lower } from "../deploy/deployer.ts";
import { type Deployment, recordPath } from "../deploy/record.ts";
import type { TokenConfig } from "../deploy/token.ts";
import {
  ADMIN,
  API_KEY,
  APPLICATION_ID,
  ASSET_IDS,
  COMMITTEE,
  GUARDIAN,
  OPERATOR,
  THRESHOLD,
  USERS,
} from "./accounts.ts";
import { requireHardhat, startChain } from "./chain.ts";
import { freePort } from "./process.ts";

export interface SandboxOptions {
  /** Replaced at every start: the chain is in memory, so nothing could resume. */
  readonly folder: string;
  /** Wanted ports on 127.0.0.1, or the next free ones. 0: any. */
  readonly port: number;
  readonly chainPort: number;
  /** Where the data of rollup batches go; default `auto`, which is blobs. */
  readonly rollupData?: RollupData;
  readonly onProgress?: (step: string) => void;
  readonly onError?: (error: unknown) => void;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;
export type SandboxDescription = Sandbox["description"];
type Facts = Awaited<ReturnType<typeof seed>>;

const TERMS = { admin: ADMIN.address, transferable: true };
const TOKENS: readonly TokenConfig[] = [
  // One quantized unit is 10^9 of the token's 10^18 base units, so 2^63 units hold nine billion
  // tokens.
  { standard: "erc20", name: "Loyalty Points", symbol: "PTS", quantum: 1_000_000_000n, ...TERMS },
  { standard: "erc721", name: "Swords", symbol: "SWRD", ...TERMS },
  { standard: "erc1155", name: "Potions", symbol: "PTN", ...TERMS },
];
/** Long enough to see a vault wait, short enough for a newcomer. */
const MATURITY_SECONDS = 3n;

/** Starts everything in this process, in order. If a later part fails, stops the earlier ones. */
export async function startSandbox(options: SandboxOptions) {
  requireHardhat();
  const { onProgress = () => {} } = options;
  await using whole = new Stack();
  const folder = resolve(options.folder);
  // The lock belongs to the operating system, on an empty database, so a dead process holds none.
  const taken = `a sandbox already runs in ${folder}; stop it first, or set MINTMARK_SANDBOX to another folder`;
  const lock = await openLevel(resolve(folder, "lock"), taken);
  whole.defer(() => lock.close());
  for (const name of ["engine", "committee", "deployments", "sandbox.json"])
    await rm(resolve(folder, name), { recursive: true, force: true });

  onProgress("starting the local chain");
  const chain = await startChain("local", options.chainPort);
  whole.defer(() => chain.stop());
  const stack = whole.use(new Stack());
  tellPort("chain", options.chainPort, chain.port, onProgress);
  const deployment = await deployTo(chain.rpcUrl, folder, onProgress);
  const { address: contract, deployedAtBlock } = deployment.settlement;

  onProgress("opening the engine");
  const kzg = new KzgThread();
  stack.defer(() => kzg.close());
  const polled = { finality: { confirmations: 1n }, pollingMs: 100 };
  const l1 = await connectL1({ rpc: chain.rpcUrl, contract, account: OPERATOR, kzg, ...polled });
  const store = resolve(folder, "engine");
  const opening = {
    store,
    createIfMissing: true,
    settlement: l1.settlement,
    kzg,
    environment: "sandbox",
  } as const;
  const signing = { receiptSigner: OPERATOR, verifySignature: signatureChecks([l1]) };
  const engine = await openEngine({ ...opening, ...signing });
  stack.defer(() => engine.close());
  stack.use(reserveSettling(engine, SETTLES_BY_ITSELF));
  const chains = new Map([[l1.settlement.chainId, async () => l1]]);
  const facts = await seed(engine, deployment);
  const logFile = createWriteStream(resolve(folder, "server.log"));
  stack.defer(() => new Promise<void>((done) => logFile.end(done)));
  const app = await buildServer({
    engine,
    explorerRpc: chain.rpcUrl,
    newTokens: true,
    mintExample: mintExample(facts),
    chains,
    log: { level: "info", stream: logFile },
    webhooks: { reach: "public-and-loopback" },
    drops: resolve(folder, "engine-drops"),
    checks: () => settling.checks,
  });
  stack.use(logProgress(engine, app.log, gasOf(chains)));
  // A token accepts mints only after its registration is final.
  const deployed = await l1.blockNumber();
  while ((await l1.finalizedBlockNumber()) < deployed) await pause(100);

  // They share a thread for KZG, of which each would load its own setup.
  const members: CommitteeMember[] = [];
  for (const [index, account] of COMMITTEE.entries()) {
    const store = await openLevel(resolve(folder, "committee", `${index + 1}`));
    const member = await CommitteeMember.open({ account, store, l1, kzg });
    stack.defer(() => member.close());
    members.push(member);
  }
  const parties = { operator: lower(OPERATOR.address), members, threshold: THRESHOLD };
  const settling = await startSettling({
    engine,
    l1,
    ...parties,
    fromBlock: deployedAtBlock,
    mostLag: 100n,
    leastBalance: 0n,
    sealing: { maxAgeMs: { validium: 1_500, "zk-rollup": 1_500 } },
    intervalMs: 500,
    rollupData: options.rollupData ?? "auto",
    onError: options.onError ?? (() => {}),
  });
  stack.use(settling);

  onProgress("starting the HTTP server");
  const port = await freePort(options.port);
  await app.listen({ host: "127.0.0.1", port, backlog: BACKLOG });
  stack.defer(() => shutDown(app));
  tellPort("API", options.port, port, onProgress);

  const api = `http://127.0.0.1:${port}`;
  stack.use(await serveOperator(engine, store, () => api));
  // Members judge transfers from their own archives, and get the blobs that L1 does not hold from
  // the server.
  const terms = {
    l1,
    fromBlock: deployedAtBlock,
    sources: [new HttpBatchSource(api)],
    intervalMs: 1_000,
  };
  const watchers = members.map(
    ({ archive }) => new Watcher({ ...terms, archive, work: async () => 0 }),
  );
  const stopping = new AbortController();
  const following = Promise.all(watchers.map((watcher) => watcher.run(stopping.signal)));
  stack.defer(() => {
    stopping.abort();
    return following;
  });
  const linkOf = async (applicationId: Uuid | null, role: "admin" | "operator") =>
    `${api}/console#link=${(await engine.people.invite({ applicationId, role, name: "You" })).link}`;
  /**
   * Access data of a running sandbox, in `sandbox.json` in its folder. Keys are of the test chain
   * only.
   */
  const description = {
    api,
    /**
     * Links that sign in to the console once: as an admin of the application, and as the operator.
     */
    consoleLinks: {
      team: await linkOf(facts.applicationId, "admin"),
      operator: await linkOf(null, "operator"),
    },
    rpcUrl: chain.rpcUrl,
    contract,
    /** Deployment block of the contract. */
    fromBlock: Number(deployedAtBlock),
    /** The engine's folder, for the operator's commands. */
    store,
    /** Where rollup batches go: those that do not fit into blobs go into calldata. */
    rollupData: engine.operator.rollupKind(),
    ...facts,
    pid: process.pid,
  };
  const descriptionFile = resolve(folder, "sandbox.json");
  await writeFile(descriptionFile, `${JSON.stringify(description, null, 2)}\n`, { mode: 0o600 });
  stack.defer(() => rm(descriptionFile, { force: true }));
  const running = whole.move();
  return {
    description,
    engine,
    /** Leaves the chain running. */
    stopServer: () => stack[Symbol.asyncDispose](),
    stop: () => running[Symbol.asyncDispose](),
  };
}

function tellPort(
  what: string,
  wanted: number,
  taken: number,
  onProgress: (step: string) => void,
): void {
  if (wanted !== 0 && wanted !== taken)
    onProgress(`port ${wanted} is taken: the ${what} listens on ${taken}`);
}

export async function deployTo(rpcUrl: string, folder: string, onProgress: (step: string) => void) {
  const transport = http(rpcUrl);
  const client = createPublicClient({ transport, pollingInterval: 50 });
  const by: Deployer = { account: ADMIN, client, transport, chainId: await client.getChainId() };
  return deploy(by, {
    record: recordPath(resolve(folder, "deployments"), by.chainId),
    settlement: {
      admin: ADMIN.address,
      guardian: GUARDIAN.address,
      operator: OPERATOR.address,
      committee: COMMITTEE.map(({ address }) => address),
      threshold: THRESHOLD,
      changeDelay: 60n,
      maturity: MATURITY_SECONDS,
      transfers: true,
    },
    tokens: TOKENS,
    onProgress,
  });
}

/**
 * The demo application: a key, the users, and one asset of each standard, whitelisted, registered
 * and enabled.
 */
export async function seed(engine: Engine, { tokens, chainId }: Deployment) {
  const { applicationId } = await engine.applications.create({
    applicationId: APPLICATION_ID,
    name: "Demo",
  });
  const { secret: apiKey } = await engine.keys.issue(applicationId, { token: API_KEY });
  const users = [];
  for (const { name, userId, owner } of USERS) {
    const ownerAddress = lower(owner.address);
    await engine.users.create(applicationId, { userId, ownerAddress });
    users.push({ name, userId, ownerAddress });
  }
  const assets = [];
  for (const {
    standard,
    address: contractAddress,
    name,
    symbol,
    quantum,
    mintingBlobScheme,
    minterLocked,
  } of tokens) {
    const token = {
      assetId: ASSET_IDS[standard],
      standard,
      chainId: BigInt(chainId),
      contractAddress,
      quantum,
      name,
      symbol,
      mintingBlobScheme,
    };
    const decimals = standard === "erc20" ? 18 : 0;
    const { assetId } = await engine.assets.add({ ...token, decimals, applicationId });
    await engine.operator.recordRegistered(assetId, { minterLocked, transferable: true });
    assets.push({ assetId, standard, contractAddress, symbol, decimals });
  }
  return { apiKey, applicationId, users, assets };
}

/** Can be sent repeatedly: of its assets, only an ERC-721 is limited to one mint. */
function mintExample({ users, assets }: Facts) {
  const mints = assets
    .filter(({ standard }) => standard !== "erc721")
    .map(({ assetId, standard }) => ({
      assetId,
      ...(standard === "erc20" ? { amountDecimal: "12.5" } : { tokenId: "1001", amount: 1 }),
      dataAvailabilityMode: standard === "erc20" ? "validium" : "zk-rollup",
    }));
  return { users: users.slice(0, 1).map(({ userId }) => ({ userId, mints })) };
}
