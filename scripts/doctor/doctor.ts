import { existsSync } from "node:fs";
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { createPublicClient, formatEther, http, type PublicClient, parseEventLogs } from "viem";
import { z } from "zod";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { codeOn, isUnreachable } from "../../core/l1/connection.ts";
import { logReader } from "../../core/l1/logs.ts";
import { committeeHash } from "../../core/protocol/attestation.ts";
import { requireOwnCode } from "../../core/protocol/own-code.ts";
import { requireFolderFormat } from "../../core/store/format.ts";
import packageJson from "../../package.json" with { type: "json" };
import { accountOf } from "../../server/process/account.ts";
import { member as memberSetting } from "../../server/process/settings/fields.ts";
import { type Config, isLocalChain } from "../../server/process/settings/settings.ts";
import { messageOf } from "../cli/errors.ts";
import { gasOfRole } from "../up/funds.ts";

export interface Finding {
  readonly check: string;
  readonly status: "ok" | "warning" | "fault" | "unknown";
  readonly found: string;
  /** The next step; null when there is nothing to do. */
  readonly todo: string | null;
}

/** Places that the doctor may look at besides the server's settings. */
export interface Places {
  readonly backup: string | undefined;
  /** The settings of the members of this machine; null when they are not known. */
  readonly members: readonly Readonly<Record<string, string>>[] | null;
  readonly watcher: Readonly<Record<string, string>> | null;
  readonly isStopped: boolean;
}

interface Party {
  readonly role: string;
  readonly signer: { readonly url: string } | undefined;
  /** Opens the key, once; null without one. */
  readonly address: () => Promise<`0x${string}` | null>;
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
  const { MINTMARK_RPC_URL: rpc, MINTMARK_CONTRACT: address } = config;
  const contract = { abi: stateCommitmentAbi, address };
  const client =
    rpc === undefined
      ? null
      : createPublicClient({ transport: http(rpc, { timeout: TIMEOUT_MS, retryCount: 1 }) });
  const parties = partiesOf(config, places);
  const checks: Readonly<Record<string, () => Promise<Result | Result[]>>> = {
    versions: () => versions(config),
    keys: async () => (await Promise.all(parties.map(key))).flat(),
    disk: () => disk(config),
    backup: () => backup(places),
    server: () => server(config, places),
    metrics: () => metrics(config),
    committee: () => committee(config, parties[0], client),
    ...(client && {
      chain: () => chain(config, client),
      finality: () => finality(config, client),
      history: () => history(config, client),
      code: async () => {
        await requireOwnCode(codeOn(client), {
          chainId: config.MINTMARK_CHAIN_ID,
          contract: address,
        });
        return ok("the contract and its parts have this package's code");
      },
      role: () => role(parties[0], client, contract),
      balance: async () =>
        (await Promise.all(parties.map((party) => balance(config, client, party)))).flat(),
      locks: () => locks(config, client, contract),
      blobs: async () => blobs(config, places),
    }),
  };
  const findings = await Promise.all(
    Object.entries(checks).map(async ([check, look]) => {
      const results = [await look().catch((error: unknown) => notAsked(check, error))].flat();
      return results.map((result) => ({ check, ...result }));
    }),
  );
  return findings.flat();
}

function asked(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response | null> {
  return fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), headers }).catch(() => null);
}

function notAsked(check: string, error: unknown): Result {
  return unknown(
    messageOf(error).split("\n")[0] ?? "",
    `Look at what ${check} asks, and run this again.`,
  );
}

/** A store that no server could open is found before the server is started. */
async function versions({ MINTMARK_STORE: store }: Config): Promise<Result> {
  const [major = ""] = process.versions.node.split(".");
  const found = `Mintmark ${packageJson.version}, Node ${process.versions.node}`;
  if (Number(major) < 22) return fault(found, "Run it with Node 22 or newer.");
  if (!existsSync(store))
    return fault(
      `${found}; there is no store in ${store}`,
      `Create it: mintmark init --store ${store}`,
    );
  await requireFolderFormat(store);
  return ok(`${found}; they read the store's format`);
}

