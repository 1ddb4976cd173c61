import { formatEther, type LocalAccount } from "viem";
import type { Address } from "../../core/index.ts";
import { TOKEN_CONTRACT } from "../../core/l1/own-token.ts";
import { isLocalChain } from "../../server/process/settings/settings.ts";
import { UsageError } from "../cli/errors.ts";
import { priceOf } from "../deploy/check.ts";
import { type Deployer, deployerOn } from "../deploy/deployer.ts";
import { pendingOf } from "../deploy/pending.ts";
import type { Deployment } from "../deploy/record.ts";
import { verifySettlement } from "../deploy/settlement.ts";
import { accountsOf } from "./accounts.ts";
import { deployKept, planOf } from "./deploying.ts";
import { fund, RELAY_GAS } from "./funds.ts";
import { type Process, processesOf, writeFiles } from "./processes.ts";
import { deploymentIn, readUp, type UpOptions, type UpRecord, writeUp } from "./record.ts";
import { seedStore } from "./seed.ts";
import { type Published, publishSources } from "./sourcify.ts";
import { answers as answersSchema } from "./terms.ts";

/** The step that costs money, in the record. */
const STEP = "deployed";

export interface UpResult {
  readonly chainId: number;
  readonly contract: Address;
  readonly folder: string;
  readonly applicationId: string;
  readonly apiKeyFile: string;
  readonly assets: readonly { readonly symbol: string; readonly assetId: string }[];
  readonly processes: readonly Process[];
  readonly files: readonly string[];
  /** Ether by step. */
  readonly spent: Readonly<Record<string, string>>;
}

/**
 * Brings a deployment to life in a folder, step by step. A run that ends early goes on where it ended: each step looks
 * first at what is there.
 */
export async function up(options: UpOptions): Promise<UpResult> {
  const { folder, rpc, say, progress } = options;
  const earlier = await readUp(folder);
  progress(`asking ${new URL(rpc).host} for its chain`);
  const nobody = { address: `0x${"00".repeat(20)}` } as unknown as LocalAccount;
  const there = await deployerOn(rpc, nobody);
  const network = requireChain(options, there.chainId, earlier);
  const record = earlier ?? (await begin(options, there.chainId));
  const terms = answersSchema.parse(record.answers);
  const symbol = network?.symbol ?? "ETH";
  say(
    `network     ${network?.title ?? `chain ${there.chainId}`}; blocks are final after ${network?.finality ?? "a time that its node decides"}`,
  );

  progress("making keys");
  const accounts = await accountsOf(folder, terms, progress);
  const by = { ...there, account: accounts.deployer, pending: pendingOf(deploymentIn(folder, there.chainId)) };

  const isTest = network?.isTest ?? isLocalChain(BigInt(there.chainId));
  const deploying = { options, symbol, payers: accounts.payers, plan: planOf(by, terms, accounts, isTest) };
  const isNew = !(STEP in record.done);
  if (isNew) await fund(by, deploying);
  const deployment = await paid(by, folder, record, () => deployKept(by, deploying));
  if (isNew) say(`${STEP.padEnd(11)} cost ${formatEther(record.done[STEP] ?? 0n)} ${symbol}`);
  await verifySettlement(by, deployment.settlement);
  say(`contract    ${deployment.settlement.address}: its code and that of its parts is this package's`);
  await publish(options, record, deployment);
  progress("making the store");
  const seeded = await seedStore(options, record, deployment, terms.application, isTest);
  const gasPrice = await priceOf(by);
  const processes = processesOf({
    ...{ folder, rpc, deployment, terms, isTest },
    ...{ members: accounts.members, signers: accounts.signers, leastBalance: RELAY_GAS * gasPrice },
  });
  const files = await writeFiles(folder, processes);
  const spent = Object.fromEntries(Object.entries(record.done).map(([name, cost]) => [name, formatEther(cost)]));
  const { address: contract } = deployment.settlement;
  return { chainId: there.chainId, contract, folder, ...seeded, processes, files, spent };
}

/** The network behind the RPC. Refuses another chain than the one that was named, or that the folder is of. */
function requireChain({ expected, known, rpc, folder }: UpOptions, chainId: number, earlier?: UpRecord) {
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

async function begin({ terms, folder }: UpOptions, chainId: number): Promise<UpRecord> {
  const given = await terms();
  const parsed = answersSchema.safeParse(given);
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new UsageError(`the answers are wrong:\n${faults.join("\n")}`);
  }
  const record: UpRecord = { version: 1, chainId, answers: given, done: {}, begun: null, published: [], seeded: null };
  await writeUp(folder, record);
  return record;
}

/** Deploys by `work`, and writes into the record what that cost, once for all runs. */
async function paid(by: Deployer, folder: string, record: UpRecord, work: () => Promise<Deployment>) {
  const balanceOf = () => by.client.getBalance({ address: by.account.address });
  if (STEP in record.done) return work();
  if (record.begun?.step !== STEP) {
    record.begun = { step: STEP, balance: await balanceOf() };
    await writeUp(folder, record);
  }
  const deployment = await work();
  const cost = record.begun.balance - (await balanceOf());
  record.done[STEP] = cost > 0n ? cost : 0n;
  record.begun = null;
  await writeUp(folder, record);
  return deployment;
}

/** Publishes the sources. A service that is away stops nothing: the next run tries again. */
async function publish(options: UpOptions, record: UpRecord, deployment: Deployment): Promise<void> {
  const { folder, sourcify, say, progress, signal } = options;
  if (isLocalChain(BigInt(deployment.chainId))) return;
  const { settlement, tokens } = deployment;
  const all: Published[] = [
    { name: "StateCommitment", address: settlement.address },
    ...(settlement.transfersCode ? [{ name: "Transfers", address: settlement.transfersCode } as const] : []),
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
