import type { Command } from "commander";
import {
  type DeploySettings,
  deploySettings,
  type TokenSetting,
} from "../../server/process/settings/process-settings.ts";
import { processAccount } from "../cli/arguments.ts";
import { configured } from "../cli/command.ts";
import { checkPlan } from "../deploy/check.ts";
import { deploy } from "../deploy/deploy.ts";
import { type Deployer, deployerOn, lower } from "../deploy/deployer.ts";
import { deployMirrorOf } from "../deploy/mirror.ts";
import { pendingOf, pendingOfMirror } from "../deploy/pending.ts";
import { readRecord, recordPath } from "../deploy/record.ts";
import type { TokenConfig } from "../deploy/token.ts";

export function addDeploy(program: Command): void {
  configured(
    program,
    "deploy",
    "deploy to a chain, and a mirror to another; run again to verify what is there, or to add a token or a mirror (MINTMARK_DEPLOYER_KEY, or standard input)",
    ["deploy --rpc https://rpc.example --committee 0x…,0x… --threshold 2 --multisig 0x…", "deploy --json"],
    deploySettings,
    (settings, { options }) => run(settings, options.json === true),
  );
}

async function run(env: DeploySettings, isJson: boolean): Promise<unknown> {
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const { account } = await processAccount("DEPLOYER");
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
  const { MINTMARK_MIRROR_RPC_URL: mirrorRpc, MINTMARK_MIRROR_COMMITTEE: members } = env;
  const { MINTMARK_MIRROR_THRESHOLD: least } = env;
  const at = mirrorRpc === undefined ? undefined : await deployerOn(mirrorRpc, account);
  const terms = { ...(members && { committee: members }), ...(least && { threshold: least }) };
  const mirror = at && {
    by: { ...at, pending: pendingOfMirror(record, at.chainId) },
    config: { admin: env.MINTMARK_MIRROR_ADMIN ?? deployer, ...terms },
    tokens: tokensOf(env.MINTMARK_MIRROR_TOKEN),
  };
  const allowNoDelay = env.MINTMARK_ALLOW_NO_DELAY === "yes";
  const plan = { settlement, multisig, tokens, ...(mirror && { mirror }), allowNoDelay };
  for (const warning of await checkPlan(by, plan, earlier)) log(`warning: ${warning}`);
  let deployment = await deploy(by, { ...plan, record, onProgress: log });
  if (mirror !== undefined) deployment = await deployMirrorOf(mirror.by, by, { record, ...mirror, onProgress: log });
  log(`written and verified: ${record}`);
  if (isJson) return deployment;
  process.stdout.write(`StateCommitment ${deployment.settlement.address} on chain ${by.chainId}\n`);
  for (const { address, chainId } of deployment.mirrors) {
    process.stdout.write(`StateMirror ${address} on chain ${chainId}\n`);
  }
  return undefined;
}
