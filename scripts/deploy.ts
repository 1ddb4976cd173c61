/**
 * Deploys Mintmark to a chain, and mirrors of it to others: `node scripts/deploy.ts [--json]`, everything by environment (see
 * ENVIRONMENT). Run it again to verify what is there, or to add a token or a mirror.
 */
import { createPublicClient, http, isAddress, isHex, type LocalAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { askL1 } from "../core/l1/failure.ts";
import { runCommand } from "./command.ts";
import { checkPlan } from "./deploy/check.ts";
import { compileInClone } from "./deploy/compile.ts";
import { deploy } from "./deploy/deploy.ts";
import { type Deployer, deployContract, lower } from "./deploy/deployer.ts";
import { deployMirrorOf } from "./deploy/mirror.ts";
import { pendingOf, pendingOfMirror } from "./deploy/pending.ts";
import { readRecord, recordPath } from "./deploy/record.ts";
import type { TokenConfig } from "./deploy/token.ts";
import { readEnvironment } from "./environment.ts";

const ENVIRONMENT = `
  MINTMARK_RPC_URL         the chain's RPC
  MINTMARK_DEPLOYER_KEY    private key that pays for the deployment
  MINTMARK_ADMIN           schedules operators and committees; default: the time lock if there is one, else the deployer
  MINTMARK_MULTISIG        deploys a time lock that this address proposes to and executes, and makes it the administrator;
                           instead of MINTMARK_ADMIN
  MINTMARK_GUARDIAN        pauses committing, revokes operators; default: the deployer
  MINTMARK_OPERATOR        commits batches; a plain account; default: the deployer
  MINTMARK_COMMITTEE       the committee's addresses, separated by commas
  MINTMARK_THRESHOLD       signatures that a validium batch needs
  MINTMARK_CHANGE_DELAY    seconds before a new operator or committee is active; default 604800 (7 days)
  MINTMARK_MATURITY        seconds that ERC-721 vaults wait after their commit; default 86400 (a day)
  MINTMARK_ALLOW_NO_DELAY  yes: take a change delay or a maturity of 0 on a public chain too
  MINTMARK_DEPLOYMENTS     folder of the deployment records; default .mintmark/deployments
  MINTMARK_TOKEN           JSON of one token to deploy and register, for example
                           {"standard":"erc721","name":"Swords","symbol":"SWRD"}. Optional: "uri", "admin", "lockMinter",
                           "cap" and "quantum" (erc20, decimal strings), "blobScheme" ("mintmark" or "imx"),
                           "royalty" (erc721): {"receiver":"0x…","fraction":"250"}, in ten-thousandths of the price

for tokens of another chain, the settlement contract's mirror there, which the same key pays for:
  MINTMARK_MIRROR_RPC_URL    that chain's RPC
  MINTMARK_MIRROR_ADMIN      schedules the mirror's committees; an account of that chain; default: the deployer
  MINTMARK_MIRROR_COMMITTEE  addresses separated by commas; default: the settlement contract's
  MINTMARK_MIRROR_THRESHOLD  signatures that a state needs; default: the settlement contract's
  MINTMARK_MIRROR_TOKEN      as MINTMARK_TOKEN, deployed there and registered with both`;

const address = z
  .string()
  .refine((text) => isAddress(text, { strict: false }), "not an address")
  .transform((text) => lower(text as `0x${string}`));
const seconds = z.string().regex(/^\d+$/, "not a number of seconds").transform(BigInt);
const token = z.strictObject({
  standard: z.enum(["erc20", "erc721", "erc1155"]),
  name: z.string().min(1),
  symbol: z.string().min(1),
  cap: z.string().regex(/^\d+$/).transform(BigInt).optional(),
  quantum: z.string().regex(/^\d+$/).transform(BigInt).optional(),
  uri: z.string().optional(),
  royalty: z
    .strictObject({
      receiver: address,
      fraction: z
        .string()
        .regex(/^\d{1,5}$/)
        .transform(BigInt),
    })
    .optional(),
  blobScheme: z.enum(["mintmark", "imx"]).optional(),
  admin: address.optional(),
  lockMinter: z.boolean().optional(),
});
const tokenVariable = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue({ code: "custom", message: "not JSON" });
      return z.NEVER;
    }
  })
  .pipe(token);
const committee = z
  .string()
  .transform((text) => text.split(","))
  .pipe(z.array(address).min(1).max(255));
