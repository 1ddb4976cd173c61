import { existsSync, readFileSync } from "node:fs";
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import {
  createPublicClient,
  formatEther,
  type GetContractReturnType,
  getContract,
  http,
  type PublicClient,
} from "viem";
import { z } from "zod";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { codeOn } from "../../core/l1/connection.ts";
import { committeeHash } from "../../core/protocol/attestation.ts";
import { requireOwnCode } from "../../core/protocol/own-code.ts";
import { requireFolderFormat } from "../../core/store/format.ts";
import packageJson from "../../package.json" with { type: "json" };
import { accountOf } from "../../server/process/account.ts";
import { type Config, isLocalChain } from "../../server/process/settings/settings.ts";
import { messageOf } from "../cli/errors.ts";

export interface Finding {
  readonly check: string;
  readonly status: "ok" | "warning" | "fault" | "unknown";
  readonly found: string;
  /** The next step; null when there is nothing to do. */
  readonly todo: string | null;
}

/** What the doctor may look at besides the server's settings. */
export interface Places {
  readonly backup: string | undefined;
  /** The settings of the members of this machine; null when they are not known. */
  readonly members: readonly Readonly<Record<string, string>>[] | null;
}

type Result = Omit<Finding, "check">;
const ok = (found: string): Result => ({ status: "ok", found, todo: null });
const warning = (found: string, todo: string): Result => ({ status: "warning", found, todo });
const fault = (found: string, todo: string): Result => ({ status: "fault", found, todo });
const unknown = (found: string, todo: string): Result => ({ status: "unknown", found, todo });

const TIMEOUT_MS = 5_000;
const DAY_S = 86_400;
const GIB = 1024 ** 3;

/** Looks at a running or a stopped deployment. Never rejects: what cannot be asked is a finding. */
export async function examine(config: Config, places: Places): Promise<Finding[]> {
  const rpc = config.MINTMARK_RPC_URL;
  const transport = rpc === undefined ? null : http(rpc, { timeout: TIMEOUT_MS, retryCount: 1 });
  const looks = { ...LOOKS, ...(transport && chainLooks(createPublicClient({ transport }), config)) };
  const findings = await Promise.all(
    Object.entries<Look>(looks).map(async ([check, look]) => {
      const asked = (async () => look(config, places))().catch((error: unknown) =>
        unknown(messageOf(error).split("\n")[0] ?? "", `Look at what ${check} asks, and run this again.`),
      );
      return [await asked].flat().map((result) => ({ check, ...result }));
    }),
  );
  return findings.flat();
}

type Look = (config: Config, places: Places) => Result | Result[] | Promise<Result | Result[]>;

/** What is looked at without a node, in the order of the findings. */
const LOOKS = { versions, key, disk, backup, server, metrics };

/** The answer to a request; null without one. */
async function replyOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Response | null> {
  return fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), headers }).catch(() => null);
}

/** A store that no server could open is found before the server is started. */
async function versions({ MINTMARK_STORE: store }: Config): Promise<Result> {
  const [major = ""] = process.versions.node.split(".");
  const found = `Mintmark ${packageJson.version}, Node ${process.versions.node}`;
  if (Number(major) < 24) return fault(found, "Run it with Node 24 or newer.");
  if (!existsSync(store))
    return fault(`${found}; there is no store in ${store}`, `Create it: mintmark init --store ${store}`);
  await requireFolderFormat(store);
  return ok(`${found}; they read the store's format`);
}

async function key(config: Config): Promise<Result> {
  const account = await operatorOf(config);
  if (account === null)
    return warning("no operator's key", "Set MINTMARK_OPERATOR_KEYSTORE: without it nothing is committed.");
  if (config.MINTMARK_OPERATOR_SIGNER === undefined) return ok(`the operator's key opens: ${account}`);
  const reply = await replyOf(config.MINTMARK_OPERATOR_SIGNER.url);
  await reply?.body?.cancel();
  return reply === null
    ? fault("the signing service does not answer", "Start it, or look at MINTMARK_OPERATOR_SIGNER.")
    : ok(`the signing service of ${account} answers`);
}