/** The keys of the settings, the operator's first. */
function partiesOf(config: Config, { members, watcher }: Places): [operator: Party, ...Party[]] {
  type Source = Parameters<typeof accountOf>[0];
  const partyOf = (
    role: string,
    settings: Readonly<Record<string, unknown>>,
    signer: Source["signer"],
  ): Party => {
    const [key, keystore, passwordFile] = ["KEY", "KEYSTORE", "PASSWORD_FILE"].map(
      (name) => settings[`${variableOf(role)}_${name}`] as `0x${string}` | undefined,
    );
    let opened: ReturnType<Party["address"]> | undefined;
    const open = () =>
      accountOf({ key, keystore, passwordFile, signer }).then(
        (account) => account?.address ?? null,
      );
    return { role, signer, address: () => (opened ??= open()) };
  };
  const named = (role: string, settings: Readonly<Record<string, string>>) =>
    partyOf(role, settings, memberSetting.safeParse(settings[`${variableOf(role)}_SIGNER`]).data);
  return [
    partyOf("operator", config, config.MINTMARK_OPERATOR_SIGNER),
    partyOf("receipt", config, config.MINTMARK_RECEIPT_SIGNER),
    ...(watcher === null ? [] : [named("watcher", watcher)]),
    ...(members ?? []).map((settings, at) => named(`member-${at + 1}`, settings)),
  ];
}

const variableOf = (role: string) => `MINTMARK_${role.replace(/-\d+$/, "").toUpperCase()}`;

async function key({ role, signer, address }: Party): Promise<Result[]> {
  const setting = variableOf(role);
  const account = await address().catch((error: unknown) =>
    fault(
      `the ${role}'s key: ${messageOf(error)}`,
      `Look at ${setting}_KEYSTORE and its password.`,
    ),
  );
  if (typeof account === "object" && account !== null) return [account];
  if (account === null && role === "receipt") return [];
  if (account === null)
    return [
      warning(`no ${role}'s key`, `Set ${setting}_KEYSTORE: without it the ${role} does nothing.`),
    ];
  if (signer === undefined) return [ok(`the ${role}'s key opens: ${account}`)];
  const reply = await asked(signer.url);
  await reply?.body?.cancel();
  return reply === null
    ? [
        fault(
          `the ${role}'s signing service does not answer`,
          `Start it, or look at ${setting}_SIGNER.`,
        ),
      ]
    : [ok(`the signing service of ${account} answers`)];
}

async function disk({ MINTMARK_STORE: store }: Config): Promise<Result> {
  const { bavail, blocks, bsize } = await statfs(existsSync(store) ? store : ".");
  const free = (bavail * bsize) / GIB;
  const found = `${free.toFixed(1)} GiB free (${Math.round((100 * bavail) / blocks)} %)`;
  if (free < 1) return fault(found, "Make room: a server on a full disk ends.");
  return bavail / blocks < 0.1 ? warning(found, "Make room before the disk is full.") : ok(found);
}

async function backup({ backup: folder }: Places): Promise<Result> {
  if (folder === undefined)
    return unknown(
      "no backup folder was given",
      "Give --backup, the folder that `mintmark backup` writes.",
    );
  if (!existsSync(folder))
    return fault(`there is no backup in ${folder}`, `Make one: mintmark backup ${folder}`);
  const stats = await Promise.all((await readdir(folder)).map((file) => stat(join(folder, file))));
  const times = stats.map(({ mtimeMs }) => mtimeMs);
  const hours = (Date.now() - Math.max(0, ...times)) / 3_600_000;
  const found = `the newest backup is ${hours < 1 ? "less than an hour" : `${Math.floor(hours)} hours`} old`;
  return hours > 24 ? fault(found, "Look at the schedule of `mintmark backup`.") : ok(found);
}

const notReady = z.object({
  detail: z.string(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })),
});

async function server(config: Config, { isStopped }: Places): Promise<Result | Result[]> {
  const url = `http://${config.MINTMARK_HOST === "0.0.0.0" ? "127.0.0.1" : config.MINTMARK_HOST}:${config.MINTMARK_PORT}`;
  const reply = await asked(`${url}/readyz`);
  if (reply === null)
    return isStopped
      ? ok(`no server listens on ${url}, as --stopped says`)
      : fault(
          `no server listens on ${url}`,
          "Start it: mintmark server. If it is meant to be stopped: --stopped",
        );
  const body: unknown = await reply.json().catch(() => null);
  const other = await otherVersion(url);
  const old = other === null ? [] : [warning(`the server runs Mintmark ${other}`, SAME_VERSION)];
  if (reply.ok) return [ok(`${url} is ready`), ...old];
  const { data: told } = notReady.safeParse(body);
  if (!told?.errors.length) {
    const why = told === undefined ? "" : `: ${told.detail}`;
    return [
      fault(`${url} is not ready (${reply.status})${why}`, "Look at the server's log."),
      ...old,
    ];
  }
  const faults = told.errors.map(({ pointer, detail }) => {
    const name = pointer.replace("/checks/", "");
    return fault(`${name}: ${detail}`, `Find the check ${name} in docs/operating.md.`);
  });
  return [...faults, ...old];
}

