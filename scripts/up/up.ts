import { formatEther } from "viem";
import { RELAY_GAS } from "../../core/gas.ts";
import { TOKEN_CONTRACT } from "../../core/l1/own-token.ts";
import { isLocalChain } from "../../server/process/settings/settings.ts";
import { UsageError } from "../cli/exit.ts";
import { checkTerms, neverTransferable, priceOf } from "../deploy/check.ts";
import { chainOn, type Deployer } from "../deploy/deployer.ts";
import { type Deployment, pendingOf, readRecord } from "../deploy/record.ts";
import { verifySettlement } from "../deploy/settlement.ts";
import { accountsOf } from "./accounts.ts";
import { deployKept, planOf } from "./deploying.ts";
import { fund } from "./funds.ts";
import { processesOf, writeFiles } from "./processes.ts";
import { deploymentIn, readUp, type UpOptions, type UpRecord, writeUp } from "./record.ts";
import { seedStore } from "./seed.ts";
import { type Published, publishSources } from "./sourcify.ts";
import { answers as answersSchema, type GivenAnswers, nobodyAnswers } from "./terms.ts";

export type UpResult = Awaited<ReturnType<typeof up>>;

/**
 * Brings a deployment to life in a folder, step by step. A run that ends early goes on where it
 * ended: each step looks first at what is there.
 */
export async function up(options: UpOptions) {
  const { folder, rpc, say, progress } = options;
  const earlier = await readUp(folder);
  progress(`asking ${new URL(rpc).host} for its chain`);
  const there = await chainOn(rpc);
  const network = requireChain(options, there.chainId, earlier);
  const deployed = await readRecord(deploymentIn(folder, there.chainId));
  const pending = pendingOf(deploymentIn(folder, there.chainId));
  const isBegun = deployed !== undefined || !(await pending.isEmpty());
  const { answers, terms } = await termsOf(options, earlier?.answers, isBegun);
  // A refusal must come before keys are made and accounts get money.
  const isComplete = deployed !== undefined && deployed.tokens.length >= terms.tokens.length;
  if (!isComplete && !options.isAttended) throw nobodyAnswers();
  const symbol = network?.symbol ?? "ETH";
  say(
    `network     ${network?.title ?? `chain ${there.chainId}`}; blocks are final after ${network?.finality ?? "a time that its node decides"}`,
  );

  progress("making keys");
  const accounts = await accountsOf(folder, terms, progress);
  const by = { ...there, account: accounts.deployer, pending };

  const isTest = network?.isTest ?? isLocalChain(BigInt(there.chainId));
  const plan = planOf(by, terms, accounts, isTest);
  // The terms are checked before they are kept.
  checkTerms(by, plan, deployed);
  const nothing = { done: {}, begun: null, published: [], seeded: null };
  const record: UpRecord = earlier ?? { version: 1, ...nothing, chainId: there.chainId, answers };
  record.answers = answers;
  await writeUp(folder, record);
  const isSettled = "deployed" in record.done;
  if (!isSettled) for (const line of neverTransferable(terms.tokens)) say(`token       ${line}`);
  const settled = isSettled ? (record.seeded?.assets.length ?? 0) : null;
  const isMore =
    isSettled && (record.begun !== null || plan.tokens.length > (deployed?.tokens.length ?? 0));
  const payers = accounts.payers.filter(({ role }) => !isMore || role === "deployer");
  const deploying = { options, symbol, payers, plan, settled };
  if (!isSettled || isMore) await fund(by, deploying);
  const step = isMore ? `tokens-${plan.tokens.length}` : "deployed";
  const isNew = !(step in record.done);
  const deployment = await paid(by, folder, record, step, () => deployKept(by, deploying));
  if (isNew) say(`${step.padEnd(11)} cost ${formatEther(record.done[step] ?? 0n)} ${symbol}`);
  await verifySettlement(by, deployment.settlement);
  say(
    `contract    ${deployment.settlement.address}: its code and that of its parts is this package's`,
  );
  await publish(options, record, deployment, terms.multisig !== undefined);
  progress("making the store");
  const seeded = await seedStore(options, record, deployment, terms, isTest);
  const gasPrice = await priceOf(by);
  const leastBalance = RELAY_GAS * gasPrice;
  const processes = processesOf({
    ...accounts,
    folder,
    rpc,
    deployment,
    terms,
    isTest,
    leastBalance,
  });
  const { files, written } = await writeFiles(folder, processes);
  // Ether by step.
  const spent = Object.fromEntries(
    Object.entries(record.done).map(([name, cost]) => [name, formatEther(cost)]),
  );
  const { address: contract } = deployment.settlement;
  // The contract's page; null where no explorer is known.
  const explorer =
    network?.explorer === undefined ? null : `${network.explorer}/address/${contract}`;
  return {
    chainId: there.chainId,
    contract,
    explorer,
    folder,
    ...seeded,
    processes: written,
    files,
    spent,
  };
}

/**
 * The network behind the RPC. Refuses another chain than the one that was named, or that the folder
 * is of.
 */
