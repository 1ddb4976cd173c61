import { rm } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { formatEther } from "viem";
import type { Address } from "../../core/index.ts";
import { isLocalChain } from "../../server/process/settings/settings.ts";
import { UsageError } from "../cli/exit.ts";
import { checkPlan, type DeploymentPlan, gasHere, priceOf } from "../deploy/check.ts";
import { deploy } from "../deploy/deploy.ts";
import type { Deployer } from "../deploy/deployer.ts";
import { type Deployment, readRecord, writeRecord } from "../deploy/record.ts";
import type { Accounts } from "./accounts.ts";
import { type Deploying, weiFor } from "./funds.ts";
import { deploymentIn } from "./record.ts";
import type { Answers } from "./terms.ts";

/** Blocks on top of a deployment before it counts as kept by the chain. */
const CONFIRMATIONS = 3n;

/**
 * Deploys what the record lacks, and waits until the chain has kept it. Deploys again what a
 * reorganisation removed.
 */
export async function deployKept(by: Deployer, deploying: Deploying): Promise<Deployment> {
  const { options, plan, symbol, settled } = deploying;
  const record = deploymentIn(options.folder, by.chainId);
  for (;;) {
    await forgetLost(by, record, settled);
    const earlier = await readRecord(record);
    const missing = plan.tokens.length - (earlier?.tokens.length ?? 0);
    if (earlier === undefined || missing > 0) {
      const price = await priceOf(by);
      const most = formatEther(weiFor(await gasHere(by, plan, earlier), price));
      const what =
        earlier === undefined ? "the contracts" : `${missing} token${missing === 1 ? "" : "s"}`;
      if (!(await options.allow(`Deploy ${what} for at most about ${most} ${symbol}?`)))
        throw new UsageError("nothing was deployed; run this again when you want to");
    }
    for (const warning of await checkPlan(by, plan, earlier)) options.say(`warning: ${warning}`);
    await deploy(by, { ...plan, record, onProgress: options.progress });
    // A local chain makes blocks for transactions only, and takes none back.
    const isNew = earlier === undefined || missing > 0;
    if (isNew && !isLocalChain(BigInt(by.chainId))) await blocksOnTop(by, options);
    if (!(await forgetLost(by, record, settled))) return (await readRecord(record)) as Deployment;
    options.say("the chain dropped the deployment in a reorganisation; deploying again");
  }
}

export function planOf(
  by: Deployer,
  terms: Answers,
  accounts: Accounts,
  isTest: boolean,
): DeploymentPlan {
  const deployer = by.account.address.toLowerCase() as Address;
  const { operator } = accounts.signers;
  const members = terms.profile === "solo" ? [operator] : [...accounts.members, ...terms.committee];
  const committee = members.map(({ address }) => address);
  const { changeDelaySeconds = isTest ? 3_600 : 604_800, maturitySeconds = isTest ? 60 : 86_400 } =
    terms;
  const admin = terms.admin ?? terms.multisig ?? deployer;
  return {
    settlement: {
      admin: terms.admin ?? deployer,
      guardian: terms.guardian ?? admin,
      operator: operator.address,
      committee,
      threshold: terms.threshold ?? Math.floor(committee.length / 2) + 1,
      changeDelay: BigInt(changeDelaySeconds),
      maturity: BigInt(maturitySeconds),
      transfers: true,
    },
    multisig: terms.multisig,
    tokens: terms.tokens.map((token) => ({ ...token, admin: token.admin ?? admin })),
    allowNoDelay: terms.allowNoDelay,
    toAllowNoDelay: 'Give "allowNoDelay": true in the file of --answers',
  };
}

/**
 * Removes what a reorganisation took from the record. Resolves with whether anything was removed.
 * Rejects when the node lacks what was settled, or has not come to the block of the creation: a
 * second contract would split the deployment.
 */
async function forgetLost(by: Deployer, path: string, settled: number | null): Promise<boolean> {
  const record = await readRecord(path);
  if (record === undefined) return false;
  // All reads are at one block, because another node behind the same address may be further.
  const head = await by.client.getBlockNumber({ cacheTime: 0 });
  const isLost = async (
    { address, deployedAtBlock }: { address: Address; deployedAtBlock: bigint },
    isKept: boolean,
  ) => {
    const code =
      head >= deployedAtBlock && (await by.client.getCode({ address, blockNumber: head }));
    if (code && code !== "0x") return false;
    if (!isKept && head >= deployedAtBlock) return true;
    throw new Error(
      `the node has no code at ${address} at block ${head}; it was created in block ${deployedAtBlock}. The node may be behind: run this again later, or give another --rpc`,
    );
  };
  if (await isLost(record.settlement, settled !== null)) {
    await rm(path);
    return true;
  }
  const tokens = [];
  for (const [at, token] of record.tokens.entries())
    if (!(await isLost(token, at < (settled ?? 0)))) tokens.push(token);
  if (tokens.length === record.tokens.length) return false;
  await writeRecord(path, { ...record, tokens });
  return true;
}

async function blocksOnTop(
  by: Deployer,
  { signal, progress, pollMs }: Deploying["options"],
): Promise<void> {
  const height = () => by.client.getBlockNumber({ cacheTime: 0 }).catch(() => 0n);
  const target = (await height()) + CONFIRMATIONS;
  for (let block = 0n; block < target; block = await height()) {
    progress(`waiting for block ${target}, ${CONFIRMATIONS} after the last transaction`);
    await pause(pollMs, undefined, { signal });
  }
}
