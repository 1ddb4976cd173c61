import type { Command } from "commander";
import { createPublicClient, http, type LocalAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { askL1 } from "../../core/l1/failure.ts";
import {
  type DeploySettings,
  deploySettings,
  type TokenSetting,
} from "../../server/process/settings/process-settings.ts";
import { configured } from "../cli/command.ts";
import { checkPlan } from "../deploy/check.ts";
import { deploy } from "../deploy/deploy.ts";
import { type Deployer, deployContract, lower } from "../deploy/deployer.ts";
import { deployMirrorOf } from "../deploy/mirror.ts";
import { pendingOf, pendingOfMirror } from "../deploy/pending.ts";
import { readRecord, recordPath } from "../deploy/record.ts";
import type { TokenConfig } from "../deploy/token.ts";

export function addDeploy(program: Command): void {
  configured(
    program,
    "deploy",
    "deploy to a chain, and a mirror to another; run again to verify what is there, or to add a token or a mirror",
    ["deploy --rpc https://rpc.example --committee 0x…,0x… --threshold 2 --multisig 0x…", "deploy --json"],
    deploySettings,
    (settings, { options }) => run(settings, options.json === true),
  );
}

async function run(env: DeploySettings, isJson: boolean): Promise<unknown> {
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const account = privateKeyToAccount(env.MINTMARK_DEPLOYER_KEY);
  const deployer = lower(account.address);
  const there = await deployerOn(env.MINTMARK_RPC_URL, account);
  const record = recordPath(env.MINTMARK_DEPLOYMENTS, there.chainId);
  const by: Deployer = { ...there, pending: pendingOf(record) };
  const earlier = await readRecord(record);
  const tokensOf = (asked: TokenSetting | undefined): TokenConfig[] =>
    asked === undefined ? [] : [{ ...asked, admin: asked.admin ?? deployer }];
  const settlement = {
    admin: env.MINTMARK_ADMIN ?? deployer,
    guardian: env.MINTMARK_GUARDIAN ?? deployer,
    operator: env.MINTMARK_OPERATOR ?? deployer,
    committee: env.MINTMARK_COMMITTEE,
    threshold: env.MINTMARK_THRESHOLD,
    changeDelay: env.MINTMARK_CHANGE_DELAY,
    maturity: env.MINTMARK_MATURITY,
    transfers: env.MINTMARK_TRANSFERS === "yes",
  };
  const { MINTMARK_MULTISIG: multisig } = env;
  const tokens = tokensOf(env.MINTMARK_TOKEN);
  const mirror = env.MINTMARK_MIRROR_RPC_URL === undefined ? undefined : await mirrorOn(env.MINTMARK_MIRROR_RPC_URL);
  async function mirrorOn(rpcUrl: string) {
    const { MINTMARK_MIRROR_COMMITTEE: members, MINTMARK_MIRROR_THRESHOLD: least } = env;
    const terms = { ...(members && { committee: members }), ...(least && { threshold: least }) };
    const at = await deployerOn(rpcUrl, account);
    return {
      by: { ...at, pending: pendingOfMirror(record, at.chainId) },
      config: { admin: env.MINTMARK_MIRROR_ADMIN ?? deployer, ...terms },
      tokens: tokensOf(env.MINTMARK_MIRROR_TOKEN),
    };
  }
  const allowNoDelay = env.MINTMARK_ALLOW_NO_DELAY === "yes";
  const plan = { settlement, multisig, tokens, ...(mirror && { mirror }), allowNoDelay };
  for (const warning of await checkPlan(by, plan, earlier)) log(`warning: ${warning}`);
  const admin =
    earlier === undefined && multisig !== undefined
      ? await timeLock(by, multisig, env.MINTMARK_CHANGE_DELAY, log)
      : settlement.admin;
  let deployment = await deploy(by, { record, tokens, settlement: { ...settlement, admin }, onProgress: log });
  if (mirror !== undefined) deployment = await deployMirrorOf(mirror.by, by, { record, ...mirror, onProgress: log });
  log(`written and verified: ${record}`);
  if (isJson) return deployment;
  process.stdout.write(`StateCommitment ${deployment.settlement.address} on chain ${by.chainId}\n`);
  for (const { address, chainId } of deployment.mirrors) {
    process.stdout.write(`StateMirror ${address} on chain ${chainId}\n`);
  }
  return undefined;
}

async function deployerOn(rpcUrl: string, account: LocalAccount): Promise<Deployer> {
  const transport = http(rpcUrl, { retryCount: 5 });
  const client = createPublicClient({ transport });
  const chainId = await askL1(`asking ${new URL(rpcUrl).host} for its chain`, () => client.getChainId());
  return { account, client, transport, chainId };
}

async function timeLock(by: Deployer, multisig: `0x${string}`, delay: bigint, log: (line: string) => void) {
  log("deploying the administrator's time lock");
  const { address: lock } = await deployContract(by, "AdminTimeLock", [delay, [multisig], [multisig]]);
  return lock;
}