/** The operator's address; null without a key. */
async function operatorOf(config: Config): Promise<`0x${string}` | null> {
  const account = await accountOf({
    key: config.MINTMARK_OPERATOR_KEY,
    keystore: config.MINTMARK_OPERATOR_KEYSTORE,
    passwordFile: config.MINTMARK_OPERATOR_PASSWORD_FILE,
    signer: config.MINTMARK_OPERATOR_SIGNER,
  });
  return account?.address ?? null;
}

async function disk({ MINTMARK_STORE: store }: Config): Promise<Result> {
  const { bavail, blocks, bsize } = await statfs(existsSync(store) ? store : ".");
  const free = (bavail * bsize) / GIB;
  const found = `${free.toFixed(1)} GiB free (${Math.round((100 * bavail) / blocks)} %)`;
  if (free < 1) return fault(found, "Make room: a server on a full disk ends.");
  return bavail / blocks < 0.1 ? warning(found, "Make room before the disk is full.") : ok(found);
}

async function backup(_: Config, { backup: folder }: Places): Promise<Result> {
  if (folder === undefined)
    return unknown("no backup folder was given", "Give --backup, the folder that `mintmark backup` writes.");
  if (!existsSync(folder)) return fault(`there is no backup in ${folder}`, `Make one: mintmark backup ${folder}`);
  const times = await Promise.all(
    (await readdir(folder)).map(async (file) => (await stat(join(folder, file))).mtimeMs),
  );
  const hours = (Date.now() - Math.max(0, ...times)) / 3_600_000;
  const found = `the newest backup is ${hours < 1 ? "less than an hour" : `${Math.floor(hours)} hours`} old`;
  return hours > 24 ? fault(found, "Look at the schedule of `mintmark backup`.") : ok(found);
}

const readiness = z.object({
  checks: z.record(z.string(), z.object({ status: z.string(), detail: z.string().optional() })),
});

async function server(config: Config): Promise<Result | Result[]> {
  const url = `http://${config.MINTMARK_HOST === "0.0.0.0" ? "127.0.0.1" : config.MINTMARK_HOST}:${config.MINTMARK_PORT}`;
  const reply = await replyOf(`${url}/readyz`);
  if (reply === null) return warning(`no server listens on ${url}`, "Start it: mintmark server");
  const body: unknown = await reply.json().catch(() => null);
  if (reply.ok) return ok(`${url} is ready`);
  const parsed = readiness.safeParse(body);
  const failing = parsed.success ? Object.entries(parsed.data.checks).filter(([, { status }]) => status !== "ok") : [];
  if (failing.length === 0) return fault(`${url} is not ready (${reply.status})`, "Look at the server's log.");
  return failing.map(([name, { detail }]) =>
    fault(`${name}: ${detail ?? "it fails"}`, `Find the check ${name} in docs/operating.md.`),
  );
}

async function metrics({ MINTMARK_METRICS_PORT: port, MINTMARK_METRICS_HOST: host }: Config): Promise<Result> {
  if (port === undefined)
    return warning("no metrics port", "Set MINTMARK_METRICS_PORT, and scrape it: docs/guides/production.md");
  const reply = await replyOf(`http://${host}:${port}/metrics`, { "user-agent": DOCTOR });
  await reply?.body?.cancel();
  if (reply === null) return warning("the metrics port does not answer", "It answers while the server runs.");
  const seconds = reply.headers.get("mintmark-scraped-seconds-ago");
  if (seconds === null)
    return warning("nobody has scraped the metrics since the start", "Point Prometheus at them: examples/monitoring");
  if (Number(seconds) > 300) return warning(`the last scrape was ${seconds} s ago`, "Look at Prometheus.");
  return ok(`scraped ${seconds} s ago`);
}

/** The doctor's own look at the metrics counts as no scrape. */
export const DOCTOR = "mintmark-doctor";

type Contract = GetContractReturnType<typeof stateCommitmentAbi, PublicClient>;