function requireChain(
  { expected, known, rpc, folder }: UpOptions,
  chainId: number,
  earlier?: UpRecord,
) {
  const host = new URL(rpc).host;
  if (expected !== undefined && expected.chainId !== chainId)
    throw new UsageError(
      `${host} serves chain ${chainId}, and ${expected.title} is chain ${expected.chainId}; give another --rpc`,
    );
  if (earlier !== undefined && earlier.chainId !== chainId)
    throw new UsageError(
      `${folder} is of chain ${earlier.chainId}, and ${host} serves chain ${chainId}; give another --folder`,
    );
  return known.find((network) => network.chainId === chainId);
}

/**
 * The terms: until the deployment begins those that are given last; after that its own, and tokens
 * that are added.
 */
async function termsOf(
  { given, profile, isAttended, ask, say }: UpOptions,
  earlier: GivenAnswers | undefined,
  isBegun: boolean,
) {
  if (profile !== undefined && earlier !== undefined && isBegun)
    if ((earlier.profile ?? "committee") !== profile)
      throw new UsageError(
        `--profile: this deployment has begun as ${earlier.profile ?? "committee"}`,
      );
  if (earlier !== undefined && isBegun) {
    if (given === undefined) return { answers: earlier, terms: parsed(earlier) };
    parsed(given);
    const { tokens = [], profile: _, ...own } = earlier;
    const { tokens: wanted = [], profile: __, ...others } = given;
    if (JSON.stringify(others) !== JSON.stringify(own))
      say("answers     only new tokens count, because the deployment has begun");
    const isKnown = (one: (typeof wanted)[number]) =>
      tokens.some(({ standard, symbol }) => standard === one.standard && symbol === one.symbol);
    const answers = {
      ...earlier,
      tokens: [...tokens, ...wanted.filter((token) => !isKnown(token))],
    };
    return { answers, terms: parsed(answers) };
  }
  const { profile: recorded, ...known } = earlier ?? {};
  // Nobody chose the terms of a record that has none.
  const chosen = given ?? (Object.keys(known).length > 0 ? earlier : undefined);
  const own = profile ?? (given === undefined ? recorded : undefined);
  if (chosen === undefined && !isAttended) throw nobodyAnswers();
  const terms = chosen ?? (await ask(own === "solo"));
  const answers = own === undefined ? terms : { ...terms, profile: own };
  return { answers, terms: parsed(answers) };
}

function parsed(given: GivenAnswers) {
  const { success, data, error } = answersSchema.safeParse(given);
  if (!success) {
    const faults = error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new UsageError(`the answers are wrong:\n${faults.join("\n")}`);
  }
  if (data.profile !== "solo") return data;
  if (given.members !== undefined || given.committee !== undefined || given.threshold !== undefined)
    throw new UsageError(
      "the server of the profile solo is its only member: leave out `members`, `committee` and `threshold`",
    );
  return { ...data, members: 0 };
}

/** Deploys by `work`, and writes into the record what that cost, once for all runs. */
async function paid(
  by: Deployer,
  folder: string,
  record: UpRecord,
  step: string,
  work: () => Promise<Deployment>,
) {
  const balanceOf = () => by.client.getBalance({ address: by.account.address });
  if (step in record.done) return work();
  if (record.begun?.step !== step) {
    record.begun = { step, balance: await balanceOf() };
    await writeUp(folder, record);
  }
  const deployment = await work();
  const cost = record.begun.balance - (await balanceOf());
  record.done[step] = cost > 0n ? cost : 0n;
  record.begun = null;
  await writeUp(folder, record);
  return deployment;
}

/** Publishes the sources. A service that is away stops nothing: the next run tries again. */
async function publish(
  options: UpOptions,
  record: UpRecord,
  deployment: Deployment,
  hasTimeLock: boolean,
) {
  const { folder, sourcify, say, progress, signal } = options;
  if (isLocalChain(BigInt(deployment.chainId))) return;
  const { settlement, tokens } = deployment;
  const all: Published[] = [
    { name: "StateCommitment", address: settlement.address },
    ...(settlement.transfersCode
      ? [{ name: "Transfers", address: settlement.transfersCode } as const]
      : []),
    ...(settlement.makingsCode
      ? [{ name: "Makings", address: settlement.makingsCode } as const]
      : []),
    ...(hasTimeLock ? [{ name: "AdminTimeLock", address: settlement.admin } as const] : []),
    ...tokens.map(({ standard, address }) => ({ name: TOKEN_CONTRACT[standard], address })),
  ];
  for (const contract of all) {
    if (record.published.includes(contract.address)) continue;
    progress(`publishing the sources of ${contract.name}`);
    try {
      await publishSources(sourcify, deployment.chainId, contract, signal);
      record.published.push(contract.address);
      await writeUp(folder, record);
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      return say(`sources     not published: ${reason}. Run this again to publish them.`);
    }
  }
  say(`sources     published at ${new URL(sourcify).host}; block explorers read them from there`);
}