const SAME_VERSION = `This package is ${packageJson.version}: upgrade one of them.`;
const health = z.object({ version: z.string().max(50) });

/** The version that a process runs, if it says one that is not this package's. */
async function otherVersion(url: string): Promise<string | null> {
  const reply = await asked(`${url}/healthz`);
  const { data } = health.safeParse(await reply?.json().catch(() => null));
  return data === undefined || data.version === packageJson.version ? null : data.version;
}

async function metrics({
  MINTMARK_METRICS_PORT: port,
  MINTMARK_METRICS_HOST: host,
}: Config): Promise<Result> {
  if (port === undefined)
    return warning(
      "no metrics port",
      "Set MINTMARK_METRICS_PORT, and scrape it: docs/guides/production.md",
    );
  // The server does not count a look of this agent as a scrape.
  const reply = await asked(`http://${host}:${port}/metrics`, { "user-agent": "mintmark-doctor" });
  await reply?.body?.cancel();
  if (reply === null)
    return warning("the metrics port does not answer", "It answers while the server runs.");
  const seconds = reply.headers.get("mintmark-scraped-seconds-ago");
  if (seconds === null)
    return warning(
      "nobody has scraped the metrics since the start",
      "Point Prometheus at them: examples/monitoring",
    );
  if (Number(seconds) > 300)
    return warning(`the last scrape was ${seconds} s ago`, "Look at Prometheus.");
  return ok(`scraped ${seconds} s ago`);
}

type Contract = { readonly abi: typeof stateCommitmentAbi; readonly address: `0x${string}` };

async function chain({ MINTMARK_CHAIN_ID: wanted }: Config, client: PublicClient): Promise<Result> {
  const asked = await Promise.all([client.getChainId(), client.getBlock()]).catch(
    (error: unknown) => messageOf(error),
  );
  if (typeof asked === "string")
    return fault(`the node does not answer: ${asked}`, "Look at MINTMARK_RPC_URL.");
  const [chainId, { timestamp }] = asked;
  if (BigInt(chainId) !== wanted)
    return fault(
      `the node serves chain ${chainId}, not ${wanted}`,
      "Give a node of the right chain.",
    );
  const behind = Math.round(Date.now() / 1000) - Number(timestamp);
  if (behind < -60)
    return fault(
      `this machine's clock is ${-behind} s behind the chain`,
      "Set the clock right (NTP).",
    );
  if (behind > 300)
    return fault(
      `the newest block is ${behind} s old`,
      "Look at the node and at this machine's clock.",
    );
  return ok(`chain ${chainId}; the newest block is ${Math.max(0, behind)} s old`);
}

async function finality(config: Config, client: PublicClient): Promise<Result> {
  const { MINTMARK_CONFIRMATIONS: confirmations } = config;
  const newest = await client.getBlock();
  if (confirmations !== undefined)
    return ok(`a block counts as final ${confirmations} blocks later, by MINTMARK_CONFIRMATIONS`);
  const final = await client.getBlock({ blockTag: "finalized" }).catch((error: unknown) => {
    if (isUnreachable(error)) throw error;
    return null;
  });
  if (final === null)
    return fault(
      "the node knows no finalized block, so nothing is ever final here",
      "On a chain without finality, set MINTMARK_CONFIRMATIONS to the number of blocks after which a block stays.",
    );
  const seconds = Number(newest.timestamp - final.timestamp);
  const found = `the newest final block is ${newest.number - final.number} blocks (${seconds} s) behind`;
  return seconds > 3_600
    ? fault(found, "The chain or its node finalizes nothing; withdrawals wait.")
    : ok(found);
}

/** Blocks behind the newest whose state the processes ask for. */
const ASKED_STATES = 100n;