/** What a node of L1 tells. */
function chainLooks(client: PublicClient, { MINTMARK_CHAIN_ID: chainId, MINTMARK_CONTRACT: address }: Config) {
  const contract: Contract = getContract({ abi: stateCommitmentAbi, address, client });
  return {
    chain: (config: Config) => chain(config, client),
    finality: () => finality(client),
    async code() {
      await requireOwnCode(codeOn(client), { chainId, contract: address });
      return ok("the contract and its parts have this package's code");
    },
    role: (config: Config) => role(config, contract),
    balance: (config: Config) => balance(config, client),
    locks: (config: Config) => locks(config, client, contract),
    committee: (config: Config) => committee(config, contract),
    blobs,
  };
}

async function chain({ MINTMARK_CHAIN_ID: wanted }: Config, client: PublicClient): Promise<Result> {
  const [chainId, { timestamp }] = await Promise.all([client.getChainId(), client.getBlock()]);
  if (BigInt(chainId) !== wanted)
    return fault(`the node serves chain ${chainId}, not ${wanted}`, "Give a node of the right chain.");
  const behind = Math.round(Date.now() / 1000) - Number(timestamp);
  if (behind < -60) return fault(`this machine's clock is ${-behind} s behind the chain`, "Set the clock right (NTP).");
  if (behind > 300)
    return fault(`the newest block is ${behind} s old`, "Look at the node and at this machine's clock.");
  return ok(`chain ${chainId}; the newest block is ${Math.max(0, behind)} s old`);
}

async function finality(client: PublicClient): Promise<Result> {
  const [newest, final] = await Promise.all([client.getBlock(), client.getBlock({ blockTag: "finalized" })]);
  const seconds = Number(newest.timestamp - final.timestamp);
  const found = `the newest final block is ${newest.number - final.number} blocks (${seconds} s) behind`;
  return seconds > 3_600 ? fault(found, "The chain or its node finalizes nothing; withdrawals wait.") : ok(found);
}

async function role(config: Config, { read }: Contract): Promise<Result> {
  const operator = await operatorOf(config);
  if (operator === null) return unknown("no operator's key", "Set it, and run this again.");
  if (await read.hasRole([await read.OPERATOR_ROLE(), operator])) return ok(`${operator} holds the operator role`);
  return fault(`${operator} does not hold the operator role`, "Let the administrator schedule it: scheduleOperator.");
}

async function balance(config: Config, client: PublicClient): Promise<Result> {
  const operator = await operatorOf(config);
  if (operator === null) return unknown("no operator's key", "Set it, and run this again.");
  const wei = await client.getBalance({ address: operator });
  const days = await daysLeft(client, operator, wei);
  const found = `the operator has ${formatEther(wei)} ether${days === null ? "" : `, ${days} days at the present rate`}`;
  const todo = `Send ether to ${operator}.`;
  if (wei < config.MINTMARK_LEAST_BALANCE) return fault(`${found}, below MINTMARK_LEAST_BALANCE`, todo);
  return days !== null && days < 7 ? warning(found, todo) : ok(found);
}

/** Days until the balance is spent, by what the last day cost; null when nothing was spent or the node forgot. */
async function daysLeft(client: PublicClient, address: `0x${string}`, now: bigint): Promise<number | null> {
  const newest = await client.getBlock();
  for (const back of [7_200n, 100n]) {
    const blockNumber = newest.number > back ? newest.number - back : 0n;
    const [block, before] = await Promise.all([
      client.getBlock({ blockNumber }),
      client.getBalance({ address, blockNumber }),
    ]).catch(() => [null, 0n] as const);
    if (block === null) continue;
    const spent = before - now;
    const seconds = newest.timestamp - block.timestamp;
    if (spent <= 0n || seconds === 0n) return null;
    return Number((now * seconds) / spent / BigInt(DAY_S));
  }
  return null;
}

async function locks(config: Config, client: PublicClient, contract: Contract): Promise<Result | Result[]> {
  const [delay, maturity] = await Promise.all([contract.read.changeDelay(), contract.read.maturity()]);
  const found = `changes wait ${delay} s, ERC-721 vaults ${maturity} s`;
  const short =
    !isLocalChain(config.MINTMARK_CHAIN_ID) &&
    config.MINTMARK_ENVIRONMENT === "live" &&
    (delay < 3_600n || maturity < 3_600n);
  const terms = short ? warning(found, "Nobody can react in that time. Deploy with longer ones.") : ok(found);
  return [terms, ...(await scheduled(client, contract, delay))];
}