const threshold = z
  .string()
  .regex(/^[1-9]\d*$/)
  .transform(Number);
const variables = z.object({
  MINTMARK_RPC_URL: z.url(),
  MINTMARK_DEPLOYER_KEY: z
    .string()
    .refine((text) => isHex(text) && text.length === 66, "not a private key")
    .transform((text) => text as `0x${string}`),
  MINTMARK_ADMIN: address.optional(),
  MINTMARK_MULTISIG: address.optional(),
  MINTMARK_GUARDIAN: address.optional(),
  MINTMARK_OPERATOR: address.optional(),
  MINTMARK_COMMITTEE: committee,
  MINTMARK_THRESHOLD: threshold,
  MINTMARK_CHANGE_DELAY: seconds.default(604_800n),
  MINTMARK_MATURITY: seconds.default(86_400n),
  MINTMARK_ALLOW_NO_DELAY: z
    .enum(["yes", "no"])
    .default("no")
    .transform((answer) => answer === "yes"),
  MINTMARK_DEPLOYMENTS: z.string().default(".mintmark/deployments"),
  MINTMARK_TOKEN: tokenVariable.optional(),
  MINTMARK_MIRROR_RPC_URL: z.url().optional(),
  MINTMARK_MIRROR_ADMIN: address.optional(),
  MINTMARK_MIRROR_COMMITTEE: committee.optional(),
  MINTMARK_MIRROR_THRESHOLD: threshold.optional(),
  MINTMARK_MIRROR_TOKEN: tokenVariable.optional(),
});
const environment = variables.superRefine(({ MINTMARK_ADMIN: admin, MINTMARK_MULTISIG: multisig }, context) => {
  if (admin === undefined || multisig === undefined) return;
  const message = "set this or MINTMARK_ADMIN, not both: the multisig administers through a time lock of its own";
  context.addIssue({ code: "custom", path: ["MINTMARK_MULTISIG"], message });
});

async function main(): Promise<void> {
  if (process.argv.includes("--help")) {
    process.stdout.write(`usage: npm run deploy -- [--json]\n${ENVIRONMENT}\n`);
    return;
  }
  const env = readEnvironment(environment, ENVIRONMENT);
  await compileInClone();
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const account = privateKeyToAccount(env.MINTMARK_DEPLOYER_KEY);
  const deployer = lower(account.address);
  const there = await deployerOn(env.MINTMARK_RPC_URL, account);
  const record = recordPath(env.MINTMARK_DEPLOYMENTS, there.chainId);
  const by: Deployer = { ...there, pending: pendingOf(record) };
  const earlier = await readRecord(record);
  const tokensOf = (asked: z.output<typeof token> | undefined): TokenConfig[] =>
    asked === undefined ? [] : [{ ...asked, admin: asked.admin ?? deployer }];
  const settlement = {
    admin: env.MINTMARK_ADMIN ?? deployer,
    guardian: env.MINTMARK_GUARDIAN ?? deployer,
    operator: env.MINTMARK_OPERATOR ?? deployer,
    committee: env.MINTMARK_COMMITTEE,
    threshold: env.MINTMARK_THRESHOLD,
    changeDelay: env.MINTMARK_CHANGE_DELAY,
    maturity: env.MINTMARK_MATURITY,
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
  const allowNoDelay = env.MINTMARK_ALLOW_NO_DELAY;
  const plan = { settlement, multisig, tokens, ...(mirror && { mirror }), allowNoDelay };
  for (const warning of await checkPlan(by, plan, earlier)) log(`warning: ${warning}`);
  const admin =
    earlier === undefined && multisig !== undefined
      ? await timeLock(by, multisig, env.MINTMARK_CHANGE_DELAY, log)
      : settlement.admin;
  let deployment = await deploy(by, { record, tokens, settlement: { ...settlement, admin }, onProgress: log });
  if (mirror !== undefined) deployment = await deployMirrorOf(mirror.by, by, { record, ...mirror, onProgress: log });
  log(`written and verified: ${record}`);
  const text = JSON.stringify(
    deployment,
    (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value),
    2,
  );
  if (process.argv.includes("--json")) return void process.stdout.write(`${text}\n`);
  process.stdout.write(`StateCommitment ${deployment.settlement.address} on chain ${by.chainId}\n`);
  for (const { address, chainId } of deployment.mirrors) {
    process.stdout.write(`StateMirror ${address} on chain ${chainId}\n`);
  }
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

await runCommand(main);