/** The processes ask a node for its past: states of some minutes, and the contract's events. */
async function history(config: Config, client: PublicClient): Promise<Result | Result[]> {
  const { MINTMARK_CONTRACT: address, MINTMARK_FROM_BLOCK: deployed } = config;
  const newest = await client.getBlockNumber();
  const old = newest > ASKED_STATES ? newest - ASKED_STATES : 0n;
  const state = await client.getBalance({ address, blockNumber: old }).catch(() => null);
  if (state === null)
    return fault(
      `the node does not give the state of block ${old}, ${newest - old} blocks ago`,
      "Give a full node that keeps the states of 128 blocks; an archive node is not needed.",
    );
  const range = { fromBlock: deployed, toBlock: deployed };
  const logs = deployed === 0n ? null : await client.getLogs({ address, ...range });
  if (logs?.length === 0)
    return warning(
      `the node gives no event of block ${deployed}, in which the contract was deployed`,
      "Look at MINTMARK_FROM_BLOCK, or give a node that keeps all logs.",
    );
  return ok(`the node has the state of block ${old}, and the contract's events`);
}

async function role({ address }: Party, client: PublicClient, contract: Contract): Promise<Result> {
  const operator = await address();
  if (operator === null) return unknown("no operator's key", "Set it, and run this again.");
  const name = await client.readContract({ ...contract, functionName: "OPERATOR_ROLE" });
  const has = await client.readContract({
    ...contract,
    functionName: "hasRole",
    args: [name, operator],
  });
  if (has) return ok(`${operator} holds the operator role`);
  return fault(
    `${operator} does not hold the operator role`,
    "Let the administrator schedule it: scheduleOperator.",
  );
}

async function balance(
  config: Config,
  client: PublicClient,
  { role, address }: Party,
): Promise<Result[]> {
  // Receipts are signed, and cost nothing.
  if (role === "receipt") return [];
  const account = await address().catch(() => null);
  if (account === null) return [unknown(`no ${role}'s key`, "Set it, and run this again.")];
  const wei = await client.getBalance({ address: account });
  const days = await daysLeft(client, account, wei);
  const found = `the ${role} has ${formatEther(wei)} ether${days === null ? "" : `, ${days} days at the present rate`}`;
  const todo = `Send ether to ${account}.`;
  if (role === "operator" && wei < config.MINTMARK_LEAST_BALANCE)
    return [fault(`${found}, below MINTMARK_LEAST_BALANCE`, todo)];
  if (wei === 0n) return [fault(found, todo)];
  const isLow = role !== "operator" && wei < gasOfRole(role, 0n) * (await client.getGasPrice());
  return [isLow || (days !== null && days < 7) ? warning(found, todo) : ok(found)];
}

/**
 * Days until the balance is spent, by what the last day cost; null when nothing was spent or the
 * node forgot.
 */
async function daysLeft(
  client: PublicClient,
  address: `0x${string}`,
  now: bigint,
): Promise<number | null> {
  const newest = await client.getBlock();
  for (const back of [7_200n, 100n]) {
    const blockNumber = newest.number > back ? newest.number - back : 0n;
    const ask = Promise.all([
      client.getBlock({ blockNumber }),
      client.getBalance({ address, blockNumber }),
    ]);
    const [block, before] = await ask.catch(() => [null, 0n] as const);
    if (block === null) continue;
    const spent = before - now;
    const seconds = newest.timestamp - block.timestamp;
    if (spent <= 0n || seconds === 0n) return null;
    return Number((now * seconds) / spent / BigInt(DAY_S));
  }
  return null;
}

async function locks(
  config: Config,
  client: PublicClient,
  contract: Contract,
): Promise<Result | Result[]> {
  const delay = await client.readContract({ ...contract, functionName: "changeDelay" });
  const maturity = await client.readContract({ ...contract, functionName: "maturity" });
  const found = `changes wait ${delay} s, ERC-721 vaults ${maturity} s`;
  const isLive = !isLocalChain(config.MINTMARK_CHAIN_ID) && config.MINTMARK_ENVIRONMENT === "live";
  const short = isLive && (delay < 3_600n || maturity < 3_600n);
  const terms = short
    ? warning(found, "Nobody can react in that time. Deploy with longer ones.")
    : ok(found);
  return [terms, ...(await scheduled(client, contract, delay))];
}

/** The changes of operator and committee that wait for their time. */
async function scheduled(
  client: PublicClient,
  { address, abi }: Contract,
  delay: bigint,
): Promise<Result[]> {
  const newest = await client.getBlock();
  const older = await client.getBlock({
    blockNumber: newest.number > 100n ? newest.number - 100n : 0n,
  });
  const pace =
    Number(newest.timestamp - older.timestamp) / Number(newest.number - older.number || 1n) || 1;
  const span = BigInt(Math.ceil(Number(delay) / pace));
  const fromBlock = newest.number > span ? newest.number - span : 0n;
  // Logs are read in ranges that the node takes.
  const logs = await logReader(client, address)(fromBlock, newest.number).catch(() => null);
  const unseen = "the node gives no events of the last change delay";
  if (logs === null) return [unknown(unseen, "Ask a node that does: changes could wait unseen.")];
  const events = parseEventLogs({
    abi,
    logs,
    eventName: ["OperatorScheduled", "CommitteeScheduled"],
  });
  return events.flatMap(({ eventName, args: { activeFrom = 0n } }) => {
    if (activeFrom <= newest.timestamp) return [];
    const found = `${eventName}, active from ${new Date(Number(activeFrom) * 1000).toISOString()}`;
    return [warning(found, "Check that you asked for it; else the guardian pauses commits.")];
  });
}