/** The changes of operator and committee that wait for their time. */
async function scheduled(client: PublicClient, { getEvents }: Contract, delay: bigint): Promise<Result[]> {
  const newest = await client.getBlock();
  const older = await client.getBlock({ blockNumber: newest.number > 100n ? newest.number - 100n : 0n });
  const pace = Number(newest.timestamp - older.timestamp) / Number(newest.number - older.number || 1n) || 1;
  const span = BigInt(Math.ceil(Number(delay) / pace));
  const fromBlock = newest.number > span ? newest.number - span : 0n;
  const blocks = { fromBlock, toBlock: newest.number };
  const events = await Promise.all([
    getEvents.OperatorScheduled({}, blocks),
    getEvents.CommitteeScheduled(blocks),
  ]).catch(() => null);
  const todo = "Ask a node that does: changes could wait unseen.";
  if (events === null) return [unknown("the node gives no events of the last change delay", todo)];
  return events.flat().flatMap(({ eventName, args: { activeFrom = 0n } }) => {
    if (activeFrom <= newest.timestamp) return [];
    const found = `${eventName}, active from ${new Date(Number(activeFrom) * 1000).toISOString()}`;
    return [warning(found, "Check that you asked for it; else the guardian pauses commits.")];
  });
}

const status = z.object({
  address: z.string(),
  nextBatch: z.coerce.string(),
  inStepWithL1: z.boolean(),
  missingBatches: z.coerce.number(),
});

async function committee(config: Config, { read }: Contract): Promise<Result | Result[]> {
  const { MINTMARK_MEMBERS: members, MINTMARK_THRESHOLD: threshold } = config;
  if (members.length === 0)
    return warning("no members", "Set MINTMARK_MEMBERS: validium batches need their signatures.");
  const [hash, epoch] = await read.committee();
  const own = committeeHash(epoch, { threshold, members: members.map(({ address }) => address).toSorted() });
  const others = "the members of the settings are not the contract's committee";
  const settings = "Set MINTMARK_MEMBERS and MINTMARK_THRESHOLD as the contract has them.";
  const seen = await Promise.all(members.map(statusOf));
  const good = seen.filter((one) => one?.inStepWithL1).length;
  const next = new Set(seen.flatMap((one) => (one?.inStepWithL1 ? [one.nextBatch] : [])));
  const found = `${good} of ${members.length} members are reachable and in step; ${threshold} must sign`;
  const todo = "Start the others, and look at their logs.";
  const differ = `members name different next batches: ${[...next].join(", ")}`;
  return [
    ...(hash === own ? [] : [fault(others, settings)]),
    good < threshold ? fault(found, todo) : good < members.length ? warning(found, todo) : ok(found),
    ...(next.size > 1 ? [warning(differ, "If it lasts, compare their nodes.")] : []),
  ];
}

async function statusOf({ address, url }: Config["MINTMARK_MEMBERS"][number]) {
  const reply = await replyOf(`${url}/v1/status`);
  const parsed = status.safeParse(await reply?.json().catch(() => null));
  return parsed.success && parsed.data.address.toLowerCase() === address ? parsed.data : null;
}

/** Without a source of their own, members depend on the operator for blobs. */
function blobs({ MINTMARK_ROLLUP_DATA: data }: Config, { members }: Places): Result {
  if (data === "calldata") return ok("rollup batches go into calldata");
  const todo = "Ask each member for its MINTMARK_BEACONS or MINTMARK_BLOBS.";
  if (members === null) return unknown("the members' settings are elsewhere", todo);
  const without = members.filter(({ MINTMARK_BEACONS: beacons, MINTMARK_BLOBS: folder }) => !beacons && !folder).length;
  if (without === 0) return ok("each member has a source of blobs");
  const found = `${without} members get blobs from your server only`;
  return warning(found, "Set MINTMARK_BEACONS for each: docs/guides/production.md");
}

/** The settings in a file that `mintmark up` wrote. */
export function settingsIn(path: string): Record<string, string> {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.includes("="));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}