const status = z.object({
  address: z.string(),
  nextBatch: z.coerce.string(),
  inStepWithL1: z.boolean(),
  missingBatches: z.array(z.string()),
});

/** Members are asked also when L1 is silent. */
async function committee(
  config: Config,
  operator: Party,
  client: PublicClient | null,
): Promise<Result | Result[]> {
  const { MINTMARK_MEMBERS: members, MINTMARK_CONTRACT: address } = config;
  const isOwn = config.MINTMARK_OWN_MEMBER === "yes";
  const threshold = isOwn ? 1 : config.MINTMARK_THRESHOLD;
  if (members.length === 0 && !isOwn)
    return warning("no members", "Set MINTMARK_MEMBERS: validium batches need their signatures.");
  const there = await client
    ?.readContract({ abi: stateCommitmentAbi, address, functionName: "committee" })
    .catch((error: unknown) => notAsked("committee", error));
  const results: Result[] = there !== undefined && "status" in there ? [there] : [];
  const named = isOwn ? [await operator.address()] : members.map((member) => member.address);
  const own = { threshold, members: named.filter((member) => member !== null).toSorted() };
  if (Array.isArray(there) && there[0] !== committeeHash(there[1], own)) {
    const todo = "Set MINTMARK_MEMBERS and MINTMARK_THRESHOLD as the contract has them.";
    results.push(fault("the members of the settings are not the contract's committee", todo));
  }
  // The check "server" says whether that member can sign.
  if (isOwn) return [...results, ok("the server itself is the committee's only member")];
  const seen = await Promise.all(members.map((member) => statusOf(member)));
  const good = seen.filter((one) => one?.inStepWithL1).length;
  const next = new Set(seen.flatMap((one) => (one?.inStepWithL1 ? [one.nextBatch] : [])));
  const found = `${good} of ${members.length} members are reachable and in step; ${threshold} must sign`;
  const todo = "Start the others, and look at their logs.";
  results.push(
    good < threshold
      ? fault(found, todo)
      : good < members.length
        ? warning(found, todo)
        : ok(found),
  );
  for (const [at, one] of seen.entries()) {
    if (one === null) continue;
    const { version, missingBatches } = one;
    const name = `member ${members[at]?.address}`;
    if (missingBatches.length > 0)
      results.push(
        warning(
          `${name} lacks ${missingBatches.slice(0, 3).join(", ")}`,
          "Give it peers that have them.",
        ),
      );
    if (version !== null) results.push(warning(`${name} runs Mintmark ${version}`, SAME_VERSION));
  }
  const names = `members name different next batches: ${[...next].join(", ")}`;
  if (next.size > 1) results.push(warning(names, "If it lasts, compare their nodes."));
  return results;
}

async function statusOf({ address, url }: Config["MINTMARK_MEMBERS"][number]) {
  const reply = await asked(`${url}/v1/status`);
  const parsed = status.safeParse(await reply?.json().catch(() => null));
  if (!parsed.success || parsed.data.address.toLowerCase() !== address) return null;
  return { ...parsed.data, version: await otherVersion(url) };
}

/** Without a source of their own, members depend on the operator for blobs. */
function blobs({ MINTMARK_ROLLUP_DATA: data }: Config, { members }: Places): Result {
  if (data === "calldata") return ok("rollup batches go into calldata");
  const elsewhere = "Ask each member for its MINTMARK_BEACONS or MINTMARK_BLOBS.";
  if (members === null) return unknown("the members' settings are elsewhere", elsewhere);
  const without = members.filter(
    ({ MINTMARK_BEACONS: beacons, MINTMARK_BLOBS: folder }) => !beacons && !folder,
  ).length;
  if (without === 0) return ok("each member has a source of blobs");
  const todo = "Set MINTMARK_BEACONS for each: docs/guides/production.md";
  return warning(`${without} members get blobs from your server only`, todo);
}
